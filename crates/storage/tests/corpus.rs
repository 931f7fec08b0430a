//! Replays the fuzzer's corpus of the storage formats without the fuzzer. `UPDATE_CORPUS=1` adds the seeds that are missing.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test")]

mod common;

#[path = "../../../fuzz/exercises/storage.rs"]
mod storage;

use std::{fs, path::Path};

use common::*;
use tidemill_runtime::io::{Disk, OpenMode};
use tidemill_storage::{
    AddKind, ScrubPosition,
    recode::{Format, read},
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/storage");

/// Real files of a small bookie, taken apart: (name, format, bytes).
fn seeds() -> Vec<(String, Format, Vec<u8>)> {
    let bench = Bench::new(77, 1);
    let (engine, _) = bench.boot();
    for e in 0..12 {
        for l in 1..=3 {
            add(&engine, entry_of(l, e, 40, 0), AddKind::Normal);
        }
    }
    fence(&engine, 2);
    fence(&engine, 9);
    collect(&engine, 3);
    engine.scrub(&mut ScrubPosition::default(), &|_| true);
    engine.shutdown();
    let file = |name: &str| {
        let path = Path::new("/lane0").join(name);
        let f = bench.disk.open(&path, OpenMode::Read).unwrap();
        let mut bytes = vec![0; f.len().unwrap() as usize];
        f.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    // The last one has everything: adds, fences, a collection, a checkpoint.
    let mut names = bench.disk.list(Path::new("/lane0")).unwrap().into_iter().map(|i| i.name);
    let segment = file(&names.rfind(|n| n.ends_with(".seg")).unwrap());
    let first_group = &segment[48..56];
    let uuid = &segment[40 - 16..40];
    let block = |n: usize| &segment[n * 4096..(n + 1) * 4096];
    let blocks = segment.len() / 4096;
    let footer = block(blocks - 1);
    let be32 = |at: usize| u32::from_be_bytes(footer[at..at + 4].try_into().unwrap());
    let index_at = u64::from_be_bytes(footer[48..56].try_into().unwrap()) as usize;
    let (rows, runs) = (be32(28), be32(56));
    let pages = rows.div_ceil(340) as usize;
    let runs_at = index_at + pages * 4096;
    let states_at = runs_at + runs as usize * 48;
    let states = &segment[states_at..states_at + (be32(60) + be32(64)) as usize * 24];
    let cat = |parts: &[&[u8]]| parts.concat();
    [
        ("cookie", Format::Cookie, file("cookie")),
        ("control", Format::Control, file("control")),
        ("scrub", Format::Scrub, file("scrub")),
        ("header", Format::Header, block(0).to_vec()),
        ("footer", Format::Footer, cat(&[&(segment.len() as u64).to_be_bytes(), footer])),
        ("group", Format::Group, block(1).to_vec()),
        ("page", Format::Page, cat(&[uuid, &0u32.to_be_bytes(), &segment[index_at..index_at + 4096]])),
        ("directory", Format::Directory, cat(&[&rows.to_be_bytes(), &segment[runs_at..states_at]])),
        ("checkpoint", Format::Checkpoint, cat(&[&footer[60..68], states])),
        ("segment", Format::Segment, cat(&[uuid, first_group, &segment[..index_at]])),
    ]
    .map(|(name, format, bytes)| (name.to_owned(), format, bytes))
    .to_vec()
}

fn number(format: Format) -> u8 {
    Format::ALL.iter().position(|f| *f == format).unwrap() as u8
}

#[test]
fn the_seeds_are_understood_and_stand_in_the_corpus() {
    for (name, format, bytes) in seeds() {
        assert!(read(format, &bytes).items > 0, "{name}");
        let path = Path::new(FOLDER).join(&name);
        if std::env::var_os("UPDATE_CORPUS").is_some() && !path.exists() {
            fs::create_dir_all(FOLDER).unwrap();
            fs::write(&path, [&[number(format)][..], &bytes].concat()).unwrap();
        }
        let stored = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(stored[0], number(format), "{name}: formats are added at the end");
        assert!(read(format, &stored[1..]).items > 0, "{name}: what was written once is read for ever");
    }
}

#[test]
fn the_corpus_of_the_fuzzer_passes() {
    let mut understood = 0;
    for file in fs::read_dir(FOLDER).unwrap() {
        let data = fs::read(file.unwrap().path()).unwrap();
        understood += storage::exercise(&data);
        // Also what a fuzzer does first.
        for n in 0..data.len().min(300) {
            storage::exercise(&data[..n]);
            let mut flipped = data.clone();
            flipped[n] ^= 1 << (n % 8);
            storage::exercise(&flipped);
        }
    }
    assert!(understood > 300, "{understood}");
}
