//! A close that was begun: what the command needs, and what its outcome means.

use tidemill_types::{EntryId, LedgerRecord, meta::CloseLedger};

use crate::{CloseError, PendingEntry};

/// Given out once by `begin_close`. Exactly one of [`CloseTicket::committed`], [`CloseTicket::fenced`],
/// [`CloseTicket::resume`] ends it. While the outcome of a sent command is unknown keep the ticket: the LAC stands still
/// until the outcome is settled (M24). Dropping the ticket leaves the writer stopped.
#[must_use]
pub struct CloseTicket {
    _private: (),
}

impl CloseTicket {
    /// The last entry that the ledger will have.
    #[must_use]
    pub fn last_entry(&self) -> EntryId {
        todo!()
    }

    /// The closing half of a `Roll` or `Close`. Always the same end. `records`: records in the `data` entries up to the end.
    #[must_use]
    pub fn close(&self, _records: u64) -> CloseLedger {
        todo!()
    }

    /// The command was refused with a version mismatch, `record` was read after that: if OPEN, [`CloseTicket::close`]
    /// now names the new version, with the same end.
    ///
    /// # Errors
    /// `Fenced` when the record is IN_RECOVERY or CLOSED with another end: the writer has stopped.
    pub fn retry(&mut self, _record: LedgerRecord) -> Result<(), CloseError> {
        todo!()
    }

    /// The command is known to have committed. Returns the entries above the end, now known not written, in order.
    #[must_use]
    pub fn committed(self) -> Vec<PendingEntry> {
        todo!()
    }

    /// The ledger is in recovery or has another end: the writer stops, resolve against the stored end.
    pub fn fenced(self) {
        todo!()
    }

    /// The command was not sent, or is settled as never applied and `record` is OPEN: the ledger goes on.
    ///
    /// # Errors
    /// `Fenced` as for [`CloseTicket::retry`].
    pub fn resume(self, _record: Option<LedgerRecord>) -> Result<(), CloseError> {
        todo!()
    }
}
