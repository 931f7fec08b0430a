//! A recoverer's side: inputs for its core, and what its outputs do.

use tidemill_ledger::core::{AddAnswer, FenceAnswer, MetaOutcome, ReadAnswer, Unknown, recovery};
use tidemill_types::{BookieId, EntryId};

use super::{
    Scope,
    ledger::{Recoverer, State, number, uuid},
    meta,
    net::{Msg, Net},
    steps::command,
};

/// Write-backs that a recoverer has no answer for.
pub(super) fn writes_outstanding(s: &State, r: u8, index: u8) -> impl Iterator<Item = (u32, EntryId)> {
    let waiting = s.bookies.iter().flat_map(|b| b.waiting.iter().map(|m| &m.0));
    s.net.iter().chain(waiting).filter_map(move |m| match m {
        Msg::Write { r: o, index: i, attempt, entry, .. } if *o == r && *i == index => {
            Some((*attempt, entry.header().entry))
        }
        Msg::Written { r: o, index: i, attempt, entry } if *o == r && *i == index => Some((*attempt, *entry)),
        _ => None,
    })
}

pub(super) fn edit_recoverer<R>(s: &mut State, r: u8, f: impl FnOnce(&mut Recoverer) -> Vec<R>) -> Vec<R> {
    s.recoverers.get_mut(usize::from(r)).map(|p| p.edit(f)).unwrap_or_default()
}

pub(super) fn recoverer_step(scope: &Scope, s: &mut State, r: u8, input: recovery::Input) {
    let out = edit_recoverer(s, r, |r| {
        let mut out = Vec::new();
        r.core.step(input, &mut out);
        out
    });
    recoverer_outputs(scope, s, r, out);
}

pub(super) fn recoverer_outputs(scope: &Scope, s: &mut State, r: u8, out: Vec<recovery::Output>) {
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

pub(super) fn fail_write(scope: &Scope, s: &mut State, r: u8, index: u8) {
    let Some((attempt, entry)) = writes_outstanding(s, r, index).max() else { return };
    let answer = AddAnswer::Unknown(Unknown::TimedOut);
    recoverer_step(scope, s, r, recovery::Input::Written { index, attempt, entry, answer });
}

pub(super) fn time_out(scope: &Scope, s: &mut State, n: usize) {
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
