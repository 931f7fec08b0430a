//! Scrubbing of data at rest: a flipped bit is found, told, and mended by a recovery add.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use std::{
    cell::Cell,
    path::{Path, PathBuf},
};

use common::*;
use tidemill_runtime::io::{CrashPlan, Disk, OpenMode};
use tidemill_storage::*;
use tidemill_types::{EntryId, EntryRange, LedgerId};

fn range(first: i64, last: i64) -> EntryRange {
    EntryRange { first: EntryId(first), last: EntryId(last) }
}

/// Some sealed segments with three ledgers.
fn filled(seed: u64, lanes: usize) -> (Bench, Engine) {
    let bench = Bench::new(seed, lanes);
    let (engine, _) = bench.boot();
    for e in 0..100 {
        for l in 1..=3 {
            assert_eq!(add(&engine, entry(l, e), AddKind::Normal), Some(AddOutcome::Ok));
        }
    }
    engine.shutdown();
    drop(engine);
    let (engine, _) = bench.boot();
    (bench, engine)
}

/// Reads everything once. Answers segments and damaged entries found.
fn pass(engine: &Engine) -> (u64, u64) {
    let mut at = ScrubPosition::default();
    let (mut segments, mut found) = (0, 0);
    loop {
        match engine.scrub(&mut at, &|_| true) {
            Scrubbed::Segment { damaged, bytes } => {
                assert!(bytes > 0);
                segments += 1;
                found += damaged;
            }
            Scrubbed::PassDone => {
                assert!(at.done);
                return (segments, found);
            }
            Scrubbed::Stopped => panic!("nobody stopped it"),
        }
    }
}

fn files(bench: &Bench, lane: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = PathBuf::from(format!("/lane{lane}"));
    let segments = bench.disk.list(&dir).unwrap().into_iter().filter(|i| i.name.ends_with(".seg"));
    segments
        .map(|i| {
            let path = dir.join(&i.name);
            let mut bytes = vec![0; i.len as usize];
            bench.disk.open(&path, OpenMode::Read).unwrap().read_exact_at(&mut bytes, 0).unwrap();
            (path, bytes)
        })
        .collect()
}

/// File and offset of an entry's bytes.
fn place(bench: &Bench, ledger: u64, e: i64) -> (PathBuf, u64) {
    let wanted = entry(ledger, e);
    let found = files(bench, 0).into_iter().find_map(|(path, bytes)| {
        let at = bytes.windows(wanted.len()).position(|w| w == &wanted[..])?;
        Some((path, at as u64))
    });
    found.unwrap()
}

fn flip(bench: &Bench, path: &Path, byte: u64, bit: u64) {
    bench.disk.flip_bit(path, byte * 8 + bit).unwrap();
}

#[test]
fn a_flipped_bit_is_found_told_and_mended() {
    let (bench, engine) = filled(31, 1);
    let (segments, found) = pass(&engine);
    assert!(segments > 3, "{segments}");
    assert_eq!(found, 0);
    for (e, byte) in [(5, 3), (6, 40), (7, 200), (50, 299)] {
        let (path, at) = place(&bench, 2, e);
        flip(&bench, &path, at + byte, byte % 8);
    }
    assert_eq!(pass(&engine), (segments, 4));
    assert_eq!(pass(&engine), (segments, 4), "it stays until it is mended");
    let damaged = vec![(LedgerId(2), vec![range(5, 7), range(50, 50)])];
    assert_eq!(engine.damaged(), damaged);
    assert_eq!(engine.stats().damaged_entries, 4);
    let left =
        RangesOutcome::Ranges { ranges: vec![range(0, 4), range(8, 49), range(51, 99)], complete: false };
    assert_eq!(engine.ranges(LedgerId(2)), left);
    assert_eq!(read(&engine, 2, 6), ReadOutcome::Corrupt);
    for e in [5, 6, 7, 50] {
        assert_eq!(add(&engine, entry(2, e), AddKind::Recovery), Some(AddOutcome::Ok));
    }
    assert!(engine.damaged().is_empty());
    let whole = RangesOutcome::Ranges { ranges: vec![range(0, 99)], complete: true };
    assert_eq!(engine.ranges(LedgerId(2)), whole);
    assert_eq!(pass(&engine).1, 0);
    drop(engine);
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, report) = bench.boot();
    assert!(!report.found_loss(), "{:?}", report.losses);
    assert_eq!(pass(&engine).1, 0);
    assert_eq!(read(&engine, 2, 6), ReadOutcome::Entry(entry(2, 6)));
}

