//! L3: a script of adds, fences, collections, rewrites and restarts; the power goes at every n-th operation of the disk, with any
//! subset of what was not synced lost. After each crash: what was acknowledged is there byte for byte, what was fenced stays fenced, what was
//! collected stays away, nothing asks for limbo, and a second crash during the boot changes nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use common::*;
use parking_lot::Mutex;
use tidemill_runtime::io::{CrashPlan, Disk};
use tidemill_storage::*;
use tidemill_types::{EntryId, LanePosition, LedgerId};

/// What the callers were told.
#[derive(Clone, Debug, Default)]
struct Told {
    acked: BTreeSet<(u64, i64)>,
    /// Sent, whatever the answer: may be there.
    sent: BTreeSet<(u64, i64)>,
    fenced: BTreeSet<u64>,
    /// LACs stored explicitly.
    lacs: BTreeMap<u64, i64>,
    /// A collection was started: its ledger is there or not, as a whole.
    collecting: BTreeSet<u64>,
    collected: BTreeSet<u64>,
    positions: Vec<LanePosition>,
}

type Shared = Arc<Mutex<Told>>;

fn send(engine: &Engine, told: &Shared, ledger: u64, e: i64, kind: AddKind) {
    told.lock().sent.insert((ledger, e));
    let t = Arc::clone(told);
    engine.add(
        entry(ledger, e),
        kind,
        Completion::new(move |o| {
            if o == AddOutcome::Ok {
                t.lock().acked.insert((ledger, e));
            }
        }),
    );
}

fn fence(engine: &Engine, told: &Shared, ledger: u64) {
    let t = Arc::clone(told);
    engine.fence(
        LedgerId(ledger),
        Completion::new(move |o| {
            if matches!(o, FenceOutcome::Fenced { .. }) {
                t.lock().fenced.insert(ledger);
            }
        }),
    );
}

fn collect(engine: &Engine, told: &Shared, ledger: u64) {
    let Some(guard) = engine.begin_collect(LedgerId(ledger)) else { return };
    told.lock().collecting.insert(ledger);
    let t = Arc::clone(told);
    guard.commit(Completion::new(move |o| {
        if o == WriteOutcome::Ok {
            t.lock().collected.insert(ledger);
        }
    }));
}

fn lac(engine: &Engine, told: &Shared, ledger: u64, lac: i64) {
    let t = Arc::clone(told);
    engine.write_lac(
        LedgerId(ledger),
        EntryId(lac),
        Completion::new(move |o| {
            if o == WriteOutcome::Ok {
                t.lock().lacs.insert(ledger, lac);
            }
        }),
    );
}

/// The script of one life. Stops silently when the power is gone.
fn live(bench: &Bench, engine: &Engine, told: &Shared, life: i64) {
    let base = life * 40;
    for e in base..base + 40 {
        for ledger in 1..=4 {
            send(engine, told, ledger, e, AddKind::Normal);
        }
        // Short-lived ledgers make dead space.
        // Their ids rise above everything collected, or they would need a first touch.
        let short = (1000 + e / 5) as u64;
        send(engine, told, short, e % 5, AddKind::Normal);
        engine.step();
        if e % 9 == 0 {
            lac(engine, told, 2, e);
        }
        if e % 10 == 3 {
            fence(engine, told, 200 + e as u64);
            send(engine, told, 300 + e as u64, 7, AddKind::Recovery);
        }
        if e % 10 == 9 {
            collect(engine, told, short - 1);
            collect(engine, told, short);
            collect(engine, told, 300 + e as u64 - 6);
        }
        if e % 10 == 6 {
            engine.step();
            idle(bench, engine);
            let _ = engine.maintain(&|_| {});
        }
    }
    send(engine, told, 4, base + 40, AddKind::Normal);
    fence(engine, told, 4);
    engine.step();
    let _ = engine.maintain(&|_| {});
    idle(bench, engine);
    if engine.poisoned().is_none() {
        told.lock().positions = engine.positions();
    }
}

