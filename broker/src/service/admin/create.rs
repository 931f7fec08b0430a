//! `CreateTopic`.

use std::sync::Arc;

use tidemill_partition_log::LogState;
use tidemill_proto::v1;
use tidemill_types::{
    ErrorCode, Member, PartitionRecord, TopicConfig, TopicId, TopicRecord,
    meta::{Command, Reply},
};

use super::{EFFECT_WAIT, current_topic, propose, until};
use crate::{convert, core::Core, deadline::Deadline, fault::Fault, limits, route::topic_name};

pub(super) async fn create(
    core: &Arc<Core>,
    request: v1::CreateTopicRequest,
    deadline: Deadline,
) -> Result<v1::CreateTopicResponse, Fault> {
    let name = topic_name(&request.name)?;
    if name.is_internal() {
        let allowed = "names that do not begin with two underscores: those belong to the system";
        return Err(Fault::field(ErrorCode::InvalidTopicName, "name", "an internal name", allowed));
    }
    if !(1..=limits::MAX_PARTITIONS).contains(&request.partitions) {
        let allowed = format!("1 to {}", limits::MAX_PARTITIONS);
        return Err(Fault::invalid("partitions", request.partitions, &allowed));
    }
    let config = convert::config::apply(TopicConfig::default(), &request.config, &core.config)?;
    if deadline.passed() {
        return Err(Fault::deadline_not_written());
    }
    let command =
        Command::CreateTopic { name: name.clone(), partitions: request.partitions, config: config.clone() };
    let topic = match propose(core, &format!("create topic {name}"), command, deadline).await {
        Ok(Reply::Topic(t)) => t,
        Ok(_) => return Err(Fault::internal("create a topic", "a reply of another kind")),
        Err(e) if e.code() == ErrorCode::TopicExists && request.if_not_exists => {
            let there = current_topic(core, &name, deadline).await?;
            there.filter(|t| t.partitions == request.partitions && t.config == config).ok_or_else(|| {
                Fault::new(
                    e.code(),
                    format!("topic {name} exists with other partitions or another configuration"),
                )
            })?
        }
        Err(e) => return Err(e),
    };
    served(core, topic.id, topic.partitions, deadline).await;
    Ok(v1::CreateTopicResponse { topic: Some(shown(core, &topic)) })
}

/// Waits until every partition of the topic has an owner, and those of this broker serve: a produce right after succeeds.
/// When the wait ends the topic exists all the same, and the answer shows which partitions have no owner yet.
pub(super) async fn served(core: &Arc<Core>, topic: TopicId, partitions: u32, deadline: Deadline) {
    let all = until(core, deadline.at_most(EFFECT_WAIT), |core| {
        let table = core.mirror.table();
        let mut known = 0;
        let each = table.partitions_of(topic).all(|p| {
            known += 1;
            convert::topic::live_owner(p, &table).is_some_and(|m| is_served(core, p, m))
        });
        each && known >= partitions
    });
    if !all.await {
        tracing::warn!(topic = %topic, partitions, "a topic's partitions have no owners yet");
    }
}

fn is_served(core: &Core, p: &PartitionRecord, owner: &Member) -> bool {
    owner.id != core.member || core.owned.log(p.id).is_some_and(|l| l.state() != LogState::Recovering)
}

/// The topic as the view has it by now; as the quorum answered when the view is behind.
pub(super) fn shown(core: &Core, topic: &TopicRecord) -> v1::Topic {
    let table = core.mirror.table();
    let record = table.topic(topic.id).map_or(topic, AsRef::as_ref);
    let newest = if record.version >= topic.version { record } else { topic };
    convert::topic::to_proto(newest, &table, &core.config)
}
