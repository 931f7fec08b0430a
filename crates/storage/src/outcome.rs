//! Requests and answers. Explicit negatives and unknowns are different arms, and nothing turns an error into a negative (R14).

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use tidemill_types::{EntryError, EntryId, EntryRange, LedgerId};

/// Why nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownReason {
    /// The bookie may have lost data (R15).
    Limbo,
    /// An accepted add of this entry waits for its sync (R25).
    Pending,
    /// The disk answered an error.
    Io,
    /// The ledger is being collected (R20); ask again.
    Collecting,
    /// A write failed; the bytes may or may not come back after a restart.
    NotWritten,
    /// The engine is shutting down or has stopped.
    Stopped,
}

/// How an add is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddKind {
    /// By the ledger's writer: refused when the ledger is fenced.
    Normal,
    /// By recovery or repair: taken although fenced; an unknown ledger is created fenced (R27).
    Recovery,
}

/// One add.
#[derive(Clone, Debug)]
pub struct AddRequest {
    /// Given back with the answer.
    pub request: u64,
    /// The encoded entry.
    pub entry: Bytes,
    /// How it is to be taken.
    pub kind: AddKind,
}

/// Proof of which state of a ledger a first-touch question was asked in (R27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchTicket {
    /// The ledger.
    pub ledger: LedgerId,
    pub(crate) generation: u64,
}

/// Answer to "must the quorum be asked before a plain add to this ledger?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstTouch {
    /// No: the ledger is held, or its id is at or above the mark.
    NotNeeded,
    /// Yes: read the ledger's record linearizably, then call `admit` with this ticket.
    Ask(TouchTicket),
}

/// What became of a verdict "OPEN, this uuid in the last fragment".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Plain adds are taken from now on, unless the ledger is fenced.
    Admitted,
    /// The ledger was collected since the ticket was drawn: ask the quorum again.
    Stale(TouchTicket),
}

/// Answer to an add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// Durable and indexed; also for an entry that was there before with the same bytes.
    Ok,
    /// The ledger is fenced; nothing was written.
    Fenced,
    /// The quorum must be asked first (R27); nothing was written. Send the same entry again after `admit`.
    FirstTouch {
        /// For `admit`.
        ticket: TouchTicket,
        /// The entry, given back.
        entry: Bytes,
    },
    /// The queue is full; nothing was written.
    Overloaded {
        /// Try again after this time.
        retry_after: Duration,
    },
    /// The disk is (nearly) full or the bookie was set read-only; nothing was written.
    ReadOnly,
    /// Above the configured maximum; nothing was written.
    TooLarge {
        /// Bytes of the entry.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// Not a valid entry; nothing was written.
    Invalid(EntryError),
    /// The entry is present with other bytes (R24); nothing was written, an alarm counter went up.
    Conflict,
    /// It may or may not be stored.
    Unknown(UnknownReason),
}

/// Takes the answers of one connection, many at once: called once per commit group with what belongs to it.
pub trait AckSink: Send + Sync {
    /// Called with `(request, answer)` pairs in the order of their acceptance. Must not block. May be called from within
    /// [`crate::Engine::add_batch`].
    fn acked(&self, acks: Vec<(u64, AddOutcome)>);
}

/// Where an answer goes.
pub struct Completion<T>(Box<dyn FnOnce(T) + Send>);

impl<T> Completion<T> {
    /// Calls `f` with the answer, at most once: never, when the engine is poisoned before.
    pub fn new(f: impl FnOnce(T) + Send + 'static) -> Self {
        Self(Box::new(f))
    }

    pub(crate) fn answer(self, value: T) {
        (self.0)(value);
    }
}

impl<T> fmt::Debug for Completion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

/// Where the answer of an add goes.
#[derive(Clone)]
pub(crate) struct AckTo {
    pub(crate) sink: Arc<dyn AckSink>,
    pub(crate) request: u64,
}

impl fmt::Debug for AckTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AckTo({})", self.request)
    }
}

/// Answer to a fence (R11, R25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceOutcome {
    /// The ledger is durably fenced and every add accepted before is durable and indexed.
    Fenced {
        /// Highest LAC known, piggybacked or explicit.
        lac: EntryId,
        /// Highest entry held.
        last_entry: EntryId,
    },
    /// Nothing is promised. In limbo the fence was made durable all the same, only the LAC is not told.
    Unknown(UnknownReason),
}

/// Answer to a durable change without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Durable.
    Ok,
    /// The ledger is not held; nothing was written.
    NoSuchLedger,
    /// No room; nothing was written.
    ReadOnly,
    /// It may or may not be stored.
    Unknown(UnknownReason),
}

/// How much of an entry is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// All of it, both digests checked.
    #[default]
    Full,
    /// Header and envelope, the head digest checked.
    Head,
}

/// Answer to a read of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The bytes (of the entry, or of its head).
    Entry(Bytes),
    /// Explicit negative: never acknowledged here.
    NoSuchEntry,
    /// Explicit negative: the ledger is not held.
    NoSuchLedger,
    /// Nothing is said.
    Unknown(UnknownReason),
    /// It was stored and its bytes fail their check.
    Corrupt,
}

/// Answer to a read of a ledger's LAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LacOutcome {
    /// Highest LAC known, piggybacked or explicit ([`EntryId::NONE`] when there is none).
    Lac(EntryId),
    /// Explicit negative: the ledger is not held.
    NoSuchLedger,
    /// Nothing is said.
    Unknown(UnknownReason),
}

/// Answer to a read of a ledger's highest entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastEntryOutcome {
    /// The highest entry held and its bytes (or why they cannot be had).
    Last(EntryId, ReadOutcome),
    /// Explicit negative: the ledger is held without entries.
    Empty,
    /// Explicit negative: the ledger is not held.
    NoSuchLedger,
    /// Nothing is said.
    Unknown(UnknownReason),
}

/// Answer to "which entries of this ledger are held?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangesOutcome {
    /// Sorted, not touching. In limbo what is missing is not denied: `complete` is false.
    Ranges {
        /// The ranges.
        ranges: Vec<EntryRange>,
        /// Whether what lies outside may be taken for an explicit negative.
        complete: bool,
    },
    /// Explicit negative.
    NoSuchLedger,
    /// Nothing is said.
    Unknown(UnknownReason),
}
