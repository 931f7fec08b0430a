//! `AlterTopic`.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::{
    ErrorCode,
    meta::{Command, Reply},
};

use super::{create, current_topic, propose};
use crate::{
    convert,
    core::Core,
    deadline::Deadline,
    fault::Fault,
    limits,
    route::{not_internal, topic_name},
};

/// Tries when somebody else changes the topic at the same time.
const TRIES: u32 = 5;

pub(super) async fn alter(
    core: &Arc<Core>,
    request: v1::AlterTopicRequest,
    deadline: Deadline,
) -> Result<v1::AlterTopicResponse, Fault> {
    let name = topic_name(&request.name)?;
    not_internal(&name)?;
    let mut tries = 0;
    let topic = loop {
        tries += 1;
        let old =
            current_topic(core, &name, deadline).await?.ok_or_else(|| Fault::unknown_topic(&request.name))?;
        let partitions = match request.partitions {
            0 => None,
            n if (old.partitions..=limits::MAX_PARTITIONS).contains(&n) => Some(n),
            n => {
                let allowed = format!("0 for no change, or {} to {}", old.partitions, limits::MAX_PARTITIONS);
                return Err(Fault::invalid("partitions", n, &allowed));
            }
        };
        let config = convert::config::apply(old.config.clone(), &request.config, &core.config)?;
        let command = Command::AlterTopic {
            topic: old.id,
            // Keys that are not named stay as they were read.
            version: Some(old.version),
            partitions,
            config: (!request.config.is_empty()).then_some(config),
        };
        match propose(core, &format!("alter topic {name}"), command, deadline).await {
            Ok(Reply::Topic(t)) => break t,
            Ok(_) => return Err(Fault::internal("alter a topic", "a reply of another kind")),
            Err(e) if e.code() == ErrorCode::Conflict && tries < TRIES => {}
            Err(e) => return Err(e),
        }
    };
    create::served(core, topic.id, topic.partitions, deadline).await;
    Ok(v1::AlterTopicResponse { topic: Some(create::shown(core, &topic)) })
}
