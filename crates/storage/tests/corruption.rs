//! Damage at rest and lost parts: the answer is limbo, unknown or `Corrupt`, never a false "no such entry" (R14, R15, R16, R19).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use std::path::{Path, PathBuf};

use common::*;
use tidemill_runtime::io::{CrashPlan, Disk, OpenMode};
use tidemill_storage::*;
use tidemill_types::{ClusterId, Incarnation, LedgerId};
use uuid::Uuid;

const LEDGERS: u64 = 3;
const ENTRIES: i64 = 70;

/// A bookie with several sealed segments, an active one and a closing group at its end, stopped.
fn filled(seed: u64, lanes: usize) -> Bench {
    let bench = Bench::new(seed, lanes);
    let (engine, _) = bench.boot();
    for e in 0..ENTRIES {
        for l in 1..=LEDGERS {
            assert_eq!(add(&engine, entry(l, e), AddKind::Normal), Some(AddOutcome::Ok));
        }
    }
    fence(&engine, 1);
    idle(&bench, &engine);
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    bench
}

fn files(bench: &Bench, dir: &str) -> Vec<(PathBuf, u64)> {
    let items = bench.disk.list(Path::new(dir)).unwrap();
    items
        .into_iter()
        .filter(|i| i.name.ends_with(".seg"))
        .map(|i| (Path::new(dir).join(i.name), i.len))
        .collect()
}

/// Every acknowledged entry is there or its absence is not asserted. Answers how many are there.
fn nothing_denied(engine: &Engine, what: &str) -> usize {
    let mut there = 0;
    for l in 1..=LEDGERS {
        for e in 0..ENTRIES {
            match read(engine, l, e) {
                ReadOutcome::Entry(b) => {
                    assert_eq!(b, entry(l, e), "{what}");
                    there += 1;
                }
                ReadOutcome::NoSuchEntry | ReadOutcome::NoSuchLedger => panic!("{what}: {l}/{e} is denied"),
                ReadOutcome::Unknown(_) | ReadOutcome::Corrupt => {}
            }
        }
        match engine.ranges(LedgerId(l)) {
            RangesOutcome::NoSuchLedger => panic!("{what}: {l} is denied"),
            RangesOutcome::Ranges { complete, ranges } => {
                let whole = ranges.len() == 1 && ranges[0].last.0 == ENTRIES - 1;
                assert!(whole || !complete, "{what}: {ranges:?}");
            }
            RangesOutcome::Unknown(_) => {}
        }
    }
    there
}

#[test]
fn a_flipped_bit_anywhere_denies_nothing() {
    let bench = filled(1, 1);
    let (mut limbo, mut corrupt) = (0, 0);
    for (path, len) in files(&bench, "/lane0") {
        // Odd steps hit every class of offset: header, group heads, records, padding, pages, directory, footer.
        for bit in (0..len * 8).step_by(9973) {
            let disk = bench.disk.fork(bit);
            disk.flip_bit(&path, bit).unwrap();
            let flipped = Bench { disk, ..Bench::new(0, 1) };
            flipped.boots.store(100, std::sync::atomic::Ordering::SeqCst);
            let what = format!("{} bit {bit}", path.display());
            let (engine, report) = flipped.boot();
            let there = nothing_denied(&engine, &what);
            assert!(there > 100, "{what}: only {there} left");
            assert_eq!(engine.limbo(), report.found_loss(), "{what}");
            limbo += usize::from(report.found_loss());
            corrupt += usize::from(engine.stats().corrupt_reads > 0);
        }
    }
    assert!(limbo > 10 && corrupt > 10, "{limbo} {corrupt}");
}

