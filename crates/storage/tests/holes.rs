//! A segment is preallocated, so most of a young one was never written. A boot does not read that part (`File::next_data`), and
//! what it skips must not make it mistake damage in the middle for a torn tail.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use common::*;
use tidemill_runtime::io::{CrashPlan, Disk, RealDisk};
use tidemill_storage::*;
use tidemill_types::{ClusterId, Incarnation, LedgerId};
use uuid::Uuid;

const BLOCK: u64 = 4096;
const SEGMENT: u64 = 32 << 20;

fn large(seed: u64) -> Bench {
    let mut bench = Bench::new(seed, 1);
    bench.config.segment_bytes = SEGMENT;
    bench
}

fn stop(bench: &Bench, engine: Engine) {
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
}

fn segments(bench: &Bench) -> Vec<PathBuf> {
    let items = bench.disk.list(Path::new("/lane0")).unwrap();
    let names = items.into_iter().map(|i| i.name).filter(|n| n.ends_with(".seg"));
    names.map(|n| Path::new("/lane0").join(n)).collect()
}

#[test]
fn a_boot_reads_what_was_written_and_not_what_was_preallocated() {
    let bench = large(1);
    let (engine, _) = bench.boot();
    for e in 0..100 {
        assert_eq!(add(&engine, entry(1, e), AddKind::Normal), Some(AddOutcome::Ok));
    }
    stop(&bench, engine);
    let written = 100 * BLOCK;
    // Not only with a clean end: a torn last group makes the boot look for a later one, up to the end of the file.
    for torn in [false, true] {
        let disk = bench.disk.fork(1);
        if torn {
            disk.flip_bit(&segments(&bench)[0], (100 * BLOCK + 100) * 8).unwrap();
        }
        let cold = Bench { disk, ..large(1) };
        let before = cold.disk.bytes_read();
        let scanned = cold.scan().unwrap();
        assert_eq!((scanned.report().torn_groups, scanned.report().found_loss()), (usize::from(torn), false));
        let read = cold.disk.bytes_read() - before;
        assert!(read > written && read < 2 * written + (1 << 20), "{read} bytes for {written}");
    }
}

#[test]
fn a_file_that_no_list_names_is_looked_through_by_its_data() {
    let bench = large(2);
    stop(&bench, bench.boot().0);
    // As a crash between making a segment and listing it leaves it, but with a group far behind its beginning.
    let path = Path::new("/lane0/00000063.seg");
    let file = bench.disk.create(path, SEGMENT).unwrap();
    file.write_at(b"TMGR", SEGMENT - BLOCK).unwrap();
    file.sync_data().unwrap();
    bench.disk.sync_dir(Path::new("/lane0")).unwrap();
    let before = bench.disk.bytes_read();
    let scanned = bench.scan().unwrap();
    assert!(scanned.report().losses.iter().any(|l| matches!(l, Loss::SegmentUnlisted { .. })));
    let read = bench.disk.bytes_read() - before;
    assert!(read < 1 << 20, "{read}");
}

/// R19: a group whose bytes are gone altogether, told as never written, is damage when a later one is valid.
#[test]
fn a_hole_in_the_middle_is_damage_and_at_the_end_a_torn_tail() {
    let bench = large(3);
    let (engine, _) = bench.boot();
    for e in 0..6 {
        add(&engine, entry_of(1, e, 1_500, 0), AddKind::Normal);
    }
    stop(&bench, engine);
    let path = segments(&bench).remove(0);
    for group in 1..=6 {
        // The whole group; only its head; only sectors behind its head.
        for part in [0..BLOCK, 0..512, 512..1024] {
            let disk = bench.disk.fork(1);
            disk.punch(&path, group * BLOCK + part.start..group * BLOCK + part.end).unwrap();
            let hurt = Bench { disk, ..large(3) };
            hurt.boots.store(50, Ordering::SeqCst);
            let (engine, report) = hurt.boot();
            let what = format!("group {group}, {part:?}");
            if group == 6 {
                // Nothing proves it; the position in the quorum tells.
                assert!(!report.found_loss(), "{what}");
                assert_eq!(report.positions[0].group, 5, "{what}");
            } else {
                assert!(report.found_loss() && engine.limbo(), "{what}");
                let denied = read(&engine, 1, group as i64 - 1);
                assert!(denied == ReadOutcome::Unknown(UnknownReason::Limbo), "{what}: {denied:?}");
                assert_eq!(read(&engine, 1, 5), ReadOutcome::Entry(entry_of(1, 5, 1_500, 0)), "{what}");
            }
        }
    }
}

