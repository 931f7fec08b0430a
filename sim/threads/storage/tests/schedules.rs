//! L1: what happens to one ledger in several threads at once, under thousands of schedules. The engine is production's source; each lock of
//! it is a point at which another thread may go on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_sign_loss, reason = "a test")]

extern crate tidemill_sim_storage as tidemill_storage;

#[path = "../../../../crates/storage/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::{Bench, add, entry, fence, read};
use parking_lot::Mutex;
use shuttle::{check_random, thread};
use tidemill_runtime::io::CrashPlan;
use tidemill_sim_storage::{AddKind, AddOutcome, Completion, Engine, FenceOutcome, ReadOutcome};
use tidemill_types::LedgerId;

/// Schedules of each test.
const SCHEDULES: usize = 300;
const LEDGER: u64 = 7;

/// A thread that runs the lane until the others are done.
fn lane(engine: &Engine, turns: usize) -> thread::JoinHandle<()> {
    let engine = engine.clone();
    thread::spawn(move || {
        for _ in 0..turns {
            engine.step();
            thread::yield_now();
        }
    })
}

/// Adds these entries; gives what became of each.
fn adder(engine: &Engine, entries: Vec<i64>) -> thread::JoinHandle<Arc<Mutex<Vec<(i64, AddOutcome)>>>> {
    let engine = engine.clone();
    thread::spawn(move || {
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        for id in entries {
            let to = outcomes.clone();
            let done = Completion::new(move |outcome| to.lock().push((id, outcome)));
            engine.add(entry(LEDGER, id), AddKind::Normal, done);
        }
        outcomes
    })
}

/// R13, R25: what a fence does not tell of is never acknowledged, in whatever order it meets the adds.
#[test]
fn r13_a_fence_tells_of_every_add_that_is_acknowledged() {
    check_random(
        || {
            let bench = Bench::new(1, 1);
            let (engine, _) = bench.boot();
            let first = add(&engine, entry(LEDGER, 0), AddKind::Normal);
            assert!(matches!(first, Some(AddOutcome::Ok)));
            let adders = [adder(&engine, vec![1, 3]), adder(&engine, vec![2, 4])];
            let lane = lane(&engine, 3);
            let told = Arc::new(Mutex::new(None));
            let to = told.clone();
            engine.fence(LedgerId(LEDGER), Completion::new(move |o| *to.lock() = Some(o)));
            let outcomes = adders.map(|t| t.join().unwrap());
            lane.join().unwrap();
            engine.step();
            let Some(FenceOutcome::Fenced { last_entry, .. }) = told.lock().take() else {
                panic!("not fenced")
            };
            for (id, outcome) in outcomes.iter().flat_map(|o| std::mem::take(&mut *o.lock())) {
                match outcome {
                    AddOutcome::Ok => {
                        assert!(id <= last_entry.0, "entry {id} is acknowledged, told was {last_entry}")
                    }
                    AddOutcome::Fenced => assert!(
                        !matches!(read(&engine, LEDGER, id), ReadOutcome::Entry(_)),
                        "entry {id} was refused and is there"
                    ),
                    other => panic!("{other:?}"),
                }
            }
            assert!(matches!(add(&engine, entry(LEDGER, 9), AddKind::Normal), Some(AddOutcome::Fenced)));
        },
        SCHEDULES,
    );
}

/// R17: at the moment of an acknowledgement the entry is on the disk, whatever else the group holds.
#[test]
fn r17_what_is_acknowledged_is_on_the_disk() {
    check_random(
        || {
            let bench = Bench::new(2, 1);
            let (engine, _) = bench.boot();
            let cut = Arc::new(Mutex::new(None));
            let acked = Arc::new(Mutex::new(Vec::new()));
            let threads: Vec<_> = [[0, 1], [2, 3]]
                .into_iter()
                .map(|ids| {
                    let (engine, cut, acked, disk) =
                        (engine.clone(), cut.clone(), acked.clone(), bench.disk.clone());
                    thread::spawn(move || {
                        for id in ids {
                            let (cut, acked, disk) = (cut.clone(), acked.clone(), disk.clone());
                            let done = Completion::new(move |o| {
                                assert!(matches!(o, AddOutcome::Ok), "{o:?}");
                                acked.lock().push(id);
                                // The power goes after the third acknowledgement.
                                let told = acked.lock().clone();
                                if told.len() == 3 {
                                    *cut.lock() = Some((disk.fork(5), told));
                                }
                            });
                            engine.add(entry(LEDGER, id), AddKind::Normal, done);
                        }
                    })
                })
                .collect();
            let lane = lane(&engine, 4);
            threads.into_iter().for_each(|t| t.join().unwrap());
            lane.join().unwrap();
            engine.step();
            let Some((disk, told)) = cut.lock().take() else { panic!("not acknowledged") };
            disk.crash(CrashPlan::LoseAll);
            let after = Bench { disk, ..Bench::new(3, 1) };
            let (engine, _) = after.boot();
            for id in told {
                assert!(
                    matches!(read(&engine, LEDGER, id), ReadOutcome::Entry(_)),
                    "entry {id} was acknowledged and the power cut took it"
                );
            }
        },
        SCHEDULES,
    );
}

/// R11: a fence of a ledger that nobody ever added to, and its first add, come at once: one of them is first for good.
#[test]
fn r11_a_first_add_and_a_first_fence() {
    check_random(
        || {
            let bench = Bench::new(4, 1);
            let (engine, _) = bench.boot();
            let adding = adder(&engine, vec![0]);
            let fencing = {
                let engine = engine.clone();
                thread::spawn(move || fence(&engine, LEDGER))
            };
            let outcomes = adding.join().unwrap();
            let told = fencing.join().unwrap();
            engine.step();
            let acked = outcomes.lock().iter().any(|(_, o)| matches!(o, AddOutcome::Ok));
            if let Some(FenceOutcome::Fenced { last_entry, .. }) = told {
                assert!(!acked || last_entry.0 >= 0, "acknowledged behind a fence that told of nothing");
            }
            let later = add(&engine, entry(LEDGER, 1), AddKind::Normal);
            assert!(matches!(later, Some(AddOutcome::Fenced)), "{later:?}");
        },
        SCHEDULES,
    );
}
