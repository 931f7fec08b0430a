//! A close that was begun: what the command needs, and what its outcome means.

use std::sync::Arc;

use tidemill_types::{
    EntryId, LedgerRecord,
    meta::{CloseLedger, Command, Rejection, Reply},
};

use super::{commands, writer::WriterShared};
use crate::{
    CloseError, MetaError, PendingEntry,
    core::{
        MetaOutcome,
        writer::{CloseRefused, CloseState, Input},
    },
};

/// Given out once by `begin_close`. [`CloseTicket::commit`] does the whole of it; a caller that batches commands uses
/// [`CloseTicket::close`] and ends the ticket with exactly one of [`CloseTicket::committed`], [`CloseTicket::fenced`],
/// [`CloseTicket::resume`]. While the outcome of a sent command is unknown keep the ticket: the LAC stands still until it
/// is settled (M24). Dropping the ticket leaves the writer stopped.
#[must_use]
pub struct CloseTicket {
    writer: Arc<WriterShared>,
    last: EntryId,
    length: u64,
}

/// A close that is stored.
#[derive(Debug)]
pub struct Closed {
    /// The answer to the command; `None` when the effect was found in the record after an unknown outcome: read the
    /// partition again to see whether the successor was linked.
    pub reply: Option<Reply>,
    /// Entries above the end, known not written, in order.
    pub pending: Vec<PendingEntry>,
}

/// A close that is not stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// In recovery, or closed with another end: resolve against that end (1.3 step 4).
    #[error("the ledger is in recovery or closed with another end")]
    Fenced,
    /// Refused for a reason that is not the ledger's (epoch, link): settled. The ticket may be resumed or used again.
    #[error("the close was refused: {1}")]
    Refused(CloseTicket, Rejection),
    /// Nothing was sent. The ticket may be resumed or used again.
    #[error("the close was not sent: {1}")]
    NotSent(CloseTicket, MetaError),
    /// The session is gone with the outcome unsettled: drop the partition.
    #[error("the session is gone, the outcome of the close is unknown")]
    SessionExpired,
}

impl std::fmt::Debug for CloseTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CloseTicket({} at {})", self.writer.ledger, self.last)
    }
}

impl CloseTicket {
    pub(crate) fn new(writer: Arc<WriterShared>, last: EntryId, length: u64) -> Self {
        Self { writer, last, length }
    }

    /// The last entry that the ledger will have.
    #[must_use]
    pub fn last_entry(&self) -> EntryId {
        self.last
    }

    /// Cumulative length at the end.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The closing half of a `Roll` or `Close`. Always the same end. `records`: records in the `data` entries up to the end.
    /// `None` when the writer was fenced meanwhile.
    #[must_use]
    pub fn close(&self, records: u64) -> Option<CloseLedger> {
        let c = self.writer.with(|i, _| i.core.close_command());
        c.map(|c| CloseLedger { records, ..c })
    }

    /// Sends the command that `make` builds around the close, as often as 1.8 asks for, until its outcome is settled.
    ///
    /// # Errors
    /// [`CommitError`].
    pub async fn commit(
        self,
        records: u64,
        make: impl Fn(CloseLedger) -> Command + Send,
    ) -> Result<Closed, CommitError> {
        let shared = self.writer.shared.clone();
        loop {
            let Some(close) = self.close(records) else { return Err(CommitError::Fenced) };
            let (outcome, reply) = match shared.meta.propose(make(close)).await {
                Ok(Ok(reply)) => return Ok(Closed { reply: Some(reply), pending: self.committed() }),
                Ok(Err(r)) => (MetaOutcome::Rejected(r.clone()), Some(r)),
                Err(MetaError::OutcomeUnknown) => (MetaOutcome::Unknown, None),
                Err(MetaError::SessionExpired) => return Err(CommitError::SessionExpired),
                Err(e @ MetaError::Unavailable(_)) => {
                    self.writer.with(|i, _| i.core.close_not_sent());
                    return Err(CommitError::NotSent(self, e));
                }
            };
            if let Some(CloseState::Refused(r)) = self.settle(Input::CloseOutcome(outcome)) {
                return Err(CommitError::Refused(self, reply.unwrap_or(r)));
            }
            let record = commands::record_of(&shared, self.writer.ledger)
                .await
                .map_err(|_| CommitError::SessionExpired)?;
            match self.settle(Input::Record(record)) {
                Some(CloseState::Committed) => return Ok(Closed { reply: None, pending: self.committed() }),
                Some(CloseState::SendAgain) => {}
                Some(CloseState::Refused(_)) | None => return Err(CommitError::Fenced),
            }
        }
    }

    fn settle(&self, input: Input<'_>) -> Option<CloseState> {
        self.writer.inner.lock().settled = None;
        self.writer.step(input);
        self.writer.inner.lock().settled.take()
    }

    /// The command was refused with a version mismatch, `record` was read after that: if OPEN, [`CloseTicket::close`]
    /// now names the new version, with the same end.
    ///
    /// # Errors
    /// `Fenced` when the record is IN_RECOVERY or CLOSED with another end: the writer has stopped.
    pub fn retry(&mut self, record: LedgerRecord) -> Result<(), CloseError> {
        match self.settle(Input::Record(Some(record))) {
            Some(CloseState::SendAgain) => Ok(()),
            Some(CloseState::Committed) => Err(CloseError::AlreadyClosing),
            Some(CloseState::Refused(_)) | None => Err(CloseError::Fenced),
        }
    }

    /// The command is known to have committed. Returns the entries above the end, now known not written, in order.
    #[must_use]
    pub fn committed(self) -> Vec<PendingEntry> {
        self.writer.with(|i, _| i.core.set_closed());
        self.writer.set_end(self.last)
    }

    /// The ledger is in recovery or has another end: the writer stops, resolve against the stored end.
    pub fn fenced(self) {
        self.writer.with(|i, out| i.core.set_fenced(out));
    }

    /// The command was not sent, or is settled as never applied: the ledger goes on.
    ///
    /// # Errors
    /// `Fenced` when the ledger is, `AlreadyClosing` when a command that was sent is not settled: it may still commit.
    pub fn resume(self) -> Result<(), CloseError> {
        self.writer.with(|i, out| i.core.resume(out)).map_err(|e| match e {
            CloseRefused::Fenced => CloseError::Fenced,
            CloseRefused::AlreadyClosing => CloseError::AlreadyClosing,
        })
    }
}
