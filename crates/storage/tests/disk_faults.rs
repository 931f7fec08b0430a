//! Every operation of the disk fails once, with an I/O error or for want of room: a failed sync stops the engine for good, everything else is
//! survived, and in both cases what was acknowledged is there after a restart.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a failure is a panic, and numbers are small"
)]

mod common;

use std::{collections::BTreeSet, sync::Arc};

use common::*;
use parking_lot::Mutex;
use tidemill_runtime::io::{CrashPlan, Fault, OpKind};
use tidemill_storage::*;

fn life(bench: &Bench, engine: &Engine, acked: &Arc<Mutex<BTreeSet<(u64, i64)>>>) {
    for e in 0..60 {
        for l in 1..=3 {
            let acked = Arc::clone(acked);
            let done = Completion::new(move |o| {
                if o == AddOutcome::Ok {
                    acked.lock().insert((l, e));
                }
            });
            engine.add(entry(l, e), AddKind::Normal, done);
        }
        engine.step();
        if e % 15 == 14 {
            collect(engine, 3);
            acked.lock().retain(|(l, _)| *l != 3);
            let _ = engine.maintain(&|_| {});
            bench.clock.advance(std::time::Duration::from_secs(2));
            engine.step();
        }
    }
}

fn run(kind: OpKind, after: u64, error: std::io::ErrorKind) -> bool {
    let what = format!("{kind:?} {after} {error:?}");
    let bench = Bench::new(after, 1);
    let acked = Arc::new(Mutex::new(BTreeSet::new()));
    let (engine, _) = bench.boot();
    bench.disk.inject(Fault { kind, after, error });
    life(&bench, &engine, &acked);
    let hit = bench.fatal.lock().is_some() || {
        // Still there: not reached any more.
        let before = bench.disk.operations();
        bench.disk.clear_faults();
        before > after
    };
    if matches!(kind, OpKind::Write | OpKind::Create | OpKind::SetLen) {
        assert!(engine.poisoned().is_none(), "{what}: {:?}", engine.poisoned());
        // And it takes adds again.
        bench.clock.advance(std::time::Duration::from_secs(2));
        engine.step();
        assert_eq!(add(&engine, entry(7, 0), AddKind::Normal), Some(AddOutcome::Ok), "{what}");
    }
    let poisoned = engine.poisoned().is_some();
    drop(engine);
    // The machine crashes: what a failed sync dropped is gone.
    bench.disk.crash(CrashPlan::LoseAll);
    let (engine, report) = bench.boot();
    assert!(!report.found_loss(), "{what}: {:?}", report.losses);
    for &(l, e) in acked.lock().iter() {
        assert_eq!(read(&engine, l, e), ReadOutcome::Entry(entry(l, e)), "{what}: {l}/{e}");
    }
    hit && (poisoned || kind != OpKind::Sync)
}

#[test]
fn every_sync_that_fails_is_final() {
    let mut hits = 0;
    for after in 0..90 {
        hits += usize::from(run(OpKind::Sync, after, std::io::ErrorKind::Other));
    }
    assert!(hits > 60, "{hits}");
    for after in 0..15 {
        run(OpKind::SyncDir, after, std::io::ErrorKind::Other);
    }
}

#[test]
fn every_write_that_fails_is_survived() {
    for error in [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull] {
        for after in 0..90 {
            run(OpKind::Write, after, error);
        }
        for after in 0..15 {
            run(OpKind::Create, after, error);
            run(OpKind::SetLen, after, error);
        }
    }
}
