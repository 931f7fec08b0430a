//! Taking an add: fence check, presence check and queueing are one step under the ledger's lock (R13, R24, R25).

use std::sync::Arc;

use bytes::Bytes;
use tidemill_types::{Entry, EntryId};

use crate::{
    acks::Acks,
    counters::add,
    lane::queue::{Op, Refused},
    ledger::{Ledger, LedgerState, Parked},
    lookup,
    outcome::{AckTo, AddKind, AddOutcome, ReadMode, ReadOutcome, TouchTicket, UnknownReason},
    report::SpaceState,
    shared::Shared,
};

/// Ledgers that wait for a collection hold at most this many operations each.
const MAX_PARKED: usize = 4096;

/// Takes an add, or answers it into `acks` at once.
pub(crate) fn accept(shared: &Shared, bytes: Bytes, kind: AddKind, ack: AckTo, acks: &mut Acks) {
    if shared.poisoned().is_some() {
        return;
    }
    let max = shared.config.max_entry_bytes;
    if bytes.len() > max {
        acks.push(ack, AddOutcome::TooLarge { len: bytes.len(), max });
        return;
    }
    let entry = match Entry::decode(bytes) {
        Ok(e) => e,
        Err(e) => {
            acks.push(ack, AddOutcome::Invalid(e));
            return;
        }
    };
    let mut ack = Some(ack);
    while let Some(a) = ack.take() {
        match try_accept(shared, &entry, kind, a) {
            Accepted::Queued => {}
            Accepted::Answer(a, outcome) => acks.push(a, outcome),
            // The handle was collected between the look-up and its lock.
            Accepted::Again(a) => ack = Some(a),
        }
    }
}

enum Accepted {
    Queued,
    Answer(AckTo, AddOutcome),
    Again(AckTo),
}

fn first_touch(shared: &Shared, entry: &Entry, ack: AckTo) -> Accepted {
    add(&shared.counters.first_touches, 1);
    let ledger = entry.header().ledger;
    let ticket = TouchTicket { ledger, generation: shared.ledgers.generation(ledger) };
    Accepted::Answer(ack, AddOutcome::FirstTouch { ticket, entry: entry.bytes().clone() })
}

fn handle(shared: &Shared, entry: &Entry, kind: AddKind) -> Option<Arc<Ledger>> {
    let id = entry.header().ledger;
    match kind {
        AddKind::Normal if shared.limbo() => shared.ledgers.get(id),
        AddKind::Normal => shared.ledgers.get_or_first(id, || shared.new_ledger(id, false)),
        AddKind::Recovery => {
            let (l, created) = shared.ledgers.get_or_create(id, || shared.new_ledger(id, true));
            if created {
                add(&shared.counters.fences_of_unknown, 1);
            }
            Some(l)
        }
    }
}

fn try_accept(shared: &Shared, entry: &Entry, kind: AddKind, ack: AckTo) -> Accepted {
    if let Some(refused) = no_room(shared, entry, kind) {
        // What is there already needs no room: a recovery of entries that every bookie has gets through on full disks.
        let there = (kind == AddKind::Recovery).then(|| held(shared, entry)).flatten();
        return Accepted::Answer(ack, there.unwrap_or(refused));
    }
    let Some(ledger) = handle(shared, entry, kind) else { return first_touch(shared, entry, ack) };
    let mut state = ledger.state.lock();
    if state.dead {
        return Accepted::Again(ack);
    }
    if state.collecting {
        let parked = &mut state.active_mut().parked;
        if parked.len() >= MAX_PARKED {
            return Accepted::Answer(ack, overloaded(shared));
        }
        parked.push(Parked::Add(entry.bytes().clone(), kind, ack));
        return Accepted::Queued;
    }
    if kind == AddKind::Normal {
        if state.fenced {
            add(&shared.counters.refused_fenced, 1);
            return Accepted::Answer(ack, AddOutcome::Fenced);
        }
        if shared.limbo() && !state.admitted {
            drop(state);
            return first_touch(shared, entry, ack);
        }
    }
    let id = entry.header().entry;
    if let Some(bytes) = state.pending_bytes(id.0) {
        if bytes != entry.bytes() {
            add(&shared.counters.conflicts, 1);
            return Accepted::Answer(ack, AddOutcome::Conflict);
        }
        let again = Op::Again { ledger: Arc::clone(&ledger), entry: id.0, ack };
        return push(shared, &ledger, again);
    }
    if id.0 <= state.last
        && let Some(outcome) = present(shared, &ledger, &state, entry)
    {
        return Accepted::Answer(ack, outcome);
    }
    if state.fenced {
        queue_fence(shared, &ledger, &mut state);
    }
    let op = Op::Add {
        ledger: Arc::clone(&ledger),
        entry: id.0,
        lac: entry.header().lac.0,
        bytes: entry.bytes().clone(),
        kind,
        ack,
    };
    let accepted = push(shared, &ledger, op);
    if matches!(accepted, Accepted::Queued) {
        state.active_mut().pending.push_back((id.0, entry.bytes().clone()));
    }
    accepted
}

