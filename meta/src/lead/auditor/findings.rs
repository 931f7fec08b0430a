//! What looks and recoveries brought.

use std::time::Duration;

use tidemill_ledger::{BookieTable, core::repair::Verdict};
use tidemill_types::{LedgerId, LedgerRecord, LedgerState, meta::Command};

use super::{
    compare::Compared,
    pass::{Memory, limbo_counts, start},
};

/// A comparison that could not be made is tried again after.
const COMPARE_AGAIN: Duration = Duration::from_secs(600);

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
    /// All replicas of a ledger were compared.
    Compared {
        /// The record that was compared.
        record: Box<LedgerRecord>,
        /// What was seen.
        compared: Compared,
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
            Finding::Compared { record, compared } => self.compared(&record, compared, table, now),
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

    fn compared(
        &mut self,
        record: &LedgerRecord,
        compared: Compared,
        table: &BookieTable,
        now: Duration,
    ) -> Option<Command> {
        self.comparing.remove(&record.id);
        let next = match compared {
            Compared::Same { .. } | Compared::Differs { .. } => self.settings.compare_every,
            Compared::Lacks { .. } | Compared::Unknown => COMPARE_AGAIN.min(self.settings.compare_every),
        };
        self.compare_at.insert(record.id, now + next);
        match compared {
            Compared::Same { .. } | Compared::Unknown => None,
            Compared::Differs { entry, bookie } => {
                tracing::error!(ledger = %record.id, %entry, %bookie, "copies of an entry differ (R24): none is changed");
                None
            }
            Compared::Lacks { bookie, limbo_count } => {
                tracing::warn!(ledger = %record.id, %bookie, "a member lacks entries of a closed ledger");
                self.pause(record.id, record.fragment_seq, Some(bookie), now);
                table.get(bookie).is_some_and(|b| b.live).then(|| start(record, bookie, limbo_count))
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
