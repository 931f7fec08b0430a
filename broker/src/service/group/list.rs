//! `ListGroups`: every coordinator of the cluster.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::join_all;
use tidemill_proto::v1::{self, groups_client::GroupsClient};
use tidemill_types::{MemberRole, OFFSETS_TOPIC};
use tonic::Request;

use super::convert;
use crate::{
    core::Core,
    deadline::Deadline,
    fault::{Fault, address},
};

/// Set on a call from broker to broker: the asked one does not ask on.
pub(super) const ASKED: &str = "tidemill-asked";
/// What asking another broker may take.
const WAIT: Duration = Duration::from_secs(3);

pub(super) async fn list(
    core: &Arc<Core>,
    deadline: Deadline,
    may_ask_others: bool,
) -> Result<v1::ListGroupsResponse, Fault> {
    let deadline = deadline.at_most(WAIT);
    // Nobody had a group yet.
    let Ok(topic) = core.topic(OFFSETS_TOPIC) else { return Ok(v1::ListGroupsResponse::default()) };
    let me = me(core);
    let mut missing: BTreeSet<u32> = (0..topic.count.get()).collect();
    let mut groups = Vec::new();
    for (index, handle) in core.groups.all() {
        let Ok(own) = handle.ask(deadline, |c| c.list().collect::<Vec<_>>()).await else { continue };
        missing.remove(&index);
        groups.extend(own.into_iter().map(|s| summary(&s, &me)));
    }
    if may_ask_others {
        let others: Vec<String> = {
            let table = core.mirror.table();
            let brokers = table.members_of(MemberRole::Broker);
            brokers
                .filter(|m| m.session.is_some() && m.id != core.member)
                .map(|m| address(&m.endpoint))
                .collect()
        };
        for answer in join_all(others.iter().map(|o| ask(core, o, deadline))).await.into_iter().flatten() {
            let lacks: BTreeSet<u32> = answer.missing.into_iter().collect();
            missing.retain(|m| lacks.contains(m));
            groups.extend(answer.groups);
        }
    }
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    groups.dedup_by(|a, b| a.name == b.name);
    Ok(v1::ListGroupsResponse { groups, missing: missing.into_iter().collect() })
}

async fn ask(core: &Arc<Core>, broker: &str, deadline: Deadline) -> Option<v1::ListGroupsResponse> {
    let channel = core.groups.ends.channel(broker)?;
    let mut request = Request::new(v1::ListGroupsRequest {});
    request.metadata_mut().insert(ASKED, tonic::metadata::MetadataValue::from_static("1"));
    let mut client = GroupsClient::new(channel).max_decoding_message_size(64 << 20);
    deadline.bound(client.list_groups(request)).await.ok()?.ok().map(tonic::Response::into_inner)
}

/// The address of this broker.
pub(super) fn me(core: &Core) -> String {
    core.mirror.table().member(core.member).map(|m| address(&m.endpoint)).unwrap_or_default()
}

pub(super) fn summary(s: &tidemill_group::Summary, coordinator: &str) -> v1::GroupSummary {
    v1::GroupSummary {
        name: s.name.to_string(),
        state: convert::state(s.members, s.settled).to_owned(),
        members: convert::count(s.members),
        epoch: s.epoch,
        offsets: convert::count(s.offsets),
        assignor: convert::assignor(s.assignor).to_owned(),
        coordinator: coordinator.to_owned(),
        claim: s.claim.as_ref().map(convert::claim_to),
    }
}
