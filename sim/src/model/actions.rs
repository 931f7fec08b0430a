//! What can happen next in a state.

use tidemill_ledger::core::repair::expected;
use tidemill_types::{EntryId, LedgerState};

use super::{
    Scope,
    ledger::{Action, State, uuid},
    net::Msg,
    recoverer::writes_outstanding,
};

pub(super) fn actions(scope: &Scope, s: &State, out: &mut Vec<Action>) {
    let w = &s.writer;
    if !w.core.is_stopped() {
        if w.entries_left > 0 && !w.closing {
            out.push(Action::Append);
        }
        if w.changes_left > 0 && !w.closing && !w.core.is_changing() {
            out.extend((0..scope.copies).map(Action::Replace));
        }
        if scope.writer_closes && !w.closing {
            out.push(Action::BeginClose);
        }
    }
    for (i, r) in s.recoverers.iter().enumerate() {
        // Recoverers are alike: they start in order.
        if !r.started && (i == 0 || s.recoverers[i - 1].started) {
            out.push(Action::Start(u8_of(i)));
        }
        if r.started && r.changes_left > 0 && r.core.is_reading() {
            for index in 0..scope.copies {
                if writes_outstanding(s, u8_of(i), index).next().is_some() {
                    out.push(Action::FailWrite(u8_of(i), index));
                }
            }
        }
    }
    for (n, m) in s.net.iter().enumerate() {
        out.push(Action::Deliver(n));
        match m {
            Msg::Change { detached: false, .. } | Msg::WriterClose { detached: false, .. }
                if w.unknowns_left > 0 =>
            {
                out.push(Action::LoseOutcome(n));
            }
            Msg::Read { .. } | Msg::Fence { .. } if scope.timeouts => out.push(Action::TimeOut(n)),
            _ => {}
        }
    }
    for (i, b) in s.bookies.iter().enumerate() {
        if b.is_dirty() {
            out.push(Action::Sync(u8_of(i)));
            if s.crashes_left > 0 {
                out.push(Action::Crash(u8_of(i)));
            }
        }
        let spared = scope.wipes_replaced_only && s.meta.record.names(uuid(u8_of(i)));
        if s.wipes_left > 0 && b.known && !spared {
            out.push(Action::Wipe(u8_of(i)));
        }
        if scope.limbo_ends && b.limbo && may_leave_limbo(scope, s, u8_of(i)) {
            out.push(Action::LeaveLimbo(u8_of(i)));
        }
        let r = &s.meta.record;
        let collectable = match r.state {
            LedgerState::Closed => true,
            LedgerState::InRecovery => !scope.bookie_rules.collect_closed_only,
            LedgerState::Open => false,
        };
        if scope.collects && collectable && b.known && !r.names(uuid(u8_of(i))) {
            out.push(Action::Collect(u8_of(i)));
        }
    }
}

/// R15: everything that has an end and names it is back, and nothing without an end names it.
fn may_leave_limbo(scope: &Scope, s: &State, b: u8) -> bool {
    let r = &s.meta.record;
    let open =
        r.state != LedgerState::Closed && r.last_fragment().is_some_and(|f| f.ensemble.contains(&uuid(b)));
    let has = |e: EntryId| s.bookies.get(usize::from(b)).is_some_and(|b| b.synced.get(e).is_some());
    let back = expected(r, uuid(b)).iter().all(|x| (x.first.0..=x.last.0).all(|e| has(EntryId(e))));
    back && (!open || !scope.bookie_rules.limbo_until_closed)
}

fn u8_of(i: usize) -> u8 {
    u8::try_from(i).unwrap_or(u8::MAX)
}
