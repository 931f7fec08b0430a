//! The steps.

use tidemill_ledger::core::{
    AddAnswer, MetaOutcome, Negative, ReadAnswer, Unknown,
    repair::{Copies, Held, Input, Output, RepairCore, Verdict, expected, missing, needs, verdict},
};
use tidemill_types::{
    BookieState, LedgerRecord,
    meta::{FinishRepair, RepairOutcome},
};

use super::{
    RepairScope, meta,
    state::{Act, Ask, Disk, Looking, Worker, World},
};
use crate::model::ledger::{number, uuid};

fn bookies(w: &World) -> impl Iterator<Item = (u8, &Disk)> {
    (0u8..).zip(&w.disks)
}

fn is_member(r: &LedgerRecord, b: u8) -> bool {
    r.fragments.iter().any(|f| f.ensemble.contains(&uuid(b)))
}

/// At most Qa-1 = 1 loss that is not repaired yet: a member may lose something while all others are said to be whole.
fn may_lose(scope: &RepairScope, w: &World, b: u8) -> bool {
    let whole = |(o, d): (u8, &Disk)| {
        o == b || !is_member(&w.record, o) || !matches!(d.state, BookieState::Lost | BookieState::Limbo)
    };
    let untouched = w.left.losses == scope.losses && w.left.limbos == scope.limbos;
    !is_member(&w.record, b) || (bookies(w).all(whole) && (!w.record.unchecked || untouched))
}

pub(super) fn actions(scope: &RepairScope, w: &World, out: &mut Vec<Act>) {
    let n = needs(&w.record, &w.table(), usize::from(scope.copies), |_| true);
    let idle = w.record.repair.is_none();
    if idle && matches!(n.copies, Copies::Target { .. }) {
        out.push(Act::Start);
    }
    if idle && n.look && w.looking.is_none() && w.mark.is_none() {
        out.push(Act::Look);
    }
    if !idle && w.left.abandons > 0 {
        out.push(Act::Abandon);
    }
    if let Some(l) = &w.looking {
        let open: Vec<u8> = (0u8..)
            .zip(&l.answers)
            .filter(|(b, a)| a.is_none() && is_member(&l.record, *b))
            .map(|(b, _)| b)
            .collect();
        for b in &open {
            if answers(scope, w, *b) {
                out.push(Act::Answer(*b));
            }
            if w.left.silences > 0 {
                out.push(Act::Silence(*b));
            }
        }
        if open.is_empty() {
            out.push(Act::Judge);
        }
    }
    if w.mark.is_some() {
        out.push(Act::Mark);
    }
    match (&w.worker, &w.record.repair) {
        (None, Some(r))
            if w.disks.get(usize::from(number(r.target))).is_some_and(|d| d.state != BookieState::Lost) =>
        {
            out.push(Act::Work);
        }
        (Some(k), _) => {
            for (i, ask) in k.asks.iter().enumerate() {
                let waits = match ask {
                    // A collection that has begun holds the ledger's lock: listings, reads and adds wait.
                    Ask::List => !answers(scope, w, k.me),
                    Ask::Write(_) => w.disks[usize::from(k.me)].collecting,
                    _ => false,
                };
                if !waits {
                    out.push(Act::Serve(i));
                }
                match ask {
                    Ask::Read(..) if w.left.time_outs > 0 => out.push(Act::TimeOut(i)),
                    Ask::Finish(_) if w.left.unknowns > 0 => out.push(Act::Unknown(i)),
                    _ => {}
                }
            }
            if w.left.crashes > 0 {
                out.push(Act::Crash);
            }
        }
        _ => {}
    }
    out.extend((0..w.late.len()).map(Act::Late));
    for (b, d) in bookies(w) {
        let here = !matches!(d.state, BookieState::Lost | BookieState::Retired);
        if here && w.left.losses > 0 && may_lose(scope, w, b) {
            out.push(Act::Lose(b));
        }
        if here
            && w.left.limbos > 0
            && d.state != BookieState::Limbo
            && !d.copies.is_empty()
            && may_lose(scope, w, b)
        {
            out.push(Act::Limbo(b));
        }
        if d.state == BookieState::Limbo {
            let Held::Ranges { ranges, .. } = d.held() else { continue };
            if missing(&expected(&w.record, uuid(b)), &ranges).is_empty() {
                out.push(Act::LeaveLimbo(b));
            }
        }
        if d.state == BookieState::Rw && w.left.drains > 0 && is_member(&w.record, b) {
            out.push(Act::Drain(b));
        }
        let leaves = matches!(d.state, BookieState::Lost | BookieState::Draining);
        if leaves && (!w.record.names(uuid(b)) || !scope.world_rules.retire_unnamed_only) {
            out.push(Act::Retire(b));
        }
        if scope.collects && here {
            if d.collecting {
                out.push(Act::Delete(b));
            } else if !d.copies.is_empty() && meta::collectable(&w.record, b, scope.world_rules) {
                out.push(Act::Collect(b));
            }
        }
    }
}

