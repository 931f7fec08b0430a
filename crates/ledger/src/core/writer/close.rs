//! 1.5: closing.

use tidemill_types::{
    EntryId, LedgerRecord, LedgerState,
    meta::{CloseLedger, Rejection},
};

use super::{Output, Phase, WriterCore, bit};
use crate::core::MetaOutcome;

/// Why a close cannot be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseRefused {
    /// Fenced.
    #[error("the ledger is fenced")]
    Fenced,
    /// Begun or done already.
    #[error("a close was begun already")]
    AlreadyClosing,
}

/// What became of a close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseState {
    /// Stored with our end.
    Committed,
    /// Settled as not applied, or to be sent again as it is: [`WriterCore::close_command`], same end.
    SendAgain,
    /// Refused for a reason that is not the ledger's own (epoch, link); the ledger is OPEN, the caller decides.
    Refused(Rejection),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Close {
    end: EntryId,
    length: u64,
    pub(super) sent: bool,
    /// A sent command has an unknown outcome and names the version that we know: it may still commit.
    unknown: bool,
    refused: Option<String>,
}

impl WriterCore {
    /// Stops pushing. [`Output::CloseReady`] follows at once or when the ensemble change under way is settled.
    ///
    /// # Errors
    /// [`CloseRefused`].
    pub fn begin_close(&mut self, out: &mut Vec<Output>) -> Result<(), CloseRefused> {
        match self.phase {
            Phase::Open if !self.close_wanted => {
                self.close_wanted = true;
                self.enter_close(out);
                Ok(())
            }
            Phase::Changing(_) if !self.close_wanted => {
                self.close_wanted = true;
                Ok(())
            }
            Phase::Fenced => Err(CloseRefused::Fenced),
            _ => Err(CloseRefused::AlreadyClosing),
        }
    }

    pub(super) fn enter_close(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Closing(Close {
            end: self.lac,
            length: self.lac_length,
            sent: false,
            unknown: false,
            refused: None,
        });
        out.push(Output::CloseReady);
    }

    /// The closing half of the command: always the same end. From this call on it counts as sent.
    /// `None` when no close was begun.
    pub fn close_command(&mut self) -> Option<CloseLedger> {
        let under = self.under_at_close();
        let Phase::Closing(c) = &mut self.phase else { return None };
        c.sent = true;
        c.refused = None;
        Some(CloseLedger {
            ledger: self.record.id,
            version: self.record.version,
            last_entry: c.end,
            length: c.length,
            records: 0,
            fragments: Vec::new(),
            under,
            limbo_counts: Vec::new(),
        })
    }

    /// The end and length of the close that was begun.
    #[must_use]
    pub fn close_end(&self) -> Option<(EntryId, u64)> {
        match &self.phase {
            Phase::Closing(c) => Some((c.end, c.length)),
            _ => None,
        }
    }

    /// M31: what was given up, and every entry up to the end that an index has not acknowledged yet.
    fn under_at_close(&self) -> Vec<tidemill_types::EntryRange> {
        let mut under = self.under.clone();
        let full = self.full();
        let mut id = self.first;
        for op in &self.ops {
            if id > self.lac {
                break;
            }
            if op.acks & full != full && (0..self.members.len()).any(|i| op.misses(bit(i))) {
                under.insert(id);
            }
            id = id.next();
        }
        under.clip(EntryId::FIRST, self.close_end().map_or(self.lac, |(end, _)| end))
    }

    pub(super) fn on_close_outcome(&mut self, outcome: MetaOutcome, out: &mut Vec<Output>) {
        let Phase::Closing(close) = &mut self.phase else { return };
        match outcome {
            MetaOutcome::Committed(record) => self.on_close_record(Some(record), out),
            MetaOutcome::Rejected(Rejection::SessionExpired | Rejection::OutcomeUnknown)
            | MetaOutcome::Unknown => {
                close.unknown = true;
                out.push(Output::ReadRecord);
            }
            MetaOutcome::Rejected(r) => {
                let own = matches!(
                    r,
                    Rejection::VersionMismatch { .. }
                        | Rejection::LedgerState { .. }
                        | Rejection::OtherEnd { .. }
                );
                if own {
                    close.refused = Some(r.to_string());
                    out.push(Output::ReadRecord);
                } else {
                    close.sent = close.unknown;
                    out.push(Output::CloseSettled(CloseState::Refused(r)));
                }
            }
        }
    }

    /// 1.5, 1.8: settles the close by a record that was read after its sending.
    pub(super) fn on_close_record(&mut self, record: Option<LedgerRecord>, out: &mut Vec<Output>) {
        let Phase::Closing(close) = self.phase.clone() else { return };
        let Some(record) = record else { return self.stop(out) };
        match record.state {
            LedgerState::Closed
                if record.last_entry == Some(close.end) && record.length == Some(close.length) =>
            {
                self.record = record;
                self.phase = Phase::Closed(close.end);
                out.push(Output::CloseSettled(CloseState::Committed));
            }
            // Never overwritten, never guessed: resolve against the stored end.
            LedgerState::Closed | LedgerState::InRecovery => self.stop(out),
            LedgerState::Open => {
                if !self.rules.settle_unknown && close.refused.is_none() {
                    self.phase = Phase::Open; // M24: "OPEN, so it was not applied"
                    self.close_wanted = false;
                    return self.advance(out);
                }
                // The version moved, or this very request was refused: a new command with the same end. Else the same
                // command: it may still commit (M24).
                if record.version != self.record.version {
                    let unknown = false;
                    self.phase = Phase::Closing(Close { unknown, ..close });
                }
                self.record = record;
                out.push(Output::CloseSettled(CloseState::SendAgain));
            }
        }
    }

    /// Goes on with the ledger. Only when no close command is unsettled.
    ///
    /// # Errors
    /// `AlreadyClosing` when a sent command is not settled, `Fenced` when the ledger is.
    pub fn resume(&mut self, out: &mut Vec<Output>) -> Result<(), CloseRefused> {
        match &self.phase {
            Phase::Closing(c) if !c.sent => {
                self.phase = Phase::Open;
                self.close_wanted = false;
                self.advance(out);
                Ok(())
            }
            Phase::Open => Ok(()),
            Phase::Fenced => Err(CloseRefused::Fenced),
            _ => Err(CloseRefused::AlreadyClosing),
        }
    }

    /// The command that [`WriterCore::close_command`] made was not sent after all.
    pub fn close_not_sent(&mut self) {
        if let Phase::Closing(c) = &mut self.phase {
            c.sent = c.unknown;
        }
    }

    /// The caller knows that its close committed.
    pub fn set_closed(&mut self) {
        if let Phase::Closing(c) = &self.phase {
            self.phase = Phase::Closed(c.end);
        }
    }

    /// The caller learned that the ledger is in recovery or has another end.
    pub fn set_fenced(&mut self, out: &mut Vec<Output>) {
        self.stop(out);
    }
}
