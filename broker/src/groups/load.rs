//! Replays the log of a coordinator.

use std::{sync::Arc, time::Duration};

use tidemill_group::{Coordinator, Settings};
use tidemill_partition_log::{FetchError, GapKind, PartitionLog};
use tidemill_runtime::defaults;
use tidemill_types::Offset;

use super::records;

/// Bytes of one read.
const READ: usize = 1 << 20;
/// Before a read is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a log was not replayed.
pub(super) enum Failed {
    /// The partition went to another owner.
    NotOwner,
    /// Its bytes are not what a coordinator writes.
    Broken(String),
}

/// A coordinator as of the end of its log, and the bytes that were read.
pub(super) async fn load(log: &Arc<PartitionLog>) -> Result<(Coordinator, u64), Failed> {
    let mut c = Coordinator::new(settings());
    let mut bytes = 0;
    let mut at = log.log_start();
    loop {
        let read = match log.read(at, READ).await {
            Ok(read) => read,
            Err(FetchError::NotOwner | FetchError::OutOfRange { .. }) => return Err(Failed::NotOwner),
            Err(e @ (FetchError::NotReady | FetchError::Unavailable(_) | FetchError::Trimmed { .. })) => {
                tracing::debug!(partition = %log.id(), error = %e, "the log of a coordinator cannot be read yet");
                tokio::time::sleep(PAUSE).await;
                at = at.max(log.log_start());
                continue;
            }
            Err(e @ (FetchError::DataLoss { .. } | FetchError::Corrupt(_))) => {
                return Err(Failed::Broken(format!("the log of the coordinator in {}: {e}", log.id())));
            }
        };
        if let Some(gap) = read.gap.filter(|g| g.kind == GapKind::DataLoss) {
            tracing::error!(partition = %log.id(), from = %gap.from, to = %gap.to,
                "commits of consumer groups are lost: an operator accepted it");
        }
        // An answer at the end was given after proof of ownership: what was read is all there is.
        if read.batches.is_empty() && read.gap.is_none() && read.next_offset >= read.high_watermark {
            return Ok((c, bytes));
        }
        for b in &read.batches {
            bytes += b.bytes.len() as u64;
            let replayed = records::read(b, at.0).map_err(|why| {
                Failed::Broken(format!("the log of the coordinator in {}: {why}", log.id()))
            })?;
            for r in &replayed {
                c.replay(r);
            }
        }
        at = read.next_offset.max(Offset(at.0));
        tokio::task::yield_now().await;
    }
}

fn settings() -> Settings {
    Settings {
        session: defaults::GROUP_SESSION,
        rebalance: defaults::GROUP_REBALANCE,
        offsets_retention: defaults::OFFSETS_RETENTION,
        ..Settings::default()
    }
}
