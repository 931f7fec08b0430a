//! Opens one partition that was acquired.

use std::{sync::Arc, time::Duration};

use tidemill_meta_client::Session;
use tidemill_partition_log::{LogState, PartitionLog};
use tidemill_types::{Epoch, Owner, PartitionId, TopicConfig, meta::PartitionView};
use tokio::time::Instant;

use super::manager::Done;
use crate::core::Core;

/// How long one take-over counts against the bound of those that run at once. One that takes longer (bookies are down)
/// goes on beside the others.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the partition's records after the `Acquire` and takes its log over. Returns when it serves.
pub(super) async fn open(
    core: Arc<Core>,
    session: Session,
    (id, epoch): (PartitionId, Epoch),
    since: Instant,
    config: Arc<TopicConfig>,
) -> Done {
    let owner = Owner { broker: core.member, session: session.id() };
    match read(&core, id).await {
        // Only this session, in this epoch: an epoch that was given up meanwhile is not served again.
        Some(view) if view.partition.epoch == epoch && view.partition.owner == Some(owner) => {
            let log = PartitionLog::open(core.logs.clone(), view, epoch, config);
            if core.owned.opened(id, &log) {
                // Ends with the log, whatever becomes of it.
                let report = tokio::spawn(ready(core.clone(), log, since));
                if tokio::time::timeout(PATIENCE, report).await.is_err() {
                    tracing::warn!(partition = %id, "the take-over takes long and goes on in the background");
                }
            } else {
                log.abandon();
            }
        }
        _ => core.owned.remove_epoch(id, epoch),
    }
    Done::Opened(id)
}

async fn ready(core: Arc<Core>, log: Arc<PartitionLog>, since: Instant) {
    let state = log.ready().await;
    if state == LogState::Serving {
        core.metrics.take_overs.inc();
        core.metrics.take_over_duration.observe(since.elapsed().as_secs_f64());
    }
    // Those who wait for the partition look again.
    core.owned.touch();
}

/// A linearizable read, again and again: this task is ended with the session.
async fn read(core: &Core, id: PartitionId) -> Option<PartitionView> {
    loop {
        match core.client.partition(id).await {
            Ok(view) => return view,
            Err(error) => {
                tracing::warn!(partition = %id, %error, "its records cannot be read");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