/// The fence record of a ledger that was created fenced goes in front of its first recovery add (R27).
pub(crate) fn queue_fence(shared: &Shared, ledger: &Arc<Ledger>, state: &mut LedgerState) {
    if state.fence_durable || state.fence_queued {
        return;
    }
    let op = Op::Fence { ledger: Arc::clone(ledger), done: None };
    if shared.push_back(ledger, op).is_ok() {
        state.fence_queued = true;
    }
}

/// The answer to an add of an entry that is indexed.
fn held(shared: &Shared, entry: &Entry) -> Option<AddOutcome> {
    let ledger = shared.ledgers.get(entry.header().ledger)?;
    let state = ledger.state.lock();
    if state.dead || state.collecting {
        return None;
    }
    present(shared, &ledger, &state, entry)
}

/// R24: what there is under this id already. `None` = nothing, or a copy that fails its check and is to be replaced.
fn present(shared: &Shared, ledger: &Ledger, state: &LedgerState, entry: &Entry) -> Option<AddOutcome> {
    let id = EntryId(entry.header().entry.0);
    match lookup::in_state(shared, ledger, state, id, ReadMode::Full) {
        Some(ReadOutcome::Entry(bytes)) if bytes == entry.bytes() => {
            shared.damage.healed(ledger.id, id.0);
            Some(AddOutcome::Ok)
        }
        Some(ReadOutcome::Entry(_)) => {
            add(&shared.counters.conflicts, 1);
            tracing::error!(
                ledger = ledger.id.0,
                entry = id.0,
                "an add carries other bytes than the stored entry"
            );
            Some(AddOutcome::Conflict)
        }
        Some(ReadOutcome::Corrupt) => {
            add(&shared.counters.replaced, 1);
            None
        }
        Some(ReadOutcome::Unknown(why)) => Some(AddOutcome::Unknown(why)),
        Some(ReadOutcome::NoSuchEntry | ReadOutcome::NoSuchLedger) | None => None,
    }
}

fn overloaded(shared: &Shared) -> AddOutcome {
    add(&shared.counters.refused_overloaded, 1);
    AddOutcome::Overloaded { retry_after: shared.config.overload_delay }
}

fn no_room(shared: &Shared, entry: &Entry, kind: AddKind) -> Option<AddOutcome> {
    let by_hand = shared.read_only.load(std::sync::atomic::Ordering::Relaxed);
    let ledger = entry.header().ledger;
    // Cheap for the usual case of one lane; the lane of a held ledger is the recorded one.
    let lane = if shared.lanes.len() == 1 {
        0
    } else {
        shared.ledgers.get(ledger).map_or_else(|| shared.new_ledger(ledger, false).lane, |l| l.lane)
    };
    let space = shared.lanes[usize::from(lane)].space_state();
    let refused = match kind {
        AddKind::Normal => by_hand || space != SpaceState::ReadWrite,
        AddKind::Recovery => space == SpaceState::Full,
    };
    refused.then(|| {
        add(&shared.counters.refused_read_only, 1);
        AddOutcome::ReadOnly
    })
}

fn push(shared: &Shared, ledger: &Ledger, op: Op) -> Accepted {
    match shared.push_back(ledger, op) {
        Ok(()) => Accepted::Queued,
        Err((why, Op::Add { ack, .. } | Op::Again { ack, .. })) => {
            let outcome = match why {
                Refused::Full => overloaded(shared),
                Refused::Stopped => AddOutcome::Unknown(UnknownReason::Stopped),
            };
            Accepted::Answer(ack, outcome)
        }
        Err(_) => Accepted::Queued,
    }
}
