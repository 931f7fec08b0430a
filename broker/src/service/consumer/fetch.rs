//! `Fetch`: many partitions, one limit, a long poll.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use tidemill_proto::v1;

use super::{
    items::{Item, Outcome},
    read::{self, Room},
    records,
};
use crate::{core::Core, deadline::Deadline, fault::Fault, limits};

/// Answers what is there; waits for `min_bytes` at most until `max_wait_ms`, the deadline, or the broker's end.
pub(super) async fn fetch(
    core: &Arc<Core>,
    request: v1::FetchRequest,
    deadline: Deadline,
) -> Result<v1::FetchResponse, Fault> {
    /// Each fetch begins with another partition, so that a limit does not starve the last ones.
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let (max_bytes, min_bytes) = check(&request)?;
    let wait = deadline.at_most(Duration::from_millis(request.max_wait_ms.into()));
    let mut items: Vec<Item> = request.partitions.into_iter().map(|p| Item::new(core, p)).collect();
    let start = TURN.fetch_add(1, Ordering::Relaxed) % items.len();
    let mut room = Room { left: max_bytes, used: 0, full: false };
    loop {
        if deadline.bound(read::round(core, &mut items, start, &mut room)).await.is_err() && room.used == 0 {
            return Err(Fault::deadline());
        }
        let failed = items.iter().any(|i| matches!(i.outcome, Outcome::Failed(_)));
        // An error is news: it is told at once.
        if room.used >= min_bytes
            || room.full
            || failed
            || has_gap(&items)
            || wait.passed()
            || core.stopping.is_cancelled()
        {
            break;
        }
        core.metrics.fetch_waiting.inc();
        let woken = wait_for_data(core, &items, wait).await;
        core.metrics.fetch_waiting.dec();
        if !woken {
            break;
        }
    }
    core.metrics.fetch_calls.inc();
    core.metrics.fetch_bytes.inc_by(room.used as u64);
    if request.as_records {
        return records::answer(items, max_bytes).await;
    }
    Ok(v1::FetchResponse { partitions: items.into_iter().map(Item::answer).collect() })
}

fn check(r: &v1::FetchRequest) -> Result<(usize, usize), Fault> {
    if !(1..=limits::MAX_FETCH_PARTITIONS).contains(&r.partitions.len()) {
        let allowed = format!("1 to {}", limits::MAX_FETCH_PARTITIONS);
        return Err(Fault::invalid("partitions", r.partitions.len(), &allowed));
    }
    if r.max_bytes > limits::MAX_FETCH_BYTES {
        return Err(Fault::invalid("max_bytes", r.max_bytes, &format!("0 to {}", limits::MAX_FETCH_BYTES)));
    }
    if r.max_wait_ms > limits::MAX_FETCH_WAIT_MS {
        return Err(Fault::invalid(
            "max_wait_ms",
            r.max_wait_ms,
            &format!("0 to {}", limits::MAX_FETCH_WAIT_MS),
        ));
    }
    let max = if r.max_bytes == 0 { limits::DEFAULT_FETCH_BYTES } else { r.max_bytes };
    // More than fits is never there.
    let min = r.min_bytes.clamp(1, max);
    let size = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    Ok((size(max), size(min)))
}

fn has_gap(items: &[Item]) -> bool {
    items.iter().any(
        |i| matches!(&i.outcome, Outcome::Reading(r) if r.found.as_ref().is_some_and(|f| f.gap.is_some())),
    )
}

/// Waits until one of the partitions has news; false when the wait is over.
async fn wait_for_data(core: &Core, items: &[Item], wait: Deadline) -> bool {
    let news: FuturesUnordered<_> = items
        .iter()
        .filter(|i| i.is_waiting())
        .filter_map(|i| match &i.outcome {
            Outcome::Reading(r) => Some(r.log.wait_for_data(i.offset())),
            Outcome::Failed(_) => None,
        })
        .collect();
    if news.is_empty() {
        // Everything has been read, and it is less than was asked for: nothing more is waited for.
        return false;
    }
    tokio::pin!(news);
    tokio::select! {
        _ = news.next() => true,
        () = wait.wait() => false,
        () = core.stopping.cancelled() => false,
    }
}