/// Whether a bookie can list what it holds now.
fn answers(scope: &RepairScope, w: &World, b: u8) -> bool {
    w.disks.get(usize::from(b)).is_some_and(|d| {
        let gone = matches!(d.state, BookieState::Lost | BookieState::Retired);
        let waits = d.collecting && scope.world_rules.listing_waits;
        !gone && !waits
    })
}

pub(super) fn apply(scope: &RepairScope, w: &World, a: Act) -> World {
    let mut w = w.clone();
    let copies = usize::from(scope.copies);
    match a {
        Act::Start => {
            if let Copies::Target { bookie, limbo_count } =
                needs(&w.record, &w.table(), copies, |_| true).copies
            {
                let version = w.record.version;
                meta::start(&mut w.record, &w.disks, version, bookie, limbo_count);
            }
        }
        Act::Abandon => {
            w.left.abandons -= 1;
            if let Some(target) = w.record.repair.as_ref().map(|r| r.target) {
                let (ledger, version) = (w.record.id, w.record.version);
                let end = FinishRepair { ledger, version, target, outcome: RepairOutcome::Abandoned };
                let _ = meta::finish(&mut w.record, &w.disks, &end, scope.world_rules);
            }
        }
        Act::Look => {
            w.looking = Some(Looking { record: w.record.clone(), answers: vec![None; w.disks.len()] });
        }
        Act::Answer(b) => {
            let held = w.disks[usize::from(b)].held();
            if let Some(l) = &mut w.looking {
                l.answers[usize::from(b)] = Some(held);
            }
        }
        Act::Silence(b) => {
            w.left.silences -= 1;
            if let Some(l) = &mut w.looking {
                l.answers[usize::from(b)] = Some(Held::Unknown);
            }
        }
        Act::Judge => judge(scope, &mut w),
        Act::Mark => {
            if let Some(version) = w.mark.take() {
                meta::mark_checked(&mut w.record, version);
            }
        }
        Act::Work => {
            if let Some(r) = &w.record.repair {
                let me = number(r.target);
                let mut core = RepairCore::new(uuid(me), 2, scope.rules);
                let mut out = Vec::new();
                core.start(&mut out);
                w.worker = Some(Worker { me, core, asks: Vec::new() });
                take(scope, &mut w, out);
            }
        }
        Act::Serve(i) => serve(scope, &mut w, i),
        Act::TimeOut(i) => {
            w.left.time_outs -= 1;
            if let Some(Ask::Read(b, entry)) = ask(&mut w, i) {
                let answer = ReadAnswer::Unknown(Unknown::TimedOut);
                step(scope, &mut w, Input::Read { source: uuid(b), entry, answer });
            }
        }
        Act::Unknown(i) => {
            w.left.unknowns -= 1;
            if let Some(Ask::Finish(end)) = ask(&mut w, i) {
                w.late.push(end);
                step(scope, &mut w, Input::Finished(MetaOutcome::Unknown));
            }
        }
        Act::Late(i) => {
            let end = w.late.remove(i);
            let _ = meta::finish(&mut w.record, &w.disks, &end, scope.world_rules);
        }
        Act::Crash => {
            w.left.crashes -= 1;
            w.worker = None;
        }
        Act::Lose(b) => {
            w.left.losses -= 1;
            lose(&mut w, b, BookieState::Lost);
        }
        Act::Limbo(b) => {
            w.left.limbos -= 1;
            w.disks[usize::from(b)].limbo_count += 1;
            lose(&mut w, b, BookieState::Limbo);
        }
        Act::LeaveLimbo(b) => w.disks[usize::from(b)].state = BookieState::Rw,
        Act::Drain(b) => {
            w.left.drains -= 1;
            w.disks[usize::from(b)].state = BookieState::Draining;
        }
        Act::Retire(b) => lose(&mut w, b, BookieState::Retired),
        Act::Collect(b) => w.disks[usize::from(b)].collecting = true,
        Act::Delete(b) => {
            let d = &mut w.disks[usize::from(b)];
            d.copies.clear();
            d.collecting = false;
        }
    }
    w
}

/// The copies go, and with them the process: a worker there begins again.
fn lose(w: &mut World, b: u8, state: BookieState) {
    let d = &mut w.disks[usize::from(b)];
    d.copies.clear();
    d.collecting = false;
    d.state = state;
    if state != BookieState::Limbo && w.worker.as_ref().is_some_and(|k| k.me == b) {
        w.worker = None;
    }
}

fn judge(scope: &RepairScope, w: &mut World) {
    let Some(l) = w.looking.take() else { return };
    let held = |b| l.answers.get(usize::from(number(b))).cloned().flatten().unwrap_or(Held::Unknown);
    match verdict(&l.record, &w.table(), held, scope.look_rules) {
        Verdict::Complete => w.mark = Some(l.record.version),
        Verdict::Lacks { bookie, limbo_count } => {
            meta::start(&mut w.record, &w.disks, l.record.version, bookie, limbo_count);
        }
        Verdict::Unknown => {}
    }
}

