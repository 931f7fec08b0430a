//! `PurgeTopic`: a tombstone goes now.

use tidemill_proto::v1;
use tidemill_types::{
    ErrorCode,
    meta::{ControlAction, ControlAnswer, ControlQuery, ControlReply, TombstoneRef},
};

use super::{Caller, other};
use crate::{
    fault::{Fault, rejected},
    route::topic_name,
};

pub(super) async fn purge(
    caller: Caller<'_>,
    r: v1::PurgeTopicRequest,
) -> Result<v1::PurgeTopicResponse, Fault> {
    let name = topic_name(&r.name)?;
    let what = format!("purge topic {name}");
    let found = match caller.query(&what, ControlQuery::TopicsNamed(vec![name.clone()])).await? {
        (ControlAnswer::Topics(mut found), _) => found.pop(),
        _ => return Err(other(&what)),
    };
    let (_, control) = found.ok_or_else(|| Fault::unknown_topic(&r.name))?;
    let tombstone = control.filter(|c| c.tombstone.is_some()).ok_or_else(|| {
        Fault::new(ErrorCode::Conflict, format!("{what}: it is not deleted: delete it first"))
    })?;
    let named = TombstoneRef { topic: tombstone.topic, version: tombstone.version, due: false };
    match caller.command(&what, ControlAction::PurgeTopics(vec![named])).await? {
        ControlReply::Each(each) => match each.into_iter().next() {
            Some(Ok(())) => Ok(v1::PurgeTopicResponse {}),
            Some(Err(why)) => Err(rejected(&what, &why)),
            None => Err(other(&what)),
        },
        _ => Err(other(&what)),
    }
}
