//! Gives partitions up in order: the log first, then the `Release`.

use std::{sync::Arc, time::Duration};

use tidemill_meta_client::{MetaError, Session};
use tidemill_partition_log::{LogState, PartitionLog};
use tidemill_types::meta::Release;

use super::manager::Done;

/// Before the same batch is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// Finishes what is in flight and closes the open ledger.
pub(super) async fn end(log: Arc<PartitionLog>) -> Done {
    if log.state() != LogState::Dropped {
        let state = log.release().await;
        tracing::debug!(partition = %log.id(), epoch = %log.epoch(), ?state, "given up");
    }
    Done::Ended(log.id(), log.epoch())
}

/// Sends one batch. A refused element needs no second try: the epoch is not this session's any more.
pub(super) async fn send(session: Session, items: Vec<Release>) -> Done {
    let outcome = match session.release(items.clone()).await {
        Ok(Ok(each)) => {
            for (item, verdict) in items.iter().zip(each) {
                if let Err(why) = verdict {
                    tracing::debug!(partition = %item.partition, epoch = %item.epoch, %why, "release refused");
                }
            }
            Ok(())
        }
        Ok(Err(r)) => Err(MetaError::Unavailable { why: r.to_string() }),
        Err(e) => Err(e),
    };
    if outcome.is_err() {
        tokio::time::sleep(PAUSE).await;
    }
    Done::Released(items, outcome)
}