fn check(engine: &Engine, report: &BootReport, told: &Told, what: &str) {
    assert!(!report.found_loss(), "{what}: {:?}", report.losses);
    assert!(!engine.limbo(), "{what}");
    for p in &told.positions {
        let now = report.positions.iter().find(|q| q.lane == p.lane);
        assert!(now.is_some_and(|q| q >= p), "{what}: {p:?} {now:?}");
    }
    for &(ledger, e) in &told.acked {
        let got = read(engine, ledger, e);
        if told.collected.contains(&ledger) {
            assert_eq!(got, ReadOutcome::NoSuchLedger, "{what}: {ledger}/{e} came back");
        } else if !told.collecting.contains(&ledger) || got != ReadOutcome::NoSuchLedger {
            assert_eq!(got, ReadOutcome::Entry(entry(ledger, e)), "{what}: {ledger}/{e}");
        }
    }
    for &(ledger, e) in told.sent.difference(&told.acked) {
        match read(engine, ledger, e) {
            ReadOutcome::Entry(b) => assert_eq!(b, entry(ledger, e), "{what}"),
            ReadOutcome::NoSuchEntry | ReadOutcome::NoSuchLedger => {}
            other => panic!("{what}: {ledger}/{e} {other:?}"),
        }
    }
    for &ledger in &told.fenced {
        assert!(engine.ledger(LedgerId(ledger)).is_some_and(|l| l.fenced), "{what}: {ledger} is not fenced");
    }
    for (&ledger, &lac) in &told.lacs {
        let LacOutcome::Lac(now) = engine.lac(LedgerId(ledger)) else { panic!("{what}") };
        assert!(now.0 >= lac, "{what}");
    }
    for l in engine.list_ledgers(None, 10_000) {
        if (300..1000).contains(&l.ledger.0) {
            assert!(l.fenced, "{what}: {} was created by a recovery add", l.ledger);
        }
    }
}

fn has_power(bench: &Bench) -> bool {
    bench.disk.list(std::path::Path::new("/lane0")).is_ok()
}

const PLANS: [CrashPlan; 4] = [CrashPlan::LoseAll, CrashPlan::KeepAll, CrashPlan::Random, CrashPlan::Torn];

/// One run: a clean life, then one in which the power goes after `n` operations, then a boot that loses power too, then the checks.
fn run(n: u64, plan: CrashPlan, seed: u64, lanes: usize) -> bool {
    let what = format!("n {n}, {plan:?}, seed {seed}, {lanes} lanes");
    let bench = Bench::new(seed, lanes);
    let told: Shared = Shared::default();
    bench.disk.lose_power_after(n);
    let mut finished = false;
    if let Ok((engine, _)) = bench.try_boot(Some(0)) {
        live(&bench, &engine, &told, 0);
        drop(engine);
        if let Ok((engine, report)) = bench.try_boot(Some(0))
            && has_power(&bench)
        {
            check(&engine, &report, &told.lock().clone(), &what);
            live(&bench, &engine, &told, 1);
            finished = engine.poisoned().is_none() && has_power(&bench);
        }
    }
    bench.disk.crash(plan);
    // A boot that dies on its way.
    bench.disk.lose_power_after(seed % 13);
    drop(bench.try_boot(Some(0)));
    bench.disk.crash(plan);
    let before = told.lock().clone();
    let (engine, report) = bench.try_boot(Some(0)).unwrap_or_else(|e| panic!("{what}: {e}"));
    check(&engine, &report, &before, &what);
    // And it goes on.
    send(&engine, &told, 900, 0, AddKind::Recovery);
    engine.step();
    assert!(told.lock().acked.contains(&(900, 0)), "{what}");
    finished
}

fn matrix(lanes: usize, step: usize) {
    let mut n = 0;
    loop {
        let plan = PLANS[usize::try_from(n / step as u64).unwrap() % PLANS.len()];
        if run(n, plan, n * 31 + lanes as u64, lanes) {
            break;
        }
        n += step as u64;
    }
    assert!(n > 100, "{n}");
}

