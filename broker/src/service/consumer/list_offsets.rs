//! `ListOffsets`: the first, the last, or by time.

use std::sync::Arc;

use futures::{StreamExt, stream};
use tidemill_partition_log::{ListedOffset, OffsetSpec};
use tidemill_proto::v1::{self, list_offsets_partition::At};
use tidemill_types::{Epoch, Offset};

use super::refused;
use crate::{core::Core, fault::Fault, limits};

/// Searches by time read from bookies: so many at once.
const AT_ONCE: usize = 32;

pub(super) async fn list(
    core: &Arc<Core>,
    request: v1::ListOffsetsRequest,
) -> Result<v1::ListOffsetsResponse, Fault> {
    let n = request.partitions.len();
    if !(1..=limits::MAX_LIST_OFFSETS).contains(&n) {
        return Err(Fault::invalid("partitions", n, &format!("1 to {}", limits::MAX_LIST_OFFSETS)));
    }
    let offsets = stream::iter(request.partitions).map(|p| one(core, p)).buffered(AT_ONCE).collect().await;
    Ok(v1::ListOffsetsResponse { offsets })
}

async fn one(core: &Arc<Core>, asked: v1::ListOffsetsPartition) -> v1::ListedOffset {
    let mut out = v1::ListedOffset {
        topic: asked.topic.clone(),
        partition: asked.partition,
        offset: -1,
        timestamp_ms: -1,
        ..v1::ListedOffset::default()
    };
    match find(core, &asked).await {
        Ok((found, epoch)) => {
            out.epoch = epoch.0;
            out.offset = found.offset.0;
            out.timestamp_ms = found.timestamp_ms;
        }
        Err(fault) => {
            let error = fault.to_proto();
            out.epoch = error.epoch;
            out.error = Some(error);
        }
    }
    out
}

async fn find(core: &Arc<Core>, asked: &v1::ListOffsetsPartition) -> Result<(ListedOffset, Epoch), Fault> {
    let topic = core.topic(&asked.topic)?;
    let id = topic.partition(asked.partition)?;
    let spec = match asked.at {
        Some(At::Earliest(true)) => OffsetSpec::Earliest,
        Some(At::Latest(true)) => OffsetSpec::Latest,
        Some(At::TimestampMs(ms)) if ms >= 0 => OffsetSpec::Timestamp(ms),
        Some(At::TimestampMs(ms)) => {
            return Err(Fault::invalid("timestamp_ms", ms, "ms since 1970, 0 or above"));
        }
        _ => return Err(Fault::invalid("at", "nothing", "earliest = true, latest = true or timestamp_ms")),
    };
    let log = core.log(&topic, id, asked.epoch)?;
    let found = log.list_offset(spec).await.map_err(|e| refused(core, &topic, id, &e))?;
    let none = ListedOffset { offset: Offset(-1), timestamp_ms: -1 };
    Ok((found.unwrap_or(none), log.epoch()))
}
