//! Frees segments: removes dead ones, rewrites those with little left in them (R21), slowly enough to leave the disk to adds.

use std::{sync::Arc, time::Duration};

use tidemill_runtime::work;
use tidemill_storage::Engine;
use tokio_util::sync::CancellationToken;

use crate::shared::{Core, Serving};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);
/// The throttle sleeps in pieces of this length, so that a stop is seen.
const NAP: Duration = Duration::from_millis(50);

/// Runs until the bookie stops; a round that is under way then is cut short by an unthrottled end of its segment.
pub(crate) async fn run(core: Arc<Core>, serving: Arc<Serving>) {
    let stop = core.sup.token().clone();
    let every = EVERY.min(core.config.gc_pass());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
        let (engine, rate, token) =
            (serving.engine.clone(), core.config.rewrite_bytes_per_second, stop.clone());
        let rounds = work::blocking(move || rounds(&engine, rate, &token)).await;
        match rounds {
            Ok(0) | Err(_) => {}
            Ok(segments) => tracing::info!(segments, "segments were removed or rewritten"),
        }
    }
}

/// Rounds until there is nothing left to do. A failed sync has stopped the engine and told the supervisor already.
fn rounds(engine: &Engine, rate: u64, stop: &CancellationToken) -> usize {
    let throttle = |bytes: u64| {
        let mut left = Duration::from_micros(bytes.saturating_mul(1_000_000) / rate);
        while !left.is_zero() && !stop.is_cancelled() {
            let nap = left.min(NAP);
            if !work::pause(nap) {
                return;
            }
            left -= nap;
        }
    };
    let mut done = 0;
    while !stop.is_cancelled() {
        match engine.maintain(&throttle) {
            Ok(true) => done += 1,
            Ok(false) | Err(_) => break,
        }
    }
    done
}
