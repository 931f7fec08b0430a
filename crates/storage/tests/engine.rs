//! What the service relies on, one behaviour a test, on the simulated disk.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use common::*;
use std::sync::Arc;

use parking_lot::Mutex;
use tidemill_runtime::io::{CrashPlan, Fault, OpKind};
use tidemill_storage::*;
use tidemill_types::{EntryId, EntryRange, LedgerId};

#[test]
fn adds_are_read_back_before_and_after_restarts() {
    let bench = Bench::new(1, 2);
    let (mut engine, report) = bench.boot();
    assert!(report.fresh && !report.found_loss());
    for round in 0..4 {
        for l in 1..=6 {
            for e in round * 30..(round + 1) * 30 {
                assert_eq!(add(&engine, entry(l, e), AddKind::Normal), Some(AddOutcome::Ok));
            }
        }
        let check = |engine: &Engine| {
            for l in 1..=6 {
                for e in 0..(round + 1) * 30 {
                    assert_eq!(read(engine, l, e), ReadOutcome::Entry(entry(l, e)), "{l}/{e}");
                }
                assert_eq!(read(engine, l, (round + 1) * 30), ReadOutcome::NoSuchEntry);
                assert_eq!(engine.lac(LedgerId(l)), LacOutcome::Lac(EntryId((round + 1) * 30 - 2)));
            }
        };
        check(&engine);
        let positions = engine.positions();
        drop(engine);
        bench.disk.crash(CrashPlan::LoseAll);
        let (next, report) = bench.boot();
        assert!(!report.found_loss(), "{:?}", report.losses);
        assert_eq!(report.ledgers, 6);
        assert!(report.positions >= positions, "{:?} {positions:?}", report.positions);
        engine = next;
        check(&engine);
    }
    assert!(engine.info().lanes.iter().all(|l| l.segments > 3));
    assert_eq!(read(&engine, 99, 0), ReadOutcome::NoSuchLedger);
}

#[test]
fn ranges_heads_and_limits() {
    let bench = Bench::new(2, 1);
    let (engine, _) = bench.boot();
    for e in (0..50).chain(60..100) {
        add(&engine, entry(1, e), AddKind::Normal);
        add(&engine, entry(2, e), AddKind::Normal);
    }
    let all = engine.read_range(LedgerId(1), EntryId(0), 1000, 1 << 20, ReadMode::Full);
    assert_eq!(all.len(), 51);
    assert_eq!(all[50], (EntryId(50), ReadOutcome::NoSuchEntry));
    for (e, outcome) in &all[..50] {
        assert_eq!(*outcome, ReadOutcome::Entry(entry(1, e.0)));
    }
    let two = engine.read_range(LedgerId(1), EntryId(60), 2, 1 << 20, ReadMode::Full);
    assert_eq!(two.len(), 2);
    let bytes = engine.read_range(LedgerId(1), EntryId(60), 100, 1, ReadMode::Full);
    assert_eq!(bytes.len(), 1);
    let head = engine.read(LedgerId(1), EntryId(3), ReadMode::Head);
    assert_eq!(head, ReadOutcome::Entry(entry(1, 3).slice(..60)));
    let r = |a, b| EntryRange { first: EntryId(a), last: EntryId(b) };
    let expected = RangesOutcome::Ranges { ranges: vec![r(0, 49), r(60, 99)], complete: true };
    assert_eq!(engine.ranges(LedgerId(2)), expected);
    let last = LastEntryOutcome::Last(EntryId(99), ReadOutcome::Entry(entry(2, 99)));
    assert_eq!(engine.last_entry(LedgerId(2), ReadMode::Full), last);
    let listed: Vec<u64> = engine.list_ledgers(None, 10).iter().map(|l| l.ledger.0).collect();
    assert_eq!(listed, [1, 2]);
    assert_eq!(engine.list_ledgers(Some(LedgerId(1)), 10).len(), 1);
}