#[test]
fn a_cut_or_missing_segment_is_limbo_for_good() {
    let bench = filled(2, 1);
    let all = files(&bench, "/lane0");
    // All but the last, whose cut-off end looks like a torn group (the quorum's position tells).
    for (path, len) in &all[..all.len() - 1] {
        for cut in [None, Some(len / 2), Some(len - 1), Some(0)] {
            let disk = bench.disk.fork(7);
            match cut {
                Some(at) => disk.truncate(path, at).unwrap(),
                None => {
                    disk.remove(path).unwrap();
                    disk.sync_dir(Path::new("/lane0")).unwrap();
                }
            }
            let cut_bench = Bench { disk, ..Bench::new(0, 1) };
            let what = format!("{} {cut:?}", path.display());
            let (engine, report) = cut_bench.boot();
            assert!(report.found_loss() && engine.limbo(), "{what}");
            nothing_denied(&engine, &what);
            drop(engine);
            cut_bench.disk.crash(CrashPlan::LoseAll);
            // The finding is gone after it was dealt with, the flag stays.
            let (engine, report) = cut_bench.boot();
            assert!(!report.found_loss(), "{what}: {:?}", report.losses);
            assert!(report.limbo && engine.limbo(), "{what}");
            nothing_denied(&engine, &what);
        }
    }
}

#[test]
fn a_bad_group_in_the_middle_of_the_active_segment_is_limbo_and_at_its_end_is_dropped() {
    let bench = Bench::new(3, 1);
    let (engine, _) = bench.boot();
    for e in 0..6 {
        add(&engine, entry(1, e), AddKind::Normal);
    }
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (path, _) = files(&bench, "/lane0").remove(0);
    for group in 1..=6_u64 {
        let disk = bench.disk.fork(1);
        disk.flip_bit(&path, group * 4096 * 8 + 700).unwrap();
        let hurt = Bench { disk, ..Bench::new(0, 1) };
        let (engine, report) = hurt.boot();
        if group == 6 {
            // No later group proves that it was acknowledged; its position is below the one in the quorum.
            assert!(!report.found_loss());
            assert_eq!((report.torn_groups, report.positions[0].group), (1, 5));
        } else {
            assert!(report.found_loss() && engine.limbo());
            assert_eq!(read(&engine, 1, group as i64 - 1), ReadOutcome::Unknown(UnknownReason::Limbo));
            assert_eq!(read(&engine, 1, 5), ReadOutcome::Entry(entry(1, 5)));
        }
    }
    // With the closing group the last one is proven too.
    let (engine, _) = bench.boot();
    add(&engine, entry(1, 6), AddKind::Normal);
    idle(&bench, &engine);
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (path, _) = files(&bench, "/lane0").pop().unwrap();
    bench.disk.flip_bit(&path, 4096 * 8 + 700).unwrap();
    assert!(bench.boot().1.found_loss());
}

#[test]
fn a_recovery_add_replaces_a_damaged_copy_only() {
    let bench = filled(4, 1);
    let (path, _) = files(&bench, "/lane0").remove(0);
    // The first entry of the first segment: header block, group head, record head, then into its body.
    bench.disk.flip_bit(&path, (4096 + 48 + 8 + 100) * 8).unwrap();
    let (engine, report) = bench.boot();
    assert!(!report.found_loss());
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Corrupt);
    assert_eq!(add(&engine, entry_of(1, 1, 10, 3), AddKind::Recovery), Some(AddOutcome::Conflict));
    assert_eq!(add(&engine, entry(1, 0), AddKind::Recovery), Some(AddOutcome::Ok));
    assert_eq!(engine.stats().replaced, 1);
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Entry(entry(1, 0)));
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, _) = bench.boot();
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Entry(entry(1, 0)));
}

#[test]
fn a_damaged_segment_is_not_rewritten_away() {
    let bench = filled(5, 1);
    let (path, _) = files(&bench, "/lane0").remove(0);
    bench.disk.flip_bit(&path, (4096 + 48 + 8 + 100) * 8).unwrap();
    let (engine, _) = bench.boot();
    for l in 2..=LEDGERS {
        assert_eq!(collect(&engine, l), Some(WriteOutcome::Ok));
    }
    for _ in 0..50 {
        engine.maintain(&|_| {}).unwrap();
    }
    assert_eq!(read(&engine, 1, 0), ReadOutcome::Corrupt);
    for e in 1..ENTRIES {
        assert_eq!(read(&engine, 1, e), ReadOutcome::Entry(entry(1, e)));
    }
}

