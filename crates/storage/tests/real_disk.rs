//! On the real file system, with real threads.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

use std::{
    path::PathBuf,
    sync::{
        Arc, Barrier,
        atomic::{AtomicI64, Ordering},
        mpsc,
    },
};

use bytes::Bytes;
use tidemill_runtime::io::RealDisk;
use tidemill_storage::*;
use tidemill_types::{ClusterId, Entry, EntryId, Incarnation, LedgerId};
use uuid::Uuid;

fn entry(ledger: u64, id: i64) -> Bytes {
    let body = Bytes::from(vec![id.to_le_bytes()[0]; 1000]);
    let e = Entry::encode(LedgerId(ledger), EntryId(id), EntryId(id - 1), 0, b"e", &[body]).unwrap();
    e.bytes().clone()
}

fn boot(dirs: &[PathBuf], incarnation: u64) -> Engine {
    let mut config = EngineConfig::new(dirs.to_vec());
    config.segment_bytes = 1 << 20;
    let mut scanned = Engine::open_scan(Arc::new(RealDisk), config).unwrap();
    assert!(!scanned.report().found_loss(), "{:?}", scanned.report().losses);
    scanned.write_pending(ClusterId(Uuid::from_u128(1)), Incarnation(incarnation)).unwrap();
    scanned.finish(FinishBoot { limbo: false, mark: Some(LedgerId(0)) }).unwrap()
}

fn add(engine: &Engine, bytes: Bytes, kind: AddKind) -> mpsc::Receiver<AddOutcome> {
    let (tx, rx) = mpsc::channel();
    engine.add(bytes, kind, Completion::new(move |o| tx.send(o).unwrap()));
    rx
}

#[test]
fn adds_survive_restarts_and_maintenance() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = [dir.path().join("a"), dir.path().join("b")];
    for round in 0..3 {
        let engine = boot(&dirs, round + 1);
        let first = i64::try_from(round).unwrap() * 500;
        let waiting: Vec<_> = (first..first + 500)
            .flat_map(|e| (1..=4).map(move |l| (l, e)))
            .map(|(l, e)| add(&engine, entry(l, e), AddKind::Normal))
            .collect();
        for w in waiting {
            assert_eq!(w.recv().unwrap(), AddOutcome::Ok);
        }
        let short = 100 + round;
        assert_eq!(add(&engine, entry(short, 0), AddKind::Normal).recv().unwrap(), AddOutcome::Ok);
        let (tx, rx) = mpsc::channel();
        let guard = engine.begin_collect(LedgerId(short)).unwrap();
        guard.commit(Completion::new(move |o| tx.send(o).unwrap()));
        assert_eq!(rx.recv().unwrap(), WriteOutcome::Ok);
        while engine.maintain(&|_| {}).unwrap() {}
        for l in 1..=4 {
            let all = engine.read_range(LedgerId(l), EntryId(0), 10_000, 64 << 20, ReadMode::Full);
            for (e, outcome) in &all[..all.len() - 1] {
                assert_eq!(*outcome, ReadOutcome::Entry(entry(l, e.0)));
            }
            let mut next = EntryId(0);
            while next.0 < first + 500 {
                let part = engine.read_range(LedgerId(l), next, 10_000, 64 << 20, ReadMode::Full);
                next = part.iter().rfind(|(_, o)| matches!(o, ReadOutcome::Entry(_))).unwrap().0.next();
            }
            assert_eq!(engine.read(LedgerId(l), next, ReadMode::Full), ReadOutcome::NoSuchEntry);
        }
        let stats = engine.stats();
        assert!(stats.groups < stats.entries, "group commit: {stats:?}");
        engine.shutdown();
        assert_eq!(
            add(&engine, entry(1, 100_000), AddKind::Normal).recv().unwrap(),
            AddOutcome::Unknown(UnknownReason::Stopped)
        );
    }
}

/// R13, R25: whatever the interleaving, no plain add is acknowledged above what the fence's answer saw.
#[test]
fn a_fence_and_adds_race() {
    let dir = tempfile::tempdir().unwrap();
    let engine = boot(&[dir.path().join("a")], 1);
    for ledger in 1..40 {
        let highest = Arc::new(AtomicI64::new(-1));
        let start = Arc::new(Barrier::new(3));
        let threads: Vec<_> = (0..2)
            .map(|t| {
                let (engine, highest, start) = (engine.clone(), Arc::clone(&highest), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    let waiting: Vec<_> = (0..50)
                        .map(|n| (n * 2 + t, add(&engine, entry(ledger, n * 2 + t), AddKind::Normal)))
                        .collect();
                    for (e, w) in waiting {
                        match w.recv().unwrap() {
                            AddOutcome::Ok => drop(highest.fetch_max(e, Ordering::SeqCst)),
                            AddOutcome::Fenced => {}
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        start.wait();
        let (tx, rx) = mpsc::channel();
        engine.fence(LedgerId(ledger), Completion::new(move |o| tx.send(o).unwrap()));
        let FenceOutcome::Fenced { last_entry, .. } = rx.recv().unwrap() else { panic!("not fenced") };
        for t in threads {
            t.join().unwrap();
        }
        assert!(highest.load(Ordering::SeqCst) <= last_entry.0);
    }
    engine.shutdown();
}

#[test]
fn a_second_process_is_refused_and_dropping_the_engine_frees_the_lanes() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = [dir.path().join("a")];
    let engine = boot(&dirs, 1);
    let refused = Engine::open_scan(Arc::new(RealDisk), EngineConfig::new(dirs.to_vec())).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }));
    assert_eq!(add(&engine, entry(1, 0), AddKind::Normal).recv().unwrap(), AddOutcome::Ok);
    engine.shutdown();
    drop(engine);
    let engine = boot(&dirs, 2);
    assert_eq!(engine.read(LedgerId(1), EntryId(0), ReadMode::Full), ReadOutcome::Entry(entry(1, 0)));
}