#[test]
fn a_fence_waits_for_accepted_adds_and_sticks() {
    let bench = Bench::new(3, 1);
    let (engine, _) = bench.boot();
    let (ack, done) = Later::new();
    engine.add(entry(1, 0), AddKind::Normal, done);
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Unknown(UnknownReason::Pending));
    let (fenced, done) = Later::new();
    engine.fence(LedgerId(1), done);
    assert!(fenced.take().is_none());
    assert_eq!(add(&engine, entry(1, 1), AddKind::Normal), Some(AddOutcome::Fenced));
    assert_eq!(ack.take(), Some(AddOutcome::Ok));
    let none = FenceOutcome::Fenced { lac: EntryId::NONE, last_entry: EntryId(0) };
    assert_eq!(fenced.take(), Some(none));
    assert_eq!(engine.stats().fences_waited, 1);
    assert_eq!(add(&engine, entry(1, 1), AddKind::Recovery), Some(AddOutcome::Ok));
    assert_eq!(
        fence(&engine, 9),
        Some(FenceOutcome::Fenced { lac: EntryId::NONE, last_entry: EntryId::NONE })
    );
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, _) = bench.boot();
    assert_eq!(add(&engine, entry(1, 2), AddKind::Normal), Some(AddOutcome::Fenced));
    assert_eq!(add(&engine, entry(9, 0), AddKind::Normal), Some(AddOutcome::Fenced));
    assert_eq!(read(&engine, 9, 0), ReadOutcome::NoSuchEntry);
}

#[test]
fn a_recovery_add_creates_an_unknown_ledger_fenced() {
    let bench = Bench::new(4, 1);
    let (engine, _) = bench.boot();
    assert_eq!(add(&engine, entry(5, 3), AddKind::Recovery), Some(AddOutcome::Ok));
    assert_eq!(add(&engine, entry(5, 4), AddKind::Normal), Some(AddOutcome::Fenced));
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, _) = bench.boot();
    assert_eq!(add(&engine, entry(5, 4), AddKind::Normal), Some(AddOutcome::Fenced));
    assert_eq!(engine.stats().fences_of_unknown, 0);
}

#[test]
fn the_same_entry_again_is_ok_and_other_bytes_are_a_conflict() {
    let bench = Bench::new(5, 1);
    let (engine, _) = bench.boot();
    let (first, done) = Later::new();
    engine.add(entry(1, 0), AddKind::Normal, done);
    let (twin, done) = Later::new();
    engine.add(entry(1, 0), AddKind::Normal, done);
    let (other, done) = Later::new();
    engine.add(entry_of(1, 0, 50, 1), AddKind::Normal, done);
    assert_eq!(other.take(), Some(AddOutcome::Conflict));
    engine.step();
    assert_eq!((first.take(), twin.take()), (Some(AddOutcome::Ok), Some(AddOutcome::Ok)));
    assert_eq!(add(&engine, entry(1, 0), AddKind::Normal), Some(AddOutcome::Ok));
    assert_eq!(add(&engine, entry_of(1, 0, 50, 1), AddKind::Recovery), Some(AddOutcome::Conflict));
    assert_eq!(engine.stats().conflicts, 2);
    assert_eq!(engine.stats().entries, 1);
    assert!(matches!(add(&engine, entry(1, 1).slice(1..), AddKind::Normal), Some(AddOutcome::Invalid(_))));
    let large = entry_of(1, 1, 20 << 10, 0);
    assert!(matches!(add(&engine, large, AddKind::Normal), Some(AddOutcome::TooLarge { .. })));
}

