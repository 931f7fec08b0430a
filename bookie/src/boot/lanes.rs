//! Who runs the lanes: their own threads, or a task in a simulation, which has one thread.

use std::{sync::Arc, time::Duration};

use tidemill_runtime::world;
use tidemill_storage::{Driver, Engine};
use tokio::sync::Notify;

/// A lane has something to do by itself at least this often: its closing group, a look at the free space.
const TURN: Duration = Duration::from_millis(20);

/// How the engine's lanes are to be run; `work` is told when there is some.
pub(super) fn driver(work: &Arc<Notify>) -> Driver {
    if world::simulated() {
        let work = work.clone();
        Driver::Inline { wake: Arc::new(move || work.notify_one()) }
    } else {
        Driver::Threads
    }
}

/// Starts what the driver promised.
pub(super) fn run(engine: &Engine, work: &Arc<Notify>) {
    if !world::simulated() {
        return;
    }
    let (engine, work) = (engine.clone(), work.clone());
    tokio::spawn(async move {
        while !engine.stopped() {
            world::disk_delay().await;
            engine.step();
            let _turn = tokio::time::timeout(TURN, work.notified()).await;
        }
    });
}