#[test]
fn a_lane_that_was_emptied_is_a_loss_and_all_lanes_emptied_is_a_new_bookie() {
    let bench = filled(6, 2);
    let empty = |disk: &tidemill_runtime::io::SimDisk, dir: &str| {
        for item in disk.list(Path::new(dir)).unwrap() {
            disk.remove(&Path::new(dir).join(item.name)).unwrap();
        }
        disk.sync_dir(Path::new(dir)).unwrap();
    };
    let one = Bench { disk: bench.disk.fork(1), ..Bench::new(0, 2) };
    let old = bench.scan().unwrap().report().bookie;
    empty(&one.disk, "/lane1");
    let (engine, report) = one.boot();
    assert!(matches!(report.losses[..], [Loss::LaneMissing { .. }]) && engine.limbo());
    assert_eq!(report.bookie, old);
    nothing_denied(&engine, "one lane emptied");
    let all = Bench { disk: bench.disk.fork(1), ..Bench::new(0, 2) };
    empty(&all.disk, "/lane0");
    empty(&all.disk, "/lane1");
    let (_, report) = all.boot();
    assert!(report.fresh && !report.found_loss());
}

#[test]
fn a_new_lane_is_taken_in_and_moves_nothing() {
    let bench = filled(7, 1);
    let wider = Bench { disk: bench.disk.clone(), ..Bench::new(9, 2) };
    wider.boots.store(50, std::sync::atomic::Ordering::SeqCst);
    let mut config = wider.config.clone();
    let next = std::sync::atomic::AtomicU64::new(1);
    config.new_uuid = std::sync::Arc::new(move || {
        Uuid::from_u128(0xFFFF_0000 + u128::from(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))
    });
    let wider = Bench { config, ..wider };
    for n in 0..30 {
        // Dies on the way, at every step.
        wider.disk.lose_power_after(n);
        drop(wider.try_boot(Some(0)));
        wider.disk.crash(CrashPlan::Random);
        let report = wider.scan().unwrap().report().clone();
        assert!(!report.found_loss(), "{n}: {:?}", report.losses);
    }
    let (engine, report) = wider.boot();
    assert!(!report.found_loss());
    assert_eq!(nothing_denied(&engine, "new lane"), (LEDGERS * ENTRIES.unsigned_abs()) as usize);
    for l in 10..30 {
        assert_eq!(add(&engine, entry(l, 0), AddKind::Normal), Some(AddOutcome::Ok));
    }
    assert!(engine.info().lanes.iter().all(|l| l.live_bytes > 0));
}

#[test]
fn a_lane_of_an_older_boot_is_a_loss() {
    let bench = filled(8, 2);
    let old = bench.disk.fork(1);
    for _ in 0..2 {
        drop(bench.boot());
        bench.disk.crash(CrashPlan::LoseAll);
    }
    // The second lane as it was two boots ago.
    for item in bench.disk.list(Path::new("/lane1")).unwrap() {
        bench.disk.remove(&Path::new("/lane1").join(item.name)).unwrap();
    }
    for item in old.list(Path::new("/lane1")).unwrap() {
        let path = Path::new("/lane1").join(&item.name);
        let mut bytes = vec![0; item.len as usize];
        old.open(&path, OpenMode::Read).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        let file = bench.disk.create(&path, 0).unwrap();
        file.write_at(&bytes, 0).unwrap();
        file.sync_data().unwrap();
    }
    bench.disk.sync_dir(Path::new("/lane1")).unwrap();
    let report = bench.scan().unwrap().report().clone();
    assert!(matches!(report.losses[..], [Loss::LaneFromOtherBoot { .. }]), "{:?}", report.losses);
}

#[test]
fn an_old_snapshot_of_all_lanes_does_not_agree_with_the_quorum() {
    let bench = filled(9, 1);
    let old = Bench { disk: bench.disk.fork(1), ..Bench::new(0, 1) };
    let (_, report) = bench.boot();
    assert!(report.agrees_with(Incarnation(1), None));
    assert!(report.agrees_with(Incarnation(0xDEAD), Some(Incarnation(1))));
    bench.disk.crash(CrashPlan::LoseAll);
    let now = bench.scan().unwrap().report().clone();
    assert!(now.agrees_with(Incarnation(2), None));
    let restored = old.scan().unwrap().report().clone();
    assert!(!restored.agrees_with(Incarnation(2), Some(Incarnation(3))));
    // A snapshot of the same boot agrees, and is told by its position.
    assert!(restored.positions[0] >= report.positions[0]);
}

