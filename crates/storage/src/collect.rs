//! Deleting a ledger (R20): its lock is held from before the last read of its record until the delete is durable.

use std::sync::Arc;

use tidemill_types::LedgerId;

use crate::{
    accept::accept,
    acks::Acks,
    fence::fence,
    lane::queue::Op,
    ledger::{Ledger, Parked},
    outcome::{Completion, UnknownReason, WriteOutcome},
    shared::Shared,
};

/// Locks a ledger for a collection.
pub(crate) fn lock(shared: &Shared, id: LedgerId) -> Option<Arc<Ledger>> {
    let ledger = shared.ledgers.get(id)?;
    let mut state = ledger.state.lock();
    if state.dead || state.collecting {
        return None;
    }
    state.collecting = true;
    drop(state);
    Some(ledger)
}

/// Queues the delete.
pub(crate) fn commit(shared: &Shared, ledger: &Arc<Ledger>, done: Completion<WriteOutcome>) {
    let op = Op::Collect { ledger: Arc::clone(ledger), done };
    if let Err((_, Op::Collect { done, .. })) = shared.push_back(ledger, op) {
        release(shared, ledger);
        if shared.poisoned().is_none() {
            done.answer(WriteOutcome::Unknown(UnknownReason::Stopped));
        }
    }
}

/// Gives a ledger back and lets what waited for it go on.
pub(crate) fn release(shared: &Shared, ledger: &Ledger) {
    let parked = {
        let mut state = ledger.state.lock();
        state.collecting = false;
        let parked = state.active.as_mut().map(|a| std::mem::take(&mut a.parked)).unwrap_or_default();
        state.trim();
        parked
    };
    resubmit(shared, parked);
}

/// Takes what waited as if it had come just now.
pub(crate) fn resubmit(shared: &Shared, parked: Vec<Parked>) {
    let mut acks = Acks::default();
    for p in parked {
        match p {
            Parked::Add(bytes, kind, ack) => accept(shared, bytes, kind, ack, &mut acks),
            Parked::Fence(id, done) => fence(shared, id, done),
        }
    }
    acks.send();
}