/// Every byte of a sealed segment that carries anything: a flip is found, or the bytes are of a group's frame or padding, which
/// nobody reads once the segment is sealed.
#[test]
fn a_flip_anywhere_is_found_or_harmless() {
    let (bench, engine) = filled(32, 1);
    let (path, bytes) = files(&bench, 0).swap_remove(1);
    let clean = pass(&engine);
    let mut found = 0;
    for byte in (0..bytes.len() as u64).step_by(151) {
        let damaged_before = engine.stats().scrub_damaged_segments;
        flip(&bench, &path, byte, byte % 8);
        let (_, damaged) = pass(&engine);
        let noted = damaged > 0 || engine.stats().scrub_damaged_segments > damaged_before;
        found += usize::from(noted);
        if !noted {
            for l in 1..=3 {
                for e in 0..100 {
                    assert_eq!(read(&engine, l, e), ReadOutcome::Entry(entry(l, e)), "byte {byte}: {l}/{e}");
                }
            }
        }
        flip(&bench, &path, byte, byte % 8);
        // The copy is good again: told so by whoever brings it.
        for (ledger, ranges) in engine.damaged() {
            for e in ranges.iter().flat_map(|r| r.first.0..=r.last.0) {
                assert_eq!(add(&engine, entry(ledger.0, e), AddKind::Recovery), Some(AddOutcome::Ok));
            }
        }
    }
    assert_eq!(pass(&engine).1, clean.1);
    assert!(found > 20, "{found}");
}

#[test]
fn a_damaged_index_page_is_found_and_its_entries_are_told() {
    let (bench, engine) = filled(33, 1);
    // Pages are the first blocks behind the groups; their number stands at byte 4080 of each.
    let (path, bytes) = files(&bench, 0).swap_remove(0);
    let runs_in = |n: usize| bytes.len() / 4096 - n;
    let page = runs_in(3) as u64 * 4096;
    flip(&bench, &path, page + 20, 1);
    let (_, damaged) = pass(&engine);
    assert!(damaged > 0);
    assert_eq!(engine.stats().scrub_damaged_segments, 1);
    for (ledger, ranges) in engine.damaged() {
        for e in ranges.iter().flat_map(|r| r.first.0..=r.last.0) {
            assert_eq!(read(&engine, ledger.0, e), ReadOutcome::Corrupt);
            assert_eq!(add(&engine, entry(ledger.0, e), AddKind::Recovery), Some(AddOutcome::Ok));
            assert_eq!(read(&engine, ledger.0, e), ReadOutcome::Entry(entry(ledger.0, e)));
        }
    }
    assert!(engine.damaged().is_empty());
}

#[test]
fn a_pass_stops_when_told_and_goes_on_after_a_restart() {
    let (bench, engine) = filled(34, 2);
    let (all, _) = pass(&engine);
    let mut at = ScrubPosition { started_ms: 7, ..ScrubPosition::default() };
    for _ in 0..2 {
        assert!(matches!(engine.scrub(&mut at, &|_| true), Scrubbed::Segment { .. }));
    }
    let left = Cell::new(4_096);
    let stopped = engine.scrub(&mut at, &|n| {
        left.set(left.get() - n as i64);
        left.get() > 0
    });
    assert_eq!(stopped, Scrubbed::Stopped);
    let was = at;
    engine.shutdown();
    drop(engine);
    let (engine, _) = bench.boot();
    let mut at = engine.scrub_position();
    assert_eq!(at, was);
    let mut rest = 0;
    while matches!(engine.scrub(&mut at, &|_| true), Scrubbed::Segment { .. }) {
        rest += 1;
    }
    // A segment that was not sealed then may be by now.
    assert!(at.done && (all - 2..=all).contains(&rest), "{rest} of {all}");
    assert_eq!(engine.scrub_position(), ScrubPosition { started_ms: 7, done: true, ..at });
}

#[test]
fn what_was_collected_is_not_told() {
    let (bench, engine) = filled(35, 1);
    let (path, at) = place(&bench, 2, 5);
    flip(&bench, &path, at + 100, 0);
    assert_eq!(pass(&engine).1, 1);
    assert_eq!(collect(&engine, 2), Some(WriteOutcome::Ok));
    assert!(engine.damaged().is_empty());
    assert_eq!(pass(&engine).1, 0);
}
