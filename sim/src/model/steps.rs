//! The steps: what each of them does to cores, bookies, metadata and messages.

use tidemill_ledger::core::{
    AddAnswer, FenceAnswer, MetaOutcome, ReadAnswer, Unknown, recovery, repair::expected, writer,
};
use tidemill_types::{BookieId, EntryId, Incarnation, LedgerRecord, LedgerState, meta::Rejection};

use super::{
    Scope,
    deliver::{answer, deliver},
    ledger::{Action, Recoverer, State, Writer, number, uuid},
    meta,
    net::{Msg, Net},
};
use crate::hash::Part;

/// Tells the writer that a bookie can be sent to.
pub(super) fn bookie_up(core: &mut writer::WriterCore, bookie: BookieId) -> Vec<writer::Output> {
    let mut out = Vec::new();
    core.step(writer::Input::BookieUp { bookie, incarnation: Incarnation(1) }, &mut out);
    out
}

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
        if s.wipes_left > 0 && b.known {
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

/// Write-backs that a recoverer has no answer for.
fn writes_outstanding(s: &State, r: u8, index: u8) -> impl Iterator<Item = (u32, EntryId)> {
    let waiting = s.bookies.iter().flat_map(|b| b.waiting.iter().map(|m| &m.0));
    s.net.iter().chain(waiting).filter_map(move |m| match m {
        Msg::Write { r: o, index: i, attempt, entry, .. } if *o == r && *i == index => {
            Some((*attempt, entry.header().entry))
        }
        Msg::Written { r: o, index: i, attempt, entry } if *o == r && *i == index => Some((*attempt, *entry)),
        _ => None,
    })
}

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

fn edit_recoverer<R>(s: &mut State, r: u8, f: impl FnOnce(&mut Recoverer) -> Vec<R>) -> Vec<R> {
    s.recoverers.get_mut(usize::from(r)).map(|p| p.edit(f)).unwrap_or_default()
}

pub(super) fn writer_step(scope: &Scope, s: &mut State, input: writer::Input<'_>) {
    let out = s.writer.edit(|w| {
        let mut out = Vec::new();
        w.core.step(input, &mut out);
        out
    });
    writer_outputs(scope, s, out);
}

fn writer_outputs(scope: &Scope, s: &mut State, out: Vec<writer::Output>) {
    for o in out {
        match o {
            writer::Output::Send { index, bookie, attempt, entry } => {
                s.net.send(Msg::Add { bookie: number(bookie), index, attempt, entry });
            }
            writer::Output::Acknowledged { lac } => {
                s.writer.edit(|w: &mut Writer| w.acked = w.acked.max(lac));
            }
            writer::Output::MembersChanged => {
                let members: Vec<BookieId> = s.writer.core.unacknowledged().map(|(b, _)| b).collect();
                for b in members {
                    let out = s.writer.edit(|w| bookie_up(&mut w.core, b));
                    writer_outputs(scope, s, out);
                }
            }
            writer::Output::Propose(change) => s.net.send(Msg::Change { change, detached: false }),
            writer::Output::ReadRecord => {
                let record = s.meta.record.clone();
                writer_step(scope, s, writer::Input::Record(Some(record)));
            }
            writer::Output::CloseReady | writer::Output::CloseSettled(writer::CloseState::SendAgain) => {
                if let Some(close) = s.writer.edit(|w| w.core.close_command()) {
                    s.net.send(Msg::WriterClose { close, detached: false });
                }
            }
            writer::Output::ResendLater { .. }
            | writer::Output::ChangeAborted
            | writer::Output::CloseSettled(_)
            | writer::Output::Fenced
            | writer::Output::Degraded(_)
            | writer::Output::Restored(_)
            | writer::Output::RollWanted
            | writer::Output::VoidAnswer
            | writer::Output::Divergent(..) => {}
        }
    }
}

pub(super) fn recoverer_step(scope: &Scope, s: &mut State, r: u8, input: recovery::Input) {
    let out = edit_recoverer(s, r, |r| {
        let mut out = Vec::new();
        r.core.step(input, &mut out);
        out
    });
    recoverer_outputs(scope, s, r, out);
}

fn recoverer_outputs(scope: &Scope, s: &mut State, r: u8, out: Vec<recovery::Output>) {
    use recovery::Output as O;
    for o in out {
        match o {
            O::ReadRecord => {
                drop_round(&mut s.net, r);
                edit_recoverer(s, r, |r| -> Vec<()> {
                    r.version = None;
                    Vec::new()
                });
                let record = s.meta.record.clone();
                recoverer_step(scope, s, r, recovery::Input::Record(Some(record)));
            }
            O::StartRecovery(version) => {
                let outcome = command(&mut s.meta, |rec| meta::start_recovery(rec, version));
                recoverer_step(scope, s, r, recovery::Input::Started(outcome));
            }
            O::Fence { index, bookie } => s.net.send(Msg::Fence { r, bookie: number(bookie), index }),
            O::Read { index, bookie, entry, fence } => {
                s.net.send(Msg::Read { r, bookie: number(bookie), index, entry, fence });
            }
            O::WriteBack { index, bookie, attempt, entry } => {
                s.net.send(Msg::Write { r, bookie: number(bookie), index, attempt, entry });
            }
            O::NeedSpare { index, attempt, ensemble, .. } => {
                need_spare(scope, s, r, index, attempt, &ensemble);
            }
            O::LocalChange(fragments) if !scope.rules.local_changes => {
                // M5: stored at once, conditional on the version that this recoverer knows.
                let known = s.recoverers.get(usize::from(r)).and_then(|r| r.version);
                let version = known.unwrap_or(s.meta.record.version);
                let outcome = command(&mut s.meta, |rec| meta::store_fragments(rec, version, &fragments));
                if let MetaOutcome::Committed(rec) = outcome {
                    edit_recoverer(s, r, |r| -> Vec<()> {
                        r.version = Some(rec.version);
                        Vec::new()
                    });
                }
            }
            O::Close { mut close, .. } => {
                if let Some(v) = s.recoverers.get(usize::from(r)).and_then(|r| r.version) {
                    close.version = v;
                }
                s.net.send(Msg::RecoverClose { r, close });
            }
            O::LocalChange(_) | O::Done(_) | O::Gone | O::Abort(_) => {}
        }
    }
}

/// A recovery that starts anew hears nothing of what its earlier round asked.
fn drop_round(net: &mut Net, r: u8) {
    net.retain(|m| {
        !matches!(m,
            Msg::Fence { r: o, .. } | Msg::Fenced { r: o, .. } | Msg::Read { r: o, .. }
            | Msg::Data { r: o, .. } | Msg::Written { r: o, .. } if *o == r)
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

fn need_spare(scope: &Scope, s: &mut State, r: u8, index: u8, attempt: u32, ensemble: &[BookieId]) {
    let left = s.recoverers.get(usize::from(r)).map_or(0, |r| r.changes_left);
    let spare = (0..scope.bookies)
        .map(uuid)
        .find(|b| left > 0 && !ensemble.contains(b))
        .map(|bookie| recovery::Spare { bookie, limbo_count: 0 });
    if spare.is_some() {
        edit_recoverer(s, r, |r| -> Vec<()> {
            r.changes_left -= 1;
            Vec::new()
        });
    }
    recoverer_step(scope, s, r, recovery::Input::Spare { index, attempt, spare });
}

fn fail_write(scope: &Scope, s: &mut State, r: u8, index: u8) {
    let Some((attempt, entry)) = writes_outstanding(s, r, index).max() else { return };
    let answer = AddAnswer::Unknown(Unknown::TimedOut);
    recoverer_step(scope, s, r, recovery::Input::Written { index, attempt, entry, answer });
}

fn time_out(scope: &Scope, s: &mut State, n: usize) {
    let why = Unknown::TimedOut;
    match s.net.get(n).cloned() {
        Some(Msg::Fence { r, index, .. }) => {
            let answer = FenceAnswer::Unknown(why);
            recoverer_step(scope, s, r, recovery::Input::Fenced { index, answer });
        }
        Some(Msg::Read { r, index, entry, .. }) => {
            let answer = ReadAnswer::Unknown(why);
            recoverer_step(scope, s, r, recovery::Input::Read { index, entry, answer });
        }
        _ => {}
    }
}

fn lose_outcome(scope: &Scope, s: &mut State, n: usize) {
    let input = match s.net.take(n) {
        Some(Msg::Change { change, .. }) => {
            s.net.send(Msg::Change { change, detached: true });
            writer::Input::ChangeOutcome(MetaOutcome::Unknown)
        }
        Some(Msg::WriterClose { close, .. }) => {
            s.net.send(Msg::WriterClose { close, detached: true });
            writer::Input::CloseOutcome(MetaOutcome::Unknown)
        }
        _ => return,
    };
    s.writer.edit(|w| w.unknowns_left -= 1);
    writer_step(scope, s, input);
}
