//! Fencing (R11, R25) and explicit LACs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tidemill_types::{EntryId, LedgerId};

use crate::{
    counters::add,
    lane::queue::Op,
    ledger::Parked,
    outcome::{Completion, FenceOutcome, UnknownReason, WriteOutcome},
    shared::Shared,
};

/// Sets `fenced` first; the answer comes when the record and every add accepted before are durable and indexed (R25).
pub(crate) fn fence(shared: &Shared, id: LedgerId, done: Completion<FenceOutcome>) {
    if shared.poisoned().is_some() {
        return;
    }
    loop {
        let (ledger, created) = shared.ledgers.get_or_create(id, || shared.new_ledger(id, true));
        if created {
            add(&shared.counters.fences_of_unknown, 1);
            tracing::debug!(target: "tidemill_rare", "fence of an unknown ledger");
        }
        let mut state = ledger.state.lock();
        if state.dead {
            continue;
        }
        if state.collecting {
            state.active_mut().parked.push(Parked::Fence(id, done));
            return;
        }
        state.fenced = true;
        if state.pending() > 0 {
            add(&shared.counters.fences_waited, 1);
            tracing::debug!(target: "tidemill_rare", "fence waited for accepted adds");
        } else if state.fence_durable {
            let (lac, last_entry) = (state.lac(), EntryId(state.last));
            drop(state);
            done.answer(if shared.limbo() {
                FenceOutcome::Unknown(UnknownReason::Limbo)
            } else {
                FenceOutcome::Fenced { lac, last_entry }
            });
            return;
        }
        let op = Op::Fence { ledger: Arc::clone(&ledger), done: Some(done) };
        match shared.push_back(&ledger, op) {
            Ok(()) => state.fence_queued |= !state.fence_durable,
            Err((_, op)) => {
                drop(state);
                if let Op::Fence { done: Some(done), .. } = op
                    && shared.poisoned().is_none()
                {
                    done.answer(FenceOutcome::Unknown(UnknownReason::Stopped));
                }
            }
        }
        return;
    }
}

/// Fences many; answers once. In limbo a fence is durable though its LAC is not told, so that counts as done.
pub(crate) fn fence_all_of(shared: &Shared, ledgers: &[LedgerId], done: Completion<WriteOutcome>) {
    if ledgers.is_empty() {
        done.answer(WriteOutcome::Ok);
        return;
    }
    let left = Arc::new(AtomicUsize::new(ledgers.len()));
    let worst = Arc::new(Mutex::new(WriteOutcome::Ok));
    let done = Arc::new(Mutex::new(Some(done)));
    for &ledger in ledgers {
        let (left, worst, done) = (Arc::clone(&left), Arc::clone(&worst), Arc::clone(&done));
        fence(
            shared,
            ledger,
            Completion::new(move |outcome| {
                if let FenceOutcome::Unknown(why) = outcome
                    && why != UnknownReason::Limbo
                {
                    *worst.lock() = WriteOutcome::Unknown(why);
                }
                if left.fetch_sub(1, Ordering::SeqCst) == 1
                    && let Some(done) = done.lock().take()
                {
                    done.answer(*worst.lock());
                }
            }),
        );
    }
}

/// Stores an explicit LAC of a ledger that is held.
pub(crate) fn write_lac(shared: &Shared, id: LedgerId, lac: EntryId, done: Completion<WriteOutcome>) {
    if shared.poisoned().is_some() {
        return;
    }
    let Some(ledger) = shared.ledgers.get(id) else {
        done.answer(if shared.limbo() {
            WriteOutcome::Unknown(UnknownReason::Limbo)
        } else {
            WriteOutcome::NoSuchLedger
        });
        return;
    };
    let state = ledger.state.lock();
    if state.dead || state.collecting {
        drop(state);
        done.answer(WriteOutcome::Unknown(UnknownReason::Collecting));
        return;
    }
    if lac.0 <= state.lac {
        drop(state);
        done.answer(WriteOutcome::Ok);
        return;
    }
    let op = Op::Lac { ledger: Arc::clone(&ledger), lac, done };
    let refused = shared.push_back(&ledger, op).err();
    drop(state);
    if let Some((_, Op::Lac { done, .. })) = refused
        && shared.poisoned().is_none()
    {
        done.answer(WriteOutcome::Unknown(UnknownReason::Stopped));
    }
}