#[test]
fn a_first_touch_below_the_mark_asks_and_a_verdict_dies_with_the_ledger() {
    let bench = Bench::new(6, 1);
    let (engine, _) = bench.try_boot(Some(10)).unwrap();
    assert_eq!(add(&engine, entry(10, 0), AddKind::Normal), Some(AddOutcome::Ok));
    let Some(AddOutcome::FirstTouch { ticket, entry: back }) = add(&engine, entry(3, 0), AddKind::Normal)
    else {
        panic!("no first touch")
    };
    assert_eq!(back, entry(3, 0));
    assert_eq!(engine.admit(ticket), Admission::Admitted);
    assert_eq!(engine.first_touch(LedgerId(3)), FirstTouch::NotNeeded);
    let FirstTouch::Ask(late) = engine.first_touch(LedgerId(4)) else { panic!("not asked") };
    assert_eq!(add(&engine, back, AddKind::Normal), Some(AddOutcome::Ok));
    assert_eq!(collect(&engine, 3), Some(WriteOutcome::Ok));
    assert!(matches!(add(&engine, entry(3, 1), AddKind::Normal), Some(AddOutcome::FirstTouch { .. })));
    assert!(matches!(engine.admit(ticket), Admission::Stale(_)));
    // Another ledger's collection leaves this verdict alone.
    assert_eq!(engine.admit(late), Admission::Admitted);
    assert_eq!(fence(&engine, 4).map(|f| matches!(f, FenceOutcome::Fenced { .. })), Some(true));
    assert_eq!(add(&engine, entry(4, 0), AddKind::Normal), Some(AddOutcome::Fenced));
    assert_eq!(collect(&engine, 10), Some(WriteOutcome::Ok));
    assert_eq!(engine.info().mark, Some(LedgerId(11)));
}

#[test]
fn a_full_queue_says_overloaded() {
    let mut bench = Bench::new(7, 1);
    bench.config.queue_bytes = 4 << 10;
    let (engine, _) = bench.boot();
    let answers = Arc::new(Mutex::new(Vec::new()));
    struct Sink(Arc<Mutex<Vec<(u64, AddOutcome)>>>);
    impl AckSink for Sink {
        fn acked(&self, acks: Vec<(u64, AddOutcome)>) {
            self.0.lock().extend(acks);
        }
    }
    let sink: Arc<dyn AckSink> = Arc::new(Sink(Arc::clone(&answers)));
    let adds = (0..10)
        .map(|e| AddRequest { request: e, entry: entry_of(1, e as i64, 1000, 0), kind: AddKind::Normal })
        .collect();
    engine.add_batch(adds, &sink);
    let refused = answers.lock().len();
    assert!(refused >= 6, "{refused}");
    engine.step();
    let answers = answers.lock();
    assert_eq!(answers.len(), 10);
    assert_eq!(answers.iter().filter(|(_, o)| *o == AddOutcome::Ok).count(), 10 - refused);
    assert_eq!(engine.stats().queue_bytes, 0);
}

#[test]
fn a_failed_sync_stops_everything_and_nothing_of_its_group_is_acknowledged() {
    let bench = Bench::new(8, 1);
    let (engine, _) = bench.boot();
    assert_eq!(add(&engine, entry(1, 0), AddKind::Normal), Some(AddOutcome::Ok));
    bench.disk.inject(Fault { kind: OpKind::Sync, after: 0, error: std::io::ErrorKind::Other });
    assert_eq!(add(&engine, entry(1, 1), AddKind::Normal), None);
    assert!(bench.fatal.lock().is_some());
    assert_eq!(add(&engine, entry(1, 2), AddKind::Normal), None);
    assert_eq!(fence(&engine, 1), None);
    assert_eq!(read(&engine, 1, 1), ReadOutcome::Unknown(UnknownReason::Stopped));
    drop(engine);
    bench.disk.crash(CrashPlan::KeepAll);
    let (engine, report) = bench.boot();
    assert!(!report.found_loss());
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Entry(entry(1, 0)));
}

#[test]
fn a_failed_write_gives_the_segment_up_and_the_next_add_goes_on() {
    for error in [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull] {
        let bench = Bench::new(9, 1);
        let (engine, _) = bench.boot();
        assert_eq!(add(&engine, entry(1, 0), AddKind::Normal), Some(AddOutcome::Ok));
        bench.disk.inject(Fault { kind: OpKind::Write, after: 0, error });
        let lost = add(&engine, entry(1, 1), AddKind::Normal);
        assert_eq!(lost, Some(AddOutcome::Unknown(UnknownReason::NotWritten)));
        bench.clock.advance(std::time::Duration::from_secs(2));
        engine.step();
        assert_eq!(add(&engine, entry(1, 1), AddKind::Normal), Some(AddOutcome::Ok));
        assert_eq!(engine.stats().failed_writes, 1);
        assert!(engine.poisoned().is_none());
        drop(engine);
        bench.disk.crash(CrashPlan::LoseAll);
        let (engine, report) = bench.boot();
        assert!(!report.found_loss(), "{:?}", report.losses);
        for e in 0..2 {
            assert_eq!(read(&engine, 1, e), ReadOutcome::Entry(entry(1, e)));
        }
    }
}

