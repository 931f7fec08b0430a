//! 1.6 steps 2 and 3: freeze the fragments, fence, find the base.

use tidemill_types::{EntryId, LedgerRecord, quorum};

use super::{Abort, Output, Phase, RecoveryCore, bit, index_u8, new_member, ones};
use crate::core::FenceAnswer;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fencing {
    confirmed: u8,
    unknown: u8,
    lac: EntryId,
}

impl Default for Fencing {
    fn default() -> Self {
        Self { confirmed: 0, unknown: 0, lac: EntryId::NONE }
    }
}

impl RecoveryCore {
    /// R7: from here on all reads use this copy of the fragments.
    pub(super) fn enter_fence(&mut self, record: LedgerRecord, out: &mut Vec<Output>) {
        let Some(f) = record.last_fragment().filter(|f| !f.ensemble.is_empty() && f.ensemble.len() <= 8)
        else {
            return self.abort(Abort::BadRecord, out);
        };
        self.phase = Phase::Fence;
        self.fence = Fencing::default();
        self.reading.clear();
        self.writing.clear(f.ensemble.iter().map(|b| new_member(*b)).collect(), record.fragments.clone());
        self.end = None;
        for (i, b) in f.ensemble.iter().enumerate() {
            out.push(Output::Fence { index: index_u8(i), bookie: *b });
        }
        self.frozen = Some(record);
        self.check_fence(out);
    }

    pub(super) fn on_fenced(&mut self, index: u8, answer: FenceAnswer, out: &mut Vec<Output>) {
        let b = bit(usize::from(index));
        match answer {
            FenceAnswer::Confirmed { lac } => {
                self.fence.confirmed |= b;
                self.fence.unknown &= !b;
                self.fence.lac = self.fence.lac.max(lac);
            }
            FenceAnswer::Unknown(_) if self.fence.confirmed & b == 0 => self.fence.unknown |= b,
            FenceAnswer::Unknown(_) => {}
        }
        self.check_fence(out);
    }

    /// R2: EC confirmations, each of a durable fence (R25).
    fn check_fence(&mut self, out: &mut Vec<Output>) {
        let Some(f) = self.last_fragment() else { return };
        let (e, first) = (f.ensemble.len(), f.first_entry);
        let needed = self
            .rules
            .confirmations_needed
            .unwrap_or_else(|| quorum::ensemble_coverage(e, self.ack_quorum()));
        match quorum::coverage(e, needed, ones(self.fence.confirmed), ones(self.fence.unknown)) {
            quorum::Coverage::Open => {}
            quorum::Coverage::Impossible => self.abort(Abort::NotFenced, out),
            quorum::Coverage::Reached => {
                // R6: never below the last fragment (#2615).
                let base = if self.rules.start_at_last_fragment {
                    self.fence.lac.max(first.prev())
                } else {
                    self.fence.lac // M16
                };
                self.enter_read(base, out);
            }
        }
    }

    /// How many bookies confirmed the fence.
    #[must_use]
    pub fn confirmed(&self) -> usize {
        ones(self.fence.confirmed)
    }
}