#[test]
fn wrong_folders_are_refused_with_advice() {
    let bench = filled(10, 1);
    let locked = bench.scan().unwrap();
    let refused = bench.scan().unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }));
    assert!(refused.to_string().contains("in use by another process"));
    drop(locked);
    let mut scanned = bench.scan().unwrap();
    let other = ClusterId(Uuid::from_u128(1));
    assert!(matches!(scanned.write_pending(other, Incarnation(9)), Err(OpenError::OtherCluster { .. })));
    drop(scanned);
    bench.disk.remove(Path::new("/lane0/cookie")).unwrap();
    let refused = bench.scan().unwrap_err();
    assert!(matches!(refused, OpenError::NoCookie { .. }));
    let text = refused.to_string();
    assert!(text.contains("00000001.seg") && text.contains("empty the folder"), "{text}");
}

#[test]
fn a_control_file_that_is_gone_or_old_is_a_loss_and_no_segment_is_removed() {
    let bench = filled(11, 1);
    let control = Path::new("/lane0/control");
    let gone = Bench { disk: bench.disk.fork(1), ..Bench::new(0, 1) };
    gone.disk.remove(control).unwrap();
    let (engine, report) = gone.boot();
    assert!(report.losses.iter().any(|l| matches!(l, Loss::ControlMissing { .. })));
    assert_eq!(nothing_denied(&engine, "gone"), (LEDGERS * ENTRIES.unsigned_abs()) as usize);
    let flipped = Bench { disk: bench.disk.fork(1), ..Bench::new(0, 1) };
    flipped.disk.flip_bit(control, 200).unwrap();
    let (engine, report) = flipped.boot();
    assert!(report.found_loss());
    assert_eq!(nothing_denied(&engine, "flipped"), (LEDGERS * ENTRIES.unsigned_abs()) as usize);
    // An older control file: newer segments are not listed, hold data, and are kept aside.
    let mut old = vec![0; 0];
    {
        let file = bench.disk.open(control, OpenMode::Read).unwrap();
        old.resize(file.len().unwrap() as usize, 0);
        file.read_exact_at(&mut old, 0).unwrap();
    }
    let (engine, _) = bench.boot();
    add(&engine, entry(9, 0), AddKind::Normal);
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    tidemill_runtime::io::write_durably(&bench.disk, control, &old).unwrap();
    let (engine, report) = bench.boot();
    assert!(report.losses.iter().any(|l| matches!(l, Loss::SegmentUnlisted { .. })), "{:?}", report.losses);
    assert_eq!(read(&engine, 9, 0), ReadOutcome::Unknown(UnknownReason::Limbo));
    let kept = bench.disk.list(Path::new("/lane0")).unwrap();
    assert!(kept.iter().any(|i| i.name.ends_with(".seg.lost")));
}

#[test]
fn inspection_changes_nothing_and_shows_damage() {
    let bench = filled(12, 1);
    let disk: std::sync::Arc<dyn Disk> = std::sync::Arc::new(bench.disk.clone());
    let before = bench.disk.bytes_written();
    let dirs = [PathBuf::from("/lane0")];
    let seen = inspect(std::sync::Arc::clone(&disk), &dirs).unwrap();
    assert!(!seen.boot.found_loss());
    assert_eq!(seen.ledgers.len(), 3);
    assert!(seen.ledgers[0].fenced);
    let entries: u64 = seen.segments.iter().map(|s| s.entries).sum();
    assert_eq!(entries, LEDGERS * ENTRIES.unsigned_abs());
    assert_eq!(bench.disk.bytes_written(), before);
    let (path, len) = files(&bench, "/lane0").remove(0);
    bench.disk.flip_bit(&path, (len - 4096) * 8 + 50).unwrap();
    assert!(inspect(std::sync::Arc::clone(&disk), &dirs).unwrap().boot.found_loss());
    assert!(inspect(disk, &[PathBuf::from("/nowhere")]).is_err());
}