#[test]
fn power_loss_at_every_operation_one_lane() {
    matrix(1, 1);
}

#[test]
fn power_loss_at_every_third_operation_two_lanes() {
    matrix(2, 3);
}

/// The matrix is worth what its script reaches.
#[test]
fn the_script_seals_rewrites_and_collects() {
    let bench = Bench::new(0, 1);
    let told: Shared = Shared::default();
    let (engine, _) = bench.boot();
    live(&bench, &engine, &told, 0);
    let s = engine.stats();
    assert!(s.sealed_segments > 4 && s.removed_segments > 0 && s.rewritten_bytes > 0, "{s:?}");
    assert!(
        s.collected > 7 && s.closing_groups > 2 && s.fences_of_unknown > 4 && s.fences_waited > 0,
        "{s:?}"
    );
    {
        let told = told.lock();
        assert_eq!(told.acked.len(), told.sent.len());
    }
    // A crash without any loss: everything is as it was told.
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, report) = bench.boot();
    check(&engine, &report, &told.lock().clone(), "clean");
}

/// Every plan at the operations around seals, rewrites and boots of one seed: the random ones with several seeds.
#[test]
fn many_subsets_of_few_moments() {
    for n in (40..400).step_by(37) {
        for seed in 0..12 {
            run(n, if seed % 2 == 0 { CrashPlan::Random } else { CrashPlan::Torn }, seed, 1);
        }
    }
}

/// Power is lost, then a block of the segment that was being written is hurt at rest: turned over, or told as never written. Either
/// the boot finds a loss, or the position that it reports is below the one that was synced (R16), or everything is there.
#[test]
fn damage_after_a_crash_is_no_torn_tail() {
    let (mut found, mut told_by_position) = (0, 0);
    for n in (60..900).step_by(67) {
        let bench = Bench::new(n, 1);
        let told: Shared = Shared::default();
        bench.disk.lose_power_after(n);
        if let Ok((engine, _)) = bench.try_boot(Some(0)) {
            live(&bench, &engine, &told, 0);
        }
        bench.disk.crash(PLANS[n as usize % PLANS.len()]);
        let told = told.lock().clone();
        let whole = Bench { disk: bench.disk.fork(n), ..Bench::new(n, 1) }.scan().unwrap().report().clone();
        let newest = bench.disk.list(std::path::Path::new("/lane0")).unwrap();
        let Some(newest) = newest.into_iter().rfind(|i| i.name.ends_with(".seg")) else { continue };
        let path = std::path::Path::new("/lane0").join(newest.name);
        for at in (4096..newest.len).step_by(4096) {
            for hole in [false, true] {
                let what = format!("n {n}, {} at {at}, hole {hole}", path.display());
                let hurt = Bench { disk: bench.disk.fork(at), ..Bench::new(n, 1) };
                hurt.boots.store(100, std::sync::atomic::Ordering::SeqCst);
                if hole {
                    hurt.disk.punch(&path, at..at + 4096).unwrap();
                } else {
                    hurt.disk.flip_bit(&path, (at + 50) * 8 + 3).unwrap();
                }
                let Ok((engine, report)) = hurt.try_boot(Some(0)) else { panic!("{what}") };
                if report.found_loss() {
                    found += 1;
                    for &(ledger, e) in told.acked.iter().filter(|(l, _)| !told.collecting.contains(l)) {
                        let got = read(&engine, ledger, e);
                        let denied = matches!(got, ReadOutcome::NoSuchEntry | ReadOutcome::NoSuchLedger);
                        assert!(!denied, "{what}: {ledger}/{e} is denied");
                    }
                } else if report.positions < whole.positions {
                    told_by_position += 1;
                } else {
                    check(&engine, &report, &told, &what);
                }
            }
        }
    }
    assert!(found > 20 && told_by_position > 5, "{found} {told_by_position}");
}
