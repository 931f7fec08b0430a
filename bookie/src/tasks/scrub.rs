//! Scrubbing: reads what is at rest, slowly, and has mended what is damaged.
//!
//! Damage of a CLOSED ledger is recorded in the quorum as a repair of this bookie by this bookie (R23): its copies are brought from
//! the other members. A ledger that is not closed yet waits until it is.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tidemill_meta_client::MetaClient;
use tidemill_storage::{Engine, ScrubPosition, Scrubbed};
use tidemill_types::{
    LedgerId, LedgerState,
    meta::{Command, StartRepair},
};
use tokio_util::sync::CancellationToken;

use super::patrol;
use crate::shared::{Core, Serving};

/// Between two looks whether a pass is due, and between two reports of damage.
const LOOK: Duration = Duration::from_secs(10);
/// The pace sleeps in pieces of this length, so that a stop is seen.
const NAP: Duration = Duration::from_millis(50);
/// Repairs that are asked for at once.
const AT_ONCE: usize = 4;

/// Runs until the bookie stops.
pub(crate) async fn run(core: Arc<Core>, serving: Arc<Serving>) {
    let stop = core.sup.token().clone();
    let look = LOOK.min(core.config.scrub_interval());
    let engine = serving.engine.clone();
    let Ok(mut at) = blocking(move || engine.scrub_position()).await else { return };
    loop {
        let now = now_ms();
        if at.done && is_due(&at, now, core.config.scrub_interval()) || at.started_ms == 0 {
            at = ScrubPosition { started_ms: now, ..ScrubPosition::default() };
        }
        if !at.done {
            let (engine, rate, token) =
                (serving.engine.clone(), core.config.scrub_bytes_per_second, stop.clone());
            let Ok(after) = blocking(move || pass(&engine, at, rate, &token)).await else { return };
            at = after;
            if at.done {
                core.counters.scrub_passes.inc();
                tracing::info!(
                    damaged = serving.engine.stats().damaged_entries,
                    "everything at rest was read and checked"
                );
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(look) => {}
        }
    }
}

/// A clock that was set back starts no pass early and keeps none off for longer than one interval.
fn is_due(at: &ScrubPosition, now: i64, interval: Duration) -> bool {
    let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
    now.abs_diff(at.started_ms) >= interval.unsigned_abs()
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX).max(1)
}

async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Result<T, ()> {
    tidemill_runtime::work::blocking(f).await.map_err(|error| {
        tracing::error!(%error, "the scrub ended");
    })
}

/// Reads until the pass is done or the bookie stops.
fn pass(engine: &Engine, mut at: ScrubPosition, rate: u64, stop: &CancellationToken) -> ScrubPosition {
    let begin = Instant::now();
    let total = std::cell::Cell::new(0u64);
    // Paced over the whole pass: reads that took long need no further pause.
    let pace = |bytes: u64| {
        total.set(total.get() + bytes);
        let due = Duration::from_secs_f64(total.get() as f64 / rate as f64);
        while let Some(left) = due.checked_sub(begin.elapsed()).filter(|l| !l.is_zero()) {
            if stop.is_cancelled() {
                return false;
            }
            if !tidemill_runtime::work::pause(left.min(NAP)) {
                break;
            }
        }
        !stop.is_cancelled()
    };
    loop {
        match engine.scrub(&mut at, &pace) {
            Scrubbed::Segment { damaged: 0, .. } => {}
            Scrubbed::Segment { damaged, .. } => {
                tracing::error!(
                    damaged,
                    "stored entries fail their check: they are repaired from other bookies"
                );
            }
            Scrubbed::PassDone | Scrubbed::Stopped => return at,
        }
    }
}

/// Has damage mended, until it is dropped.
pub(crate) async fn report(core: Arc<Core>, client: MetaClient, serving: Arc<Serving>) {
    let look = LOOK.min(core.config.scrub_interval());
    loop {
        tokio::time::sleep(look).await;
        let damaged = serving.engine.damaged();
        if damaged.is_empty() {
            continue;
        }
        let Some(me) = patrol::member(&client, &serving).await else { continue };
        let mut under_way = 0;
        for (ledger, _) in damaged {
            if under_way >= AT_ONCE {
                break;
            }
            match ask(&client, &serving, ledger, me.limbo_count).await {
                Ok(true) => under_way += 1,
                Ok(false) => {}
                Err(why) => tracing::debug!(%ledger, why, "a repair was not recorded"),
            }
        }
    }
}

/// Records the repair. Whether one is under way now.
async fn ask(
    client: &MetaClient,
    serving: &Serving,
    ledger: LedgerId,
    limbo_count: u32,
) -> Result<bool, String> {
    let Some(record) = client.ledger(ledger).await.map_err(|e| e.to_string())? else { return Ok(false) };
    if record.state != LedgerState::Closed || !record.names(serving.id) {
        return Ok(false);
    }
    if record.repair.is_some() {
        return Ok(true);
    }
    let session = client.session().ok_or("there is no session")?;
    let start =
        StartRepair { ledger, version: record.version, target: serving.id, limbo_count, worker: serving.id };
    let answer = session.propose(Command::StartRepair(start)).await.map_err(|e| e.to_string())?;
    answer.map_err(|rejection| rejection.to_string())?;
    tracing::warn!(%ledger, "a repair of damaged entries was recorded");
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_due_after_an_interval_whatever_the_clock_did() {
        let week = Duration::from_secs(7 * 24 * 3600);
        let ms = i64::try_from(week.as_millis()).unwrap();
        let at = ScrubPosition { started_ms: 10 * ms, done: true, ..ScrubPosition::default() };
        assert!(!is_due(&at, 10 * ms + 5, week) && !is_due(&at, 10 * ms - 5, week));
        assert!(is_due(&at, 11 * ms, week) && is_due(&at, 9 * ms, week));
    }
}
