//! The offsets topic, made by whoever needs it first.

use std::sync::Arc;

use tidemill_types::{
    Cleanup, CleanupPolicy, ErrorCode, OFFSETS_TOPIC, Replication, TopicConfig, TopicName,
    meta::{Command, Rejection, Reply},
};

use crate::{
    core::Core,
    deadline::Deadline,
    fault::{Fault, rejected},
    limits,
    route::Topic,
};

/// Ledgers of the offsets topic are rolled at this size, bytes: what is not compacted yet is read by the next coordinator.
const ROLL_BYTES: u64 = 8 << 20;

/// The offsets topic. Its number of partitions is that of the first broker that needed it, and never changes: groups would
/// lose their coordinators.
///
/// # Errors
/// The quorum does not answer, or not within the deadline.
pub(crate) async fn offsets_topic(core: &Arc<Core>, deadline: Deadline) -> Result<Topic, Fault> {
    if let Ok(topic) = core.topic(OFFSETS_TOPIC) {
        return Ok(topic);
    }
    let what = format!("create topic {OFFSETS_TOPIC}");
    let name = TopicName::new(OFFSETS_TOPIC).map_err(|e| Fault::internal(&what, &e.to_string()))?;
    // Older binaries do not know compaction: then the coordinators cut the log behind snapshots.
    let mut answer = create(core, &name, CleanupPolicy::Compact, deadline).await?;
    if let Err(Rejection::FeatureLevel { .. }) = answer {
        answer = create(core, &name, CleanupPolicy::Delete, deadline).await?;
    }
    if let Err(r) = answer {
        let fault = rejected(&what, &r);
        // Another broker was faster.
        if fault.code() != ErrorCode::TopicExists {
            return Err(fault);
        }
    }
    let mut view = core.mirror.changed();
    loop {
        view.mark_unchanged();
        if let Ok(topic) = core.topic(OFFSETS_TOPIC) {
            return Ok(topic);
        }
        if !matches!(deadline.bound(view.changed()).await, Ok(Ok(()))) {
            return Err(Fault::not_ready(&what));
        }
    }
}

async fn create(
    core: &Core,
    name: &TopicName,
    policy: CleanupPolicy,
    deadline: Deadline,
) -> Result<Result<Reply, Rejection>, Fault> {
    let what = format!("create topic {name}");
    let partitions = core.config.internal_partitions;
    let command = Command::CreateTopic { name: name.clone(), partitions, config: config(core, policy) };
    let reply = deadline.bound(core.client.propose(command)).await.map_err(|_| Fault::not_ready(&what))?;
    reply.map_err(|e| Fault::new(e.code(), format!("{what}: {e}")))
}

/// Nothing of it is removed by time or size.
fn config(core: &Core, policy: CleanupPolicy) -> TopicConfig {
    TopicConfig {
        replication: core.config.clamp(Replication::default()),
        retention_ms: i64::try_from(limits::MAX_MS).ok(),
        retention_bytes: None,
        max_message_bytes: Some(limits::MAX_MESSAGE_CEILING),
        roll_bytes: Some(ROLL_BYTES),
        cleanup: Cleanup { policy, ..Cleanup::default() },
        ..TopicConfig::default()
    }
}
