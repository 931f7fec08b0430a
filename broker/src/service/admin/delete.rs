//! `DeleteTopic`.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::meta::Command;

use super::{EFFECT_WAIT, current_topic, propose, until};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::Fault,
    route::{not_internal, topic_name},
};

pub(super) async fn delete(
    core: &Arc<Core>,
    request: v1::DeleteTopicRequest,
    deadline: Deadline,
) -> Result<v1::DeleteTopicResponse, Fault> {
    let name = topic_name(&request.name)?;
    not_internal(&name)?;
    let topic =
        current_topic(core, &name, deadline).await?.ok_or_else(|| Fault::unknown_topic(&request.name))?;
    propose(core, &format!("delete topic {name}"), Command::DeleteTopic { topic: topic.id }, deadline)
        .await?;
    // So that this broker does not tell of it any more.
    let gone = |core: &Core| core.mirror.table().topic_by_name(&name).is_none_or(|t| t.id != topic.id);
    until(core, deadline.at_most(EFFECT_WAIT), gone).await;
    Ok(v1::DeleteTopicResponse {})
}