#[test]
fn a_full_disk_is_read_only_and_never_fatal() {
    let bench = Bench::new(10, 1);
    bench.disk.set_total(400 << 10);
    let (engine, _) = bench.boot();
    let mut stored = 0;
    for e in 0..2000 {
        bench.clock.advance(std::time::Duration::from_millis(300));
        match add(&engine, entry(1, e), AddKind::Normal) {
            Some(AddOutcome::Ok) => stored = e + 1,
            Some(AddOutcome::ReadOnly) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(stored > 40, "{stored}");
    assert!(engine.poisoned().is_none());
    assert_ne!(engine.info().lanes[0].space, SpaceState::ReadWrite);
    // A fence gets through while any segment is open.
    for e in 0..stored {
        assert_eq!(read(&engine, 1, e), ReadOutcome::Entry(entry(1, e)));
    }
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, report) = bench.boot();
    assert!(!report.found_loss());
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Entry(entry(1, 0)));
    bench.disk.set_total(4 << 20);
    bench.clock.advance(std::time::Duration::from_secs(2));
    engine.step();
    assert_eq!(add(&engine, entry(1, stored), AddKind::Normal), Some(AddOutcome::Ok));
}

#[test]
fn what_comes_during_a_collection_waits_for_it() {
    let bench = Bench::new(11, 1);
    let (engine, _) = bench.try_boot(Some(100)).unwrap();
    add(&engine, entry(1, 0), AddKind::Recovery);
    let guard = engine.begin_collect(LedgerId(1)).unwrap();
    assert!(engine.begin_collect(LedgerId(1)).is_none());
    let (copy, done) = Later::new();
    engine.add(entry(1, 1), AddKind::Recovery, done);
    engine.step();
    assert!(copy.take().is_none());
    assert_eq!(engine.ranges(LedgerId(1)), RangesOutcome::Unknown(UnknownReason::Collecting));
    assert_eq!(read(&engine, 1, 7), ReadOutcome::Unknown(UnknownReason::Collecting));
    drop(guard);
    engine.step();
    assert_eq!(copy.take(), Some(AddOutcome::Ok));
    let guard = engine.begin_collect(LedgerId(1)).unwrap();
    let (copy, done) = Later::new();
    engine.add(entry(1, 2), AddKind::Recovery, done);
    let (gone, done) = Later::new();
    guard.commit(done);
    engine.step();
    assert_eq!(gone.take(), Some(WriteOutcome::Ok));
    assert_eq!(copy.take(), Some(AddOutcome::Ok));
    for _ in 0..2 {
        let engine = &engine;
        assert_eq!(read(engine, 1, 0), ReadOutcome::NoSuchEntry);
        assert_eq!(read(engine, 1, 2), ReadOutcome::Entry(entry(1, 2)));
        assert_eq!(add(engine, entry(1, 3), AddKind::Normal), Some(AddOutcome::Fenced));
    }
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, _) = bench.boot();
    assert_eq!(read(&engine, 1, 0), ReadOutcome::NoSuchEntry);
    assert_eq!(read(&engine, 1, 2), ReadOutcome::Entry(entry(1, 2)));
}

