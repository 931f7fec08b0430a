//! Errors of the handles.

use tidemill_types::{EntryError, EntryId, ErrorCode, LedgerId};

use crate::MetaError;

/// Why an entry was not taken at all. It stands in no ledger: known not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefused {
    /// The ledger is fenced, closed, or abandoned.
    #[error("ledger {0} takes no more entries")]
    Stopped(LedgerId),
    /// A close was begun: the entry belongs into the next ledger.
    #[error("ledger {0} is being closed")]
    Closing(LedgerId),
    /// The entry breaks the format's limits.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

/// How an entry that was handed to a ledger ended, when it was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Nobody knows: it may still be recovered. Never tell a producer "failed" for this.
    #[error("the outcome of the append is unknown")]
    Unknown,
    /// The ledger is closed below it: it may be added to the next ledger.
    #[error("the entry was not written")]
    NotWritten,
}

/// Why a barrier proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarrierError {
    /// The ledger is fenced or closed: this process may not be the owner any more.
    #[error("the ledger is fenced or closed")]
    Stopped,
    /// A close was sent before the barrier was complete: ask again in the next ledger.
    #[error("a close of the ledger voids the barrier")]
    Voided,
    /// The envelope breaks the format's limits.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

/// Why a close cannot be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// The ledger is fenced: recover it instead.
    #[error("the ledger is fenced")]
    Fenced,
    /// A close is under way or done.
    #[error("a close of the ledger was begun already")]
    AlreadyClosing,
}

/// Why a recovery gave no end. The ledger stays as it is; try again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// The record does not exist.
    #[error("ledger {0} does not exist")]
    NoSuchLedger(LedgerId),
    /// Fewer than EC bookies confirmed the fence.
    #[error("ledger {ledger}: {confirmed} of {needed} bookies confirmed the fence")]
    NotFenced {
        /// The ledger.
        ledger: LedgerId,
        /// How many confirmed.
        confirmed: usize,
        /// EC.
        needed: usize,
    },
    /// Neither a copy nor enough explicit negatives for an entry (R4).
    #[error("ledger {ledger}: entry {entry} is undecided")]
    Undecided {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
    },
    /// Fewer than Qa bookies took the copies back.
    #[error("ledger {ledger}: entry {entry} could not be written back")]
    WriteBack {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
    },
    /// Two copies of one entry differ (R24): an alarm, never a choice.
    #[error("ledger {ledger}: copies of entry {entry} differ")]
    Divergent {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
    },
    /// The record has no usable fragment.
    #[error("the record of ledger {0} breaks its own rules")]
    BadRecord(LedgerId),
    /// The quorum.
    #[error(transparent)]
    Meta(#[from] MetaError),
    /// The whole attempt took longer than its time-out.
    #[error("recovery of ledger {0} ran out of time")]
    DeadlineExceeded(LedgerId),
}

/// Why a read gave no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Every replica says so and the record did not change meanwhile (1.7).
    #[error("ledger {ledger} has no entry {entry}")]
    NoSuchEntry {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
    },
    /// At least one replica gave no usable answer.
    #[error("ledger {ledger}: no replica answered for entry {entry}")]
    Unknown {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
    },
    /// Outside what this reader may read.
    #[error("ledger {ledger}: entry {entry} is outside of 0..={last}")]
    OutOfRange {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
        /// The last readable entry.
        last: EntryId,
    },
    /// The ledger was deleted.
    #[error("ledger {0} does not exist any more")]
    Deleted(LedgerId),
    /// The quorum.
    #[error(transparent)]
    Meta(#[from] MetaError),
}

impl AppendError {
    /// The code that reaches a user.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Unknown => ErrorCode::OutcomeUnknown,
            Self::NotWritten => ErrorCode::NotWritten,
        }
    }
}

impl ReadError {
    /// The code that reaches a user.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoSuchEntry { .. } => ErrorCode::DataLoss,
            Self::Unknown { .. } => ErrorCode::NotReady,
            Self::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
            Self::Deleted(_) => ErrorCode::Trimmed,
            Self::Meta(_) => ErrorCode::QuorumUnavailable,
        }
    }
}