/// The valid group that proves the damage lies many reads behind it, with holes between.
#[test]
fn a_later_group_is_found_behind_a_long_hole() {
    let bench = large(4);
    let (engine, _) = bench.boot();
    for e in 0..600 {
        assert_eq!(add(&engine, entry_of(1, e, 12_000, 0), AddKind::Normal), Some(AddOutcome::Ok));
    }
    stop(&bench, engine);
    let path = segments(&bench).remove(0);
    let group = 3 * BLOCK;
    bench.disk.punch(&path, BLOCK + 2 * group..BLOCK + 599 * group).unwrap();
    let (engine, report) = bench.boot();
    assert!(report.found_loss() && engine.limbo(), "{report:?}");
    for (e, there) in [(0, true), (1, true), (2, false), (598, false), (599, true)] {
        let got = read(&engine, 1, e);
        assert_eq!(got == ReadOutcome::Entry(entry_of(1, e, 12_000, 0)), there, "{e}: {got:?}");
        assert!(there || got == ReadOutcome::Unknown(UnknownReason::Limbo), "{e}: {got:?}");
    }
}

/// The same on the file system below the tests, with what it says of unwritten and of punched stretches.
#[test]
fn the_real_disk_tells_damage_from_a_torn_tail() {
    for damaged in [None, Some((3, false)), Some((3, true)), Some((8, false)), Some((8, true))] {
        let dir = tempfile::tempdir().unwrap();
        let lane = dir.path().join("lane");
        // Run by hand: dropped, it neither seals nor writes a closing group, as if it had been killed.
        let boot = |incarnation| {
            let mut config = EngineConfig::new(vec![lane.clone()]);
            config.segment_bytes = SEGMENT;
            config.driver = Driver::Inline { wake: Arc::new(|| {}) };
            let mut scanned = Engine::open_scan(Arc::new(RealDisk), config).unwrap();
            let report = scanned.report().clone();
            scanned.write_pending(ClusterId(Uuid::from_u128(1)), Incarnation(incarnation)).unwrap();
            (scanned.finish(FinishBoot { limbo: false, mark: Some(LedgerId(0)) }).unwrap(), report)
        };
        let (engine, _) = boot(1);
        for e in 0..8 {
            assert_eq!(add(&engine, entry(1, e), AddKind::Normal), Some(AddOutcome::Ok));
        }
        drop(engine);
        let path = lane.join("00000001.seg");
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, SEGMENT);
        if let Some((group, hole)) = damaged {
            let at = group * BLOCK;
            if hole {
                // A copy that leaves this block out: a sparse file.
                let sparse = fs::File::create(lane.join("copy")).unwrap();
                sparse.set_len(SEGMENT).unwrap();
                for block in (0..9 * BLOCK).step_by(BLOCK as usize).filter(|b| *b != at) {
                    sparse.write_all_at(&bytes[block as usize..][..BLOCK as usize], block).unwrap();
                }
                fs::rename(lane.join("copy"), &path).unwrap();
            } else {
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&[bytes[at as usize + 60] ^ 1], at + 60).unwrap();
            }
        }
        let (engine, report) = boot(2);
        let middle = damaged.is_some_and(|(group, _)| group == 3);
        assert_eq!(report.found_loss(), middle, "{damaged:?}: {:?}", report.losses);
        assert_eq!(engine.limbo(), middle, "{damaged:?}");
        assert_eq!(
            report.positions[0].group,
            if matches!(damaged, Some((8, _))) { 7 } else { 8 },
            "{damaged:?}"
        );
    }
}