#[test]
fn maintenance_frees_the_space_of_collected_ledgers_and_keeps_the_rest() {
    let bench = Bench::new(12, 1);
    let (mut engine, _) = bench.boot();
    for e in 0..150 {
        for l in 1..=8 {
            assert_eq!(add(&engine, entry(l, e), AddKind::Normal), Some(AddOutcome::Ok));
        }
    }
    fence(&engine, 1);
    fence(&engine, 2);
    let before = engine.info().lanes[0].segment_bytes;
    for l in 2..=6 {
        assert_eq!(collect(&engine, l), Some(WriteOutcome::Ok));
    }
    for round in 0..3 {
        while engine.maintain(&|_| {}).unwrap() {}
        let after = engine.info().lanes[0].segment_bytes;
        assert!(after < before / 2 + (200 << 10), "{round}: {before} -> {after}");
        for l in [1, 7, 8] {
            for e in 0..150 {
                assert_eq!(read(&engine, l, e), ReadOutcome::Entry(entry(l, e)), "{l}/{e}");
            }
        }
        for l in 2..=6 {
            assert_eq!(read(&engine, l, 3), ReadOutcome::NoSuchLedger);
        }
        assert_eq!(add(&engine, entry(1, 1000), AddKind::Normal), Some(AddOutcome::Fenced));
        drop(engine);
        bench.disk.crash(CrashPlan::LoseAll);
        let report;
        (engine, report) = bench.boot();
        assert!(!report.found_loss(), "{:?}", report.losses);
    }
    assert!(engine.info().lanes[0].live_bytes <= engine.info().lanes[0].segment_bytes);
}

#[test]
fn limbo_denies_nothing_survives_restarts_and_can_be_cleared() {
    let bench = Bench::new(13, 2);
    let (engine, _) = bench.boot();
    add(&engine, entry(1, 0), AddKind::Normal);
    engine.set_limbo(true).unwrap();
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, report) = bench.boot();
    assert!(report.limbo && engine.limbo());
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Entry(entry(1, 0)));
    assert_eq!(read(&engine, 1, 1), ReadOutcome::Unknown(UnknownReason::Limbo));
    assert_eq!(read(&engine, 2, 0), ReadOutcome::Unknown(UnknownReason::Limbo));
    assert_eq!(engine.lac(LedgerId(1)), LacOutcome::Unknown(UnknownReason::Limbo));
    assert_eq!(
        engine.last_entry(LedgerId(2), ReadMode::Full),
        LastEntryOutcome::Unknown(UnknownReason::Limbo)
    );
    assert_eq!(fence(&engine, 1), Some(FenceOutcome::Unknown(UnknownReason::Limbo)));
    assert!(matches!(add(&engine, entry(3, 0), AddKind::Normal), Some(AddOutcome::FirstTouch { .. })));
    // A repair copies what is missing.
    assert_eq!(add(&engine, entry(1, 1), AddKind::Recovery), Some(AddOutcome::Ok));
    let (all, done) = Later::new();
    engine.fence_all_of(&[LedgerId(1), LedgerId(5), LedgerId(6)], done);
    engine.step();
    assert_eq!(all.take(), Some(WriteOutcome::Ok));
    engine.set_limbo(false).unwrap();
    assert_eq!(read(&engine, 1, 2), ReadOutcome::NoSuchEntry);
    assert_eq!(add(&engine, entry(5, 0), AddKind::Normal), Some(AddOutcome::Fenced));
    bench.disk.crash(CrashPlan::LoseAll);
    assert!(!bench.boot().1.limbo);
}

#[test]
fn explicit_lacs_survive() {
    let bench = Bench::new(14, 1);
    let (engine, _) = bench.boot();
    add(&engine, entry(1, 0), AddKind::Normal);
    let (w, done) = Later::new();
    engine.write_lac(LedgerId(1), EntryId(0), done);
    engine.step();
    assert_eq!(w.take(), Some(WriteOutcome::Ok));
    let (w, done) = Later::new();
    engine.write_lac(LedgerId(2), EntryId(0), done);
    assert_eq!(w.take(), Some(WriteOutcome::NoSuchLedger));
    for _ in 0..3 {
        bench.disk.crash(CrashPlan::LoseAll);
        let (engine, _) = bench.boot();
        assert_eq!(engine.lac(LedgerId(1)), LacOutcome::Lac(EntryId(0)));
    }
}

#[test]
fn an_idle_lane_writes_one_closing_group() {
    let bench = Bench::new(15, 1);
    let (engine, _) = bench.boot();
    add(&engine, entry(1, 0), AddKind::Normal);
    let due = engine.step().unwrap();
    assert!(due <= std::time::Duration::from_millis(100));
    for _ in 0..5 {
        idle(&bench, &engine);
    }
    assert_eq!(engine.stats().closing_groups, 1);
    assert_eq!(engine.step(), None);
}
