//! What looks and recoveries brought.

use std::time::Duration;

use tidemill_ledger::{BookieTable, core::repair::Verdict};
use tidemill_types::{LedgerId, LedgerRecord, LedgerState, meta::Command};

use super::pass::{Memory, limbo_counts, start};

/// An answer.
#[derive(Debug)]
pub(super) enum Finding {
    /// The members of a ledger were asked.
    Looked {
        /// The record that they were asked about.
        record: Box<LedgerRecord>,
        /// What follows.
        verdict: Verdict,
    },
    /// A recovery ended.
    Recovered {
        /// The ledger.
        ledger: LedgerId,
        /// Whether it is closed.
        done: Result<(), String>,
    },
}

impl Memory {
    /// What is to be proposed. `table` is the one of the last pass.
    pub(super) fn found(&mut self, finding: Finding, table: &BookieTable, now: Duration) -> Option<Command> {
        match finding {
            Finding::Looked { record, verdict } => self.looked(&record, verdict, table, now),
            Finding::Recovered { ledger, done } => {
                self.recovering.remove(&ledger);
                match done {
                    Ok(()) => self.unpause(ledger),
                    Err(why) => {
                        tracing::warn!(%ledger, why, "a ledger without an owner that rolls it could not be closed");
                        self.pause(ledger, tidemill_types::FragmentSeq(0), None, now);
                    }
                }
                None
            }
        }
    }

    fn looked(
        &mut self,
        record: &LedgerRecord,
        verdict: Verdict,
        table: &BookieTable,
        now: Duration,
    ) -> Option<Command> {
        self.looking.remove(&record.id);
        match verdict {
            Verdict::Complete => {
                self.unpause(record.id);
                self.complete.insert(record.id, (record.version, limbo_counts(record, table)));
                let noted = record.unchecked || record.fragments.iter().any(|f| !f.under.is_empty());
                (noted && record.state == LedgerState::Closed)
                    .then_some(Command::MarkChecked { ledger: record.id, version: record.version })
            }
            Verdict::Lacks { bookie, limbo_count } => {
                self.pause(record.id, record.fragment_seq, Some(bookie), now);
                table.get(bookie).is_some_and(|b| b.live).then(|| start(record, bookie, limbo_count))
            }
            Verdict::Unknown => {
                self.pause(record.id, record.fragment_seq, None, now);
                None
            }
        }
    }
}
