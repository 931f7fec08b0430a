//! The steps: what each of them does to cores, bookies, metadata and messages.

use tidemill_ledger::core::{MetaOutcome, writer};
use tidemill_types::{BookieId, LedgerRecord, LedgerState, meta::Rejection};

use super::{
    Scope,
    deliver::{answer, deliver},
    ledger::{Action, State, uuid},
    net::Msg,
    recoverer::{edit_recoverer, fail_write, recoverer_outputs, time_out},
    writer::{lose_outcome, writer_outputs, writer_step},
};
use crate::hash::Part;

pub(super) fn apply(scope: &Scope, s: &State, a: Action) -> State {
    let mut s = s.clone();
    match a {
        Action::Append => {
            let out = s.writer.edit(|w| {
                w.entries_left -= 1;
                let mut out = Vec::new();
                let _ = w.core.add(b"", &[], &mut out);
                out
            });
            writer_outputs(scope, &mut s, out);
        }
        Action::Replace(i) => {
            let in_use: Vec<BookieId> = s.writer.core.unacknowledged().map(|(b, _)| b).collect();
            let spares: Vec<BookieId> =
                (0..scope.bookies).map(uuid).filter(|b| !in_use.contains(b)).collect();
            let failed = in_use.get(usize::from(i)).copied().into_iter().collect::<Vec<_>>();
            writer_step(scope, &mut s, writer::Input::Replace { failed: &failed, spares: &spares });
            s.writer.edit(|w| w.changes_left -= 1);
        }
        Action::BeginClose => {
            let out = s.writer.edit(|w| {
                w.closing = true;
                let mut out = Vec::new();
                let _ = w.core.begin_close(&mut out);
                out
            });
            writer_outputs(scope, &mut s, out);
        }
        Action::Start(r) => {
            let out = edit_recoverer(&mut s, r, |r| {
                r.started = true;
                let mut out = Vec::new();
                r.core.start(&mut out);
                out
            });
            recoverer_outputs(scope, &mut s, r, out);
        }
        Action::Deliver(n) => {
            if let Some(m) = s.net.take(n) {
                deliver(scope, &mut s, m);
            }
        }
        Action::LoseOutcome(n) => lose_outcome(scope, &mut s, n),
        Action::FailWrite(r, index) => fail_write(scope, &mut s, r, index),
        Action::TimeOut(n) => time_out(scope, &mut s, n),
        Action::Sync(b) => {
            if let Some(p) = s.bookies.get_mut(usize::from(b)) {
                for m in p.edit(super::bookie::Bookie::sync) {
                    answer(scope, &mut s, b, m.0);
                }
            }
        }
        Action::Crash(b) => {
            s.crashes_left -= 1;
            if let Some(p) = s.bookies.get_mut(usize::from(b)) {
                p.edit(super::bookie::Bookie::crash);
            }
        }
        Action::Wipe(b) => {
            s.wipes_left -= 1;
            let r = &s.meta.record;
            let named_last = r.state != LedgerState::Closed
                && r.last_fragment().is_some_and(|f| f.ensemble.contains(&uuid(b)));
            if let Some(p) = s.bookies.get_mut(usize::from(b)) {
                p.edit(|b| b.wipe(scope.bookie_rules, named_last));
            }
        }
        Action::LeaveLimbo(b) => {
            if let Some(p) = s.bookies.get_mut(usize::from(b)) {
                p.edit(|b| {
                    b.limbo = false;
                    b.fenced = true;
                    b.known = true;
                });
            }
        }
        Action::Collect(b) => {
            if let Some(p) = s.bookies.get_mut(usize::from(b)) {
                p.edit(super::bookie::Bookie::collect);
            }
        }
    }
    forget(scope, &mut s);
    s
}

/// Drops messages that can only hold somebody back or that nobody hears: "delayed for ever" is one of their futures.
fn forget(scope: &Scope, s: &mut State) {
    let writer_stopped = s.writer.core.is_stopped();
    let closed = s.meta.record.state == LedgerState::Closed;
    let State { net, recoverers, bookies, .. } = s;
    let over = |r: u8| recoverers.get(usize::from(r)).is_none_or(|r| r.core.is_over());
    let fencing = |r: u8| recoverers.get(usize::from(r)).is_some_and(|r| r.core.is_fencing());
    let reading = |r: u8| recoverers.get(usize::from(r)).is_some_and(|r| r.core.is_reading());
    net.retain(|m| match m {
        Msg::Add { bookie, .. } => {
            let fenced = bookies.get(usize::from(*bookie)).is_some_and(|b| b.fenced);
            let forgets = scope.wipes > 0 || scope.collects;
            !writer_stopped && (!fenced || scope.fenced_answers || forgets)
        }
        Msg::Added { .. } => !writer_stopped,
        Msg::Fence { r, .. } | Msg::Fenced { r, .. } => fencing(*r),
        Msg::Read { r, .. } | Msg::Data { r, .. } => reading(*r),
        Msg::Write { r, .. } => !over(*r) || !closed || scope.check_lac,
        Msg::Written { r, .. } => reading(*r),
        Msg::Change { .. } | Msg::WriterClose { .. } => !(closed && scope.meta_rules.conditional_close),
        Msg::RecoverClose { .. } => true,
    });
}

pub(super) fn command(
    m: &mut Part<super::ledger::Meta>,
    f: impl FnOnce(&mut LedgerRecord) -> Result<(), Rejection>,
) -> MetaOutcome {
    m.edit(|m| match f(&mut m.record) {
        Ok(()) => {
            if m.first_end.is_none() {
                m.first_end = m.record.last_entry;
            }
            MetaOutcome::Committed(m.record.clone())
        }
        Err(e) => MetaOutcome::Rejected(e),
    })
}
