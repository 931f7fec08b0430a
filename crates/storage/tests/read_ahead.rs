//! A segment holds what many ledgers wrote in turn. Who reads one of them after the others pays a wait for the disk per piece, unless the disk
//! is told of all pieces at once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use common::*;
use tidemill_storage::*;
use tidemill_types::{EntryId, LedgerId};

const LEN: usize = 8 << 10;
const ENTRIES: i64 = 40;

/// Three ledgers in turn, so that two foreign entries lie between two of one.
fn written() -> (Bench, Engine) {
    let mut bench = Bench::new(1, 1);
    bench.config.segment_bytes = 16 << 20;
    let (engine, _) = bench.boot();
    for e in 0..ENTRIES {
        for ledger in 1..=3 {
            let bytes = entry_of(ledger, e, LEN, 0);
            assert_eq!(add(&engine, bytes, AddKind::Normal), Some(AddOutcome::Ok));
        }
    }
    (bench, engine)
}

fn advised(bench: &Bench, engine: &Engine, first: i64, max_bytes: usize) -> (usize, u64) {
    let before = bench.disk.bytes_advised();
    let run = engine.read_range(LedgerId(2), EntryId(first), 1_000, max_bytes, ReadMode::Full);
    for (e, outcome) in &run {
        let past = e.0 == ENTRIES;
        let good = *outcome == ReadOutcome::Entry(entry_of(2, e.0, LEN, 0));
        assert!(good || (past && *outcome == ReadOutcome::NoSuchEntry), "{e:?}");
    }
    (run.len(), bench.disk.bytes_advised() - before)
}

#[test]
fn the_disk_is_told_of_all_pieces_of_a_run_and_of_the_next_one() {
    let (bench, engine) = written();
    let entry = entry_of(2, 0, LEN, 0).len() as u64;
    // Ten are answered and ten more are on their way.
    let ten = 10 * usize::try_from(entry).unwrap();
    assert_eq!(advised(&bench, &engine, 0, ten), (10, 20 * entry));
    // Nothing is behind the last ones; a few of them are still in memory.
    let (read, bytes) = advised(&bench, &engine, ENTRIES - 5, ten);
    assert_eq!(read, 6);
    assert!(bytes <= 5 * entry, "{bytes}");
}

#[test]
fn a_single_piece_is_just_read() {
    let (bench, engine) = written();
    let one = entry_of(2, 0, LEN, 0).len();
    let run = engine.read_range(LedgerId(2), EntryId(3), 1, one, ReadMode::Full);
    assert_eq!(run.len(), 1);
    assert_eq!(bench.disk.bytes_advised(), 0);
}
