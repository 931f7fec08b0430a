//! A disk without room: what must get through gets through, over restarts too, and the engine goes on by itself when there is room.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use std::time::Duration;

use common::*;
use tidemill_runtime::io::CrashPlan;
use tidemill_storage::*;
use tidemill_types::LedgerId;

const SEGMENT: u64 = 256 << 10;

fn bench(seed: u64) -> Bench {
    let mut bench = Bench::new(seed, 1);
    bench.config.segment_bytes = SEGMENT;
    bench.config.reserve_bytes = SEGMENT;
    bench.disk.set_total(4 << 20);
    bench
}

/// Adds to ledgers 1 and 2 until the disk is full. Answers how many each has.
fn fill(bench: &Bench, engine: &Engine) -> i64 {
    for e in 0..20_000 {
        bench.clock.advance(Duration::from_millis(300));
        for ledger in 1..=2 {
            match add(engine, entry(ledger, e), AddKind::Normal) {
                Some(AddOutcome::Ok) => {}
                Some(AddOutcome::ReadOnly) => {
                    assert!(e > 300, "{e}");
                    return e;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("never full")
}

fn state(engine: &Engine) -> SpaceState {
    engine.info().lanes[0].space
}

fn is_fenced(engine: &Engine, ledger: u64) -> bool {
    engine.ledger(LedgerId(ledger)).is_some_and(|l| l.fenced)
}

#[test]
fn fences_collections_and_known_entries_get_through_over_restarts() {
    let bench = bench(21);
    let (mut engine, _) = bench.boot();
    assert_eq!(engine.info().lanes[0].reserve_bytes, SEGMENT);
    let stored = fill(&bench, &engine);
    assert_eq!(state(&engine), SpaceState::ReadOnly);
    for round in 0..12 {
        // A machine that is switched off, a process that is killed, an orderly end.
        match round % 3 {
            0 => bench.disk.crash(CrashPlan::LoseAll),
            1 => bench.disk.crash(CrashPlan::KeepAll),
            _ => engine.shutdown(),
        }
        drop(engine);
        let report;
        (engine, report) = bench.boot();
        assert!(!report.found_loss(), "{round}: {:?}", report.losses);
        assert_ne!(state(&engine), SpaceState::ReadWrite, "{round}");
        let fenced = fence(&engine, 100 + round);
        assert!(matches!(fenced, Some(FenceOutcome::Fenced { .. })), "{round}: {fenced:?}");
        assert_eq!(add(&engine, entry(1, 7), AddKind::Recovery), Some(AddOutcome::Ok), "{round}");
        assert_eq!(add(&engine, entry(9, 0), AddKind::Normal), Some(AddOutcome::ReadOnly), "{round}");
        for e in [0, stored - 1] {
            assert_eq!(read(&engine, 2, e), ReadOutcome::Entry(entry(2, e)), "{round}");
        }
    }
    assert!(engine.poisoned().is_none());
    // The deletions are written into the reserve as well; then there is room, and plain adds are taken by themselves.
    assert_eq!(collect(&engine, 1), Some(WriteOutcome::Ok));
    assert_eq!(collect(&engine, 2), Some(WriteOutcome::Ok));
    while engine.maintain(&|_| {}).unwrap() {}
    bench.clock.advance(Duration::from_secs(2));
    engine.step();
    assert_eq!(state(&engine), SpaceState::ReadWrite);
    assert_eq!(engine.info().lanes[0].reserve_bytes, SEGMENT, "the reserve is whole again");
    let again = fill_one(&engine, 3000, 400);
    assert!(again, "a deleted ledger's room takes adds");
    engine.shutdown();
    drop(engine);
    let (engine, report) = bench.boot();
    assert!(!report.found_loss(), "{:?}", report.losses);
    for round in 0..12 {
        assert!(is_fenced(&engine, 100 + round), "{round}");
    }
    assert_eq!(read(&engine, 1, 0), ReadOutcome::NoSuchLedger);
    assert_eq!(read(&engine, 3000, 399), ReadOutcome::Entry(entry(3000, 399)));
}

fn fill_one(engine: &Engine, ledger: u64, entries: i64) -> bool {
    (0..entries).all(|e| add(engine, entry(ledger, e), AddKind::Normal) == Some(AddOutcome::Ok))
}

/// Something lives in every segment: nothing can be removed before it is copied, and there is no room to copy.
#[test]
fn a_little_that_stays_in_every_segment_does_not_keep_the_disk_full() {
    for restarts in 0..4 {
        let bench = bench(25 + restarts);
        let (mut engine, _) = bench.boot();
        let mut kept = 0;
        let mut e = 0;
        while state(&engine) == SpaceState::ReadWrite {
            bench.clock.advance(Duration::from_millis(300));
            add(&engine, entry(1, e), AddKind::Normal);
            e += 1;
            if e % 8 == 0 && add(&engine, entry(2, kept), AddKind::Normal) == Some(AddOutcome::Ok) {
                kept += 1;
            }
        }
        assert!(kept > 50, "{kept}");
        for n in 0..restarts {
            drop(engine);
            bench.disk.crash(CrashPlan::LoseAll);
            engine = bench.boot().0;
            assert!(matches!(fence(&engine, 100 + n), Some(FenceOutcome::Fenced { .. })));
        }
        assert_eq!(collect(&engine, 1), Some(WriteOutcome::Ok));
        for _ in 0..50 {
            while engine.maintain(&|_| {}).unwrap() {}
            bench.clock.advance(Duration::from_secs(2));
            engine.step();
        }
        assert_eq!(state(&engine), SpaceState::ReadWrite, "{restarts}: {:?}", engine.info().lanes[0]);
        assert_eq!(engine.info().lanes[0].reserve_bytes, SEGMENT);
        for e in 0..kept {
            assert_eq!(read(&engine, 2, e), ReadOutcome::Entry(entry(2, e)), "{restarts}: {e}");
        }
        assert!(fill_one(&engine, 3000, 200), "{restarts}");
        drop(engine);
        bench.disk.crash(CrashPlan::LoseAll);
        let (engine, report) = bench.boot();
        assert!(!report.found_loss(), "{:?}", report.losses);
        assert_eq!(read(&engine, 2, kept - 1), ReadOutcome::Entry(entry(2, kept - 1)));
    }
}

/// Recovery adds of new entries end before the room for fences does.
#[test]
fn recovery_adds_leave_room_for_fences() {
    let bench = bench(22);
    let (engine, _) = bench.boot();
    fill(&bench, &engine);
    let mut taken = 0;
    while add(&engine, entry(50, taken), AddKind::Recovery) == Some(AddOutcome::Ok) {
        bench.clock.advance(Duration::from_millis(300));
        taken += 1;
        assert!(taken < 10_000);
    }
    assert!(taken > 20, "{taken}");
    assert_eq!(state(&engine), SpaceState::Full);
    for l in 200..220 {
        assert!(matches!(fence(&engine, l), Some(FenceOutcome::Fenced { .. })), "{l}");
    }
    assert_eq!(read(&engine, 50, taken - 1), ReadOutcome::Entry(entry(50, taken - 1)));
}

/// A fence and plain adds in one group: the adds are refused, the fence is written.
#[test]
fn a_fence_among_plain_adds_takes_the_reserve_and_the_adds_do_not() {
    let bench = bench(23);
    let (engine, _) = bench.boot();
    // Ends inside a second, so that nobody has looked at the space meanwhile.
    let mut e = 0;
    let refused = loop {
        let (acked, done) = Later::new();
        engine.add(entry(1, e), AddKind::Normal, done);
        let (fenced, done) = Later::new();
        engine.fence(LedgerId(100_000 + e as u64), done);
        engine.step();
        assert!(matches!(fenced.take(), Some(FenceOutcome::Fenced { .. })), "{e}");
        match acked.take() {
            Some(AddOutcome::Ok) => e += 1,
            other => break other,
        }
    };
    assert_eq!(refused, Some(AddOutcome::ReadOnly));
    assert_eq!(state(&engine), SpaceState::ReadOnly);
    assert!(engine.poisoned().is_none());
}

#[test]
fn an_orderly_end_leaves_nothing_to_scan() {
    let bench = bench(24);
    let (mut engine, _) = bench.boot();
    for round in 0..4 {
        for e in round * 20..(round + 1) * 20 {
            assert_eq!(add(&engine, entry(1, e), AddKind::Normal), Some(AddOutcome::Ok));
        }
        fence(&engine, 300 + round as u64);
        let positions = engine.positions();
        engine.shutdown();
        drop(engine);
        let report;
        (engine, report) = bench.boot();
        assert!(!report.found_loss(), "{:?}", report.losses);
        assert_eq!(report.scanned_segments, 0, "{round}");
        assert!(report.positions >= positions, "{:?} {positions:?}", report.positions);
        for e in 0..(round + 1) * 20 {
            assert_eq!(read(&engine, 1, e), ReadOutcome::Entry(entry(1, e)));
        }
        assert!((0..=round as u64).all(|r| is_fenced(&engine, 300 + r)));
    }
    // Killed instead: one segment.
    add(&engine, entry(1, 80), AddKind::Normal);
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    assert_eq!(bench.boot().1.scanned_segments, 1);
}
