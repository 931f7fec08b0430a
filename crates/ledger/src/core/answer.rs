//! Response classes. Recovery truncates on negatives, so an explicit negative and an unknown are different types and
//! nothing converts one into the other (1.1, R4).

use std::time::Duration;

use tidemill_types::{EntryId, LedgerRecord, meta::Rejection};

/// The bookie of the expected uuid says that it never acknowledged the entry, or has collected the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Negative {
    /// Holds the ledger, not the entry.
    NoSuchEntry,
    /// Does not hold the ledger.
    NoSuchLedger,
}

/// Everything else that is not Ok. Says nothing about the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// No answer in time.
    TimedOut,
    /// The connection was refused or closed.
    Closed,
    /// Another cluster, uuid or incarnation (R26).
    WrongIdentity,
    /// The copy fails its check, at the bookie or here.
    Corrupt,
    /// The queue is full.
    Overloaded,
    /// No room for plain adds.
    ReadOnly,
    /// Starting or draining.
    NotReady,
    /// The bookie cannot decide: limbo, first touch without the quorum, I/O error.
    Undecided,
    /// The request was refused as malformed.
    Refused,
}

/// Answer to an add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddAnswer {
    /// Durable.
    Ok,
    /// The ledger is fenced for plain adds.
    Fenced,
    /// Same bytes again after the delay.
    Overloaded {
        /// What the bookie asked for.
        retry_after: Duration,
    },
    /// Present with other bytes (R24).
    Conflict,
    /// Nothing is known.
    Unknown(Unknown),
}

/// Answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadAnswer<T> {
    /// The data, its digest checked here.
    Found(T),
    /// An explicit negative.
    Negative(Negative),
    /// Nothing is known.
    Unknown(Unknown),
}

/// Answer to a fence. There is no negative: fencing creates the ledger (1.6 step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceAnswer {
    /// The fence is durable.
    Confirmed {
        /// Highest LAC that the bookie knows.
        lac: EntryId,
    },
    /// Nothing is known.
    Unknown(Unknown),
}

/// What became of a metadata command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaOutcome {
    /// Applied; the ledger's record after it.
    Committed(LedgerRecord),
    /// This request was not applied and never will be.
    Rejected(Rejection),
    /// To be settled (1.8).
    Unknown,
}
