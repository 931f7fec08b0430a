//! 1.6 step 7: the close.

use tidemill_types::{EntryId, Fragment, LedgerState, meta::CloseLedger};

use super::{MetaOutcome, Output, Phase, RecoveryCore};

impl RecoveryCore {
    /// Reading has ended and every write-back is safe.
    pub(super) fn check_done(&mut self, out: &mut Vec<Output>) {
        let (Phase::Read, Some(end), Some(frozen)) = (self.phase, self.end, &self.frozen) else { return };
        if self.writing.written < end {
            return;
        }
        let under = self.writing.missing(self.full()).clip(EntryId::FIRST, end);
        let fragments = self.fragments_to_store(end);
        // R8: what is named newly, with the limbo count at the choice.
        let limbo_counts = self
            .writing
            .members
            .iter()
            .filter(|m| fragments.iter().any(|f| f.ensemble.contains(&m.bookie)))
            .filter_map(|m| m.limbo_count.map(|c| (m.bookie, c)))
            .collect();
        let length = self.writing.last.as_ref().map_or(0, |e| e.header().cumulative_length);
        let close = CloseLedger {
            ledger: self.ledger,
            version: frozen.version,
            last_entry: end,
            length,
            records: 0,
            fragments,
            under,
            limbo_counts,
        };
        self.phase = Phase::Close;
        out.push(Output::Close { close, last: self.writing.last.clone() });
    }

    /// Empty when nothing changed. A change that no entry came to lie in is dropped again.
    fn fragments_to_store(&self, end: EntryId) -> Vec<Fragment> {
        let frozen = self.frozen.as_ref().map(|r| r.fragments.as_slice()).unwrap_or_default();
        let mut out = Vec::with_capacity(self.writing.fragments.len());
        for f in &self.writing.fragments {
            if f.first_entry <= end {
                out.push(f.clone());
            } else if let Some(old) = frozen.iter().find(|o| o.first_entry == f.first_entry) {
                out.push(old.clone());
            }
        }
        if out == frozen { Vec::new() } else { out }
    }

    /// Stored: done. Else the record tells: CLOSED by another is success with *its* end, otherwise from the start.
    pub(super) fn on_closed(&mut self, outcome: MetaOutcome, out: &mut Vec<Output>) {
        match outcome {
            MetaOutcome::Committed(record) if record.state == LedgerState::Closed => {
                self.phase = Phase::Over;
                out.push(Output::Done(record));
            }
            _ => self.start(out),
        }
    }
}
