//! What a recovery found.

use tidemill_types::{Entry, EntryId, LedgerRecord, meta::CloseLedger};

use crate::LedgerReader;

/// The end of a ledger.
pub enum Recovered {
    /// CLOSED already, with this record's end.
    Closed(LedgerRecord),
    /// Decided, not stored yet: send `close` in a `TakeOver` or `Close`; act on nothing before it committed. When it is
    /// refused, or its outcome stays unknown: recover again.
    Decided(RecoveredEnd),
}

/// A decided end.
pub struct RecoveredEnd {
    /// Everything but `records`, which is 0: set it to the records in the `data` entries up to `close.last_entry`.
    pub close: CloseLedger,
    /// The last entry, when the ledger is not empty: its envelope tells where the records end.
    pub last: Option<Entry>,
    /// Reads the entries up to the end (to count records and to rebuild state).
    pub reader: LedgerReader,
}

impl Recovered {
    /// The last entry, [`EntryId::NONE`] for an empty ledger.
    #[must_use]
    pub fn last_entry(&self) -> EntryId {
        match self {
            Self::Closed(r) => r.last_entry.unwrap_or(EntryId::NONE),
            Self::Decided(e) => e.close.last_entry,
        }
    }
}
