//! What a synced group changes, and its answers: all adds are indexed before the first one is acknowledged (R17, R25).

use std::sync::Arc;

use super::{core::Core, group::Placed, queue::Op};
use crate::{
    acks::Acks,
    collect::resubmit,
    counters::add,
    format::{index::Place, states::Deletion},
    ledger::{ActiveRow, Ledger, Located, Parked},
    outcome::{AddOutcome, FenceOutcome, UnknownReason, WriteOutcome},
    segment::Extent,
    shared::Shared,
};

impl Core {
    /// Indexes a group that starts at `at` in the active segment, then answers.
    pub(super) fn apply(&mut self, shared: &Shared, placed: Vec<Placed>, at: u64) {
        let mut acks = Acks::default();
        let mut later: Vec<Box<dyn FnOnce()>> = Vec::new();
        let mut parked: Vec<Parked> = Vec::new();
        for p in placed {
            let place_of = |len: usize| Place {
                offset: u32::try_from(at + p.at.unwrap_or(0) as u64).unwrap_or(u32::MAX),
                len: u32::try_from(len).unwrap_or(u32::MAX),
            };
            match p.op {
                Op::Add { ledger, entry, lac, bytes, ack, .. } => {
                    let row = ActiveRow { entry, place: place_of(bytes.len()), lac, bytes: None };
                    self.index_add(shared, &ledger, row, bytes);
                    acks.push(ack, AddOutcome::Ok);
                }
                Op::Again { ledger, entry, ack } => {
                    let there = match ledger.state.lock().locate(entry) {
                        Located::Memory(_) | Located::At(..) => true,
                        Located::Sealed(extents) => extents.iter().any(Extent::is_dense),
                        Located::Pending | Located::Absent => false,
                    };
                    // Not there: its write failed; the sender asks again.
                    let unknown = AddOutcome::Unknown(UnknownReason::NotWritten);
                    acks.push(ack, if there { AddOutcome::Ok } else { unknown });
                }
                Op::Fence { ledger, done } => {
                    let mut state = ledger.state.lock();
                    if p.at.is_some() {
                        state.fence_durable = true;
                        state.fence_queued = false;
                    }
                    let (lac, last_entry) = (state.lac(), tidemill_types::EntryId(state.last));
                    drop(state);
                    if let Some(done) = done {
                        let outcome = if shared.limbo() {
                            FenceOutcome::Unknown(UnknownReason::Limbo)
                        } else {
                            FenceOutcome::Fenced { lac, last_entry }
                        };
                        later.push(Box::new(move || done.answer(outcome)));
                    }
                }
                Op::Lac { ledger, lac, done } => {
                    let mut state = ledger.state.lock();
                    state.explicit_lac = state.explicit_lac.max(lac.0);
                    state.lac = state.lac.max(lac.0);
                    drop(state);
                    later.push(Box::new(move || done.answer(WriteOutcome::Ok)));
                }
                Op::Collect { ledger, done } => {
                    parked.extend(self.collected(shared, &ledger, p.deletion));
                    later.push(Box::new(move || done.answer(WriteOutcome::Ok)));
                }
            }
        }
        acks.send();
        for answer in later {
            answer();
        }
        resubmit(shared, parked);
    }

    fn index_add(&mut self, shared: &Shared, ledger: &Arc<Ledger>, mut row: ActiveRow, bytes: bytes::Bytes) {
        let Some(active) = &mut self.active else { return };
        active.rows += 1;
        let len = bytes.len();
        active.segment.add_live(i64::try_from(len).unwrap_or(i64::MAX));
        add(&shared.counters.payload_bytes, len as u64);
        add(&shared.counters.entries, 1);
        let number = active.segment.number;
        let entry = row.entry;
        row.bytes = Some(bytes);
        {
            let mut state = ledger.state.lock();
            state.index(number, row);
            state.settle(entry);
        }
        shared.damage.healed(ledger.id, entry);
        self.touched.entry(ledger.id).or_insert_with(|| Arc::clone(ledger));
        self.remember(shared, ledger, entry, len);
    }

    /// The delete is durable: forget the ledger (R20). Answers what waited for it.
    fn collected(
        &mut self,
        shared: &Shared,
        ledger: &Arc<Ledger>,
        deletion: Option<Deletion>,
    ) -> Vec<Parked> {
        self.touched.remove(&ledger.id);
        let mut state = ledger.state.lock();
        state.dead = true;
        let mut segments: Vec<u32> = Vec::new();
        for x in std::mem::take(&mut state.extents) {
            if let Some(s) = self.lane.segment(x.segment) {
                s.add_live(-i64::from(x.bytes));
            }
            segments.push(x.segment);
        }
        segments.dedup();
        let active = state.active.take();
        drop(state);
        let mut parked = Vec::new();
        if let Some(mut a) = active {
            if let Some(open) = &self.active {
                let bytes: i64 = a.rows.iter().map(|r| i64::from(r.place.len)).sum();
                open.segment.add_live(-bytes);
            }
            parked.append(&mut a.parked);
        }
        if let Some(d) = deletion {
            self.lane.hide(ledger.id, d, &segments);
        }
        shared.ledgers.remove(ledger);
        shared.damage.forget(ledger.id);
        add(&shared.counters.collected, 1);
        parked
    }
}
