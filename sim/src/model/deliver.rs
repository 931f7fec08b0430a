//! What a message does where it arrives.

use tidemill_ledger::core::{AddAnswer, FenceAnswer, Negative, ReadAnswer, recovery, writer};
use tidemill_types::{Entry, EntryId, LedgerState};

use super::{
    Scope,
    bookie::Added,
    ledger::{Msg2, State, uuid},
    meta,
    net::Msg,
    recoverer::recoverer_step,
    steps::command,
    writer::writer_step,
};

/// A bookie answers.
pub(super) fn answer(scope: &Scope, s: &mut State, b: u8, m: Msg) {
    if matches!(m, Msg::Added { .. }) {
        return s.net.send(m);
    }
    // A read that waited is answered from what is durable now.
    let m = match m {
        Msg::Data { r, index, entry, .. } => {
            let found = copy_of(s, b, entry);
            if found.is_none() && in_limbo(s, b) {
                return; // unknown
            }
            Msg::Data { r, index, entry, found }
        }
        Msg::Fenced { .. } if in_limbo(s, b) => return, // unknown; the fence stands
        Msg::Fenced { r, index, .. } => {
            let lac = s.bookies.get(usize::from(b)).map_or(EntryId::NONE, |b| b.lac);
            Msg::Fenced { r, index, lac }
        }
        m => m,
    };
    if scope.prompt_answers {
        deliver(scope, s, m);
    } else {
        s.net.send(m);
    }
}

fn in_limbo(s: &State, b: u8) -> bool {
    s.bookies.get(usize::from(b)).is_some_and(|b| b.limbo)
}

fn copy_of(s: &State, b: u8, entry: EntryId) -> Option<Entry> {
    s.bookies.get(usize::from(b)).and_then(|b| b.synced.get(entry).cloned())
}

fn add(scope: &Scope, s: &mut State, b: u8, entry: Entry, recovery: bool, ack: Msg, refusal: Option<Msg>) {
    if !recovery && !admitted(scope, s, b) {
        if let Some(m) = refusal.filter(|_| scope.fenced_answers) {
            s.net.send(m);
        }
        return;
    }
    let Some(p) = s.bookies.get_mut(usize::from(b)) else { return };
    match p.edit(|b| b.add(entry, recovery, !scope.async_sync)) {
        Added::Durable if scope.prompt_answers && recovery => deliver(scope, s, ack),
        Added::Durable => s.net.send(ack),
        Added::Waits => p.edit(|b| b.waiting.push(Msg2(ack))),
        Added::Fenced => {
            if let Some(m) = refusal.filter(|_| scope.fenced_answers) {
                s.net.send(m);
            }
        }
    }
}

/// R27: what the record says counts when the bookie may have forgotten the ledger.
fn admitted(scope: &Scope, s: &State, b: u8) -> bool {
    let asks = s.bookies.get(usize::from(b)).is_some_and(|b| b.asks_first());
    let r = &s.meta.record;
    !asks
        || !scope.bookie_rules.first_touch
        || (r.state == LedgerState::Open && r.last_fragment().is_some_and(|f| f.ensemble.contains(&uuid(b))))
}

fn fence(scope: &Scope, s: &mut State, b: u8, reply: Msg) {
    let Some(p) = s.bookies.get_mut(usize::from(b)) else { return };
    if p.edit(|b| b.fence(scope.bookie_rules)) {
        answer(scope, s, b, reply);
    } else {
        p.edit(|b| b.waiting.push(Msg2(reply)));
    }
}

pub(super) fn deliver(scope: &Scope, s: &mut State, m: Msg) {
    match m {
        Msg::Add { bookie, index, attempt, entry } => {
            let id = entry.header().entry;
            let reply = |ok| Msg::Added { bookie, index, attempt, entry: id, ok };
            add(scope, s, bookie, entry, false, reply(true), Some(reply(false)));
        }
        Msg::Added { bookie, index, attempt, entry, ok } => {
            let answer = if ok { AddAnswer::Ok } else { AddAnswer::Fenced };
            let input = writer::Input::Answer { index, bookie: uuid(bookie), attempt, entry, answer };
            writer_step(scope, s, input);
        }
        Msg::Fence { r, bookie, index } => {
            fence(scope, s, bookie, Msg::Fenced { r, index, lac: EntryId::NONE });
        }
        Msg::Fenced { r, index, lac } => {
            let answer = FenceAnswer::Confirmed { lac };
            recoverer_step(scope, s, r, recovery::Input::Fenced { index, answer });
        }
        Msg::Read { r, bookie, index, entry, fence: with_fence } => {
            let reply = Msg::Data { r, index, entry, found: None };
            if with_fence {
                fence(scope, s, bookie, reply);
            } else {
                answer(scope, s, bookie, reply);
            }
        }
        Msg::Data { r, index, entry, found } => {
            let answer = found.map_or(ReadAnswer::Negative(Negative::NoSuchEntry), ReadAnswer::Found);
            recoverer_step(scope, s, r, recovery::Input::Read { index, entry, answer });
        }
        Msg::Write { r, bookie, index, attempt, entry } => {
            let ack = Msg::Written { r, index, attempt, entry: entry.header().entry };
            add(scope, s, bookie, entry, true, ack, None);
        }
        Msg::Written { r, index, attempt, entry } => {
            let answer = AddAnswer::Ok;
            recoverer_step(scope, s, r, recovery::Input::Written { index, attempt, entry, answer });
        }
        Msg::Change { change, detached } => {
            let outcome = command(&mut s.meta, |rec| meta::change(rec, &change, scope.meta_rules));
            if !detached {
                writer_step(scope, s, writer::Input::ChangeOutcome(outcome));
            }
        }
        Msg::WriterClose { close, detached } => {
            let rules = scope.meta_rules;
            let outcome = command(&mut s.meta, |rec| meta::close(rec, &close, true, rules));
            if !detached {
                writer_step(scope, s, writer::Input::CloseOutcome(outcome));
            }
        }
        Msg::RecoverClose { r, close } => {
            let rules = scope.meta_rules;
            let outcome = command(&mut s.meta, |rec| meta::close(rec, &close, false, rules));
            recoverer_step(scope, s, r, recovery::Input::Closed(outcome));
        }
    }
}
