//! Answers of operations that were not written.

use super::{core::Core, queue::Op};
use crate::{
    acks::Acks,
    collect::release,
    outcome::{AddOutcome, FenceOutcome, UnknownReason, WriteOutcome},
    shared::Shared,
};

impl Core {
    /// `why` = `None`: nothing was written, for want of room.
    pub(super) fn give_up_one(
        shared: &Shared,
        op: Op,
        why: Option<UnknownReason>,
        acks: &mut Acks,
        later: &mut Vec<Box<dyn FnOnce()>>,
    ) {
        let add = why.map_or(AddOutcome::ReadOnly, AddOutcome::Unknown);
        let write = why.map_or(WriteOutcome::ReadOnly, WriteOutcome::Unknown);
        match op {
            Op::Add { ledger, entry, ack, .. } => {
                let mut state = ledger.state.lock();
                state.settle(entry);
                state.trim();
                drop(state);
                acks.push(ack, add);
            }
            Op::Again { ack, .. } => acks.push(ack, AddOutcome::Unknown(UnknownReason::NotWritten)),
            Op::Fence { ledger, done } => {
                // The fence stays set in memory; the next request tries to write it again.
                ledger.state.lock().fence_queued = false;
                if let Some(done) = done {
                    later.push(Box::new(move || {
                        done.answer(FenceOutcome::Unknown(UnknownReason::NotWritten));
                    }));
                }
            }
            Op::Lac { done, .. } => later.push(Box::new(move || done.answer(write))),
            Op::Collect { ledger, done } => {
                release(shared, &ledger);
                later.push(Box::new(move || done.answer(write)));
            }
        }
    }
}