fn ask(w: &mut World, i: usize) -> Option<Ask> {
    w.worker.as_mut().filter(|k| i < k.asks.len()).map(|k| k.asks.remove(i))
}

fn serve(scope: &RepairScope, w: &mut World, i: usize) {
    let Some(ask) = ask(w, i) else { return };
    let Some(me) = w.worker.as_ref().map(|k| usize::from(k.me)) else { return };
    let input = match ask {
        Ask::Record => Input::Record(Some(w.record.clone())),
        Ask::List => Input::Listed(w.disks[me].held()),
        Ask::Read(b, entry) => {
            let d = &w.disks[usize::from(b)];
            let answer = match d.get(entry) {
                _ if matches!(d.state, BookieState::Lost | BookieState::Retired) => {
                    ReadAnswer::Unknown(Unknown::Closed)
                }
                Some(e) => ReadAnswer::Found(e.clone()),
                None if d.state == BookieState::Limbo => ReadAnswer::Unknown(Unknown::Undecided),
                None => ReadAnswer::Negative(Negative::NoSuchEntry),
            };
            Input::Read { source: uuid(b), entry, answer }
        }
        Ask::Write(e) => {
            let entry = e.header().entry;
            let answer = if w.disks[me].put(e) { AddAnswer::Ok } else { AddAnswer::Conflict };
            Input::Written { entry, answer }
        }
        Ask::Finish(end) => {
            Input::Finished(match meta::finish(&mut w.record, &w.disks, &end, scope.world_rules) {
                Ok(()) => MetaOutcome::Committed(w.record.clone()),
                Err(r) => MetaOutcome::Rejected(r),
            })
        }
    };
    step(scope, w, input);
}

fn step(scope: &RepairScope, w: &mut World, input: Input) {
    let table = w.table();
    let mut out = Vec::new();
    if let Some(k) = &mut w.worker {
        k.core.step(input, &table, usize::from(scope.copies), &mut out);
    }
    take(scope, w, out);
}

fn take(scope: &RepairScope, w: &mut World, out: Vec<Output>) {
    for o in out {
        let ask = match o {
            Output::ReadRecord => Ask::Record,
            Output::List => Ask::List,
            Output::Read { source, entry } => Ask::Read(number(source), entry),
            Output::Write(e) => Ask::Write(e),
            Output::Finish(end) => Ask::Finish(end),
            Output::Abort(_, end) => {
                // Told once; if the record moved on, the auditor ends it.
                let _ = meta::finish(&mut w.record, &w.disks, &end, scope.world_rules);
                w.worker = None;
                continue;
            }
            Output::Done { .. } | Output::Gone | Output::NotMine => {
                w.worker = None;
                continue;
            }
        };
        if let Some(k) = &mut w.worker {
            k.asks.push(ask);
        }
    }
}

pub(super) fn describe(w: &World, a: Act) -> String {
    let ask = |i: usize| match w.worker.as_ref().and_then(|k| k.asks.get(i).map(|a| (k.me, a))) {
        Some((me, Ask::Record)) => format!("worker {me} reads the record, version {}", w.record.version),
        Some((me, Ask::List)) => format!("worker {me} lists what it holds"),
        Some((me, Ask::Read(b, e))) => format!("worker {me} reads entry {e} from bookie {b}"),
        Some((me, Ask::Write(e))) => format!("worker {me} writes its copy of entry {}", e.header().entry),
        Some((me, Ask::Finish(f))) => {
            format!("worker {me} ends the repair with {:?} at version {}", f.outcome, f.version)
        }
        None => String::new(),
    };
    match a {
        Act::Start => "the auditor starts a repair".to_owned(),
        Act::Abandon => "the auditor takes the repair away".to_owned(),
        Act::Look => "the auditor asks the members what they hold".to_owned(),
        Act::Answer(b) => format!("bookie {b} answers"),
        Act::Silence(b) => format!("bookie {b} does not answer"),
        Act::Judge => "the auditor judges the answers".to_owned(),
        Act::Mark => "the verdict is applied: everything was checked".to_owned(),
        Act::Work => "the target finds the repair".to_owned(),
        Act::Serve(i) => ask(i),
        Act::TimeOut(i) => format!("{}: no answer", ask(i)),
        Act::Unknown(i) => format!("{}: outcome unknown", ask(i)),
        Act::Late(i) => {
            format!("an end sent earlier is applied: {:?}", w.late.get(i).map(|f| (&f.outcome, f.version)))
        }
        Act::Crash => "the worker crashes".to_owned(),
        Act::Lose(b) => format!("bookie {b} loses everything and is given up"),
        Act::Limbo(b) => format!("bookie {b} loses what it has and boots into limbo"),
        Act::LeaveLimbo(b) => format!("bookie {b} leaves limbo"),
        Act::Drain(b) => format!("bookie {b} is to be drained"),
        Act::Retire(b) => format!("bookie {b} is retired"),
        Act::Collect(b) => format!("bookie {b} looks at the record and begins to collect"),
        Act::Delete(b) => format!("bookie {b} deletes the ledger"),
    }
}
