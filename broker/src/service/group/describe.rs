//! `DescribeGroup`: members, what they have, how far they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tidemill_group::{GroupError, GroupState, Summary};
use tidemill_proto::v1;
use tidemill_types::{Assignor, PartitionId, StartAt};

use super::{configure, convert, list};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::Fault,
    groups::{Groups, group_name, ranges, refused},
};

pub(super) async fn describe(
    core: &Arc<Core>,
    r: v1::DescribeGroupRequest,
    deadline: Deadline,
) -> Result<v1::DescribeGroupResponse, Fault> {
    let group = group_name(&r.group)?;
    let handle = Groups::coordinator(core, &group, deadline).await?;
    let name = group.clone();
    let found = handle
        .ask(deadline, move |c| {
            let g = c.describe(&name)?;
            Some((g.state.clone(), g.is_settled(), g.assignor()))
        })
        .await?;
    let mut config = core.mirror.table().group(&group).map(|g| (g.config.assignor, g.config.start_at));
    if found.is_none() {
        // Whether there is such a group is not said from a view that may be behind.
        let record = configure::record(core, &group, deadline).await?;
        config = record.map(|g| (g.config.assignor, g.config.start_at));
    }
    let at_end = matches!(config, Some((_, Some(StartAt::Latest))));
    let (state, settled, assignor): (GroupState, bool, Assignor) = match (found, config.map(|c| c.0)) {
        (Some(found), _) => found,
        (None, Some(assignor)) => (GroupState::default(), true, assignor),
        (None, None) => return Err(refused(&group, &GroupError::UnknownGroup)),
    };
    let summary = Summary {
        name: group,
        epoch: state.epoch,
        members: state.members.len(),
        settled,
        offsets: state.offsets.len(),
        assignor,
        claim: state.declared.claim.clone(),
    };
    let holders: BTreeMap<PartitionId, String> = state
        .members
        .iter()
        .flat_map(|(id, m)| m.assigned.keys().chain(m.revoking.keys()).map(|p| (*p, id.to_string())))
        .collect();
    let mut all: BTreeSet<PartitionId> = state.offsets.keys().chain(holders.keys()).copied().collect();
    // Those that do not exist are not behind.
    for topic in state.declared.topics.iter().filter_map(|t| core.topic(t.as_str()).ok()) {
        let room = convert::MAX_PARTITIONS.saturating_sub(all.len());
        all.extend((0..topic.count.get()).take(room).map(|index| PartitionId { topic: topic.id, index }));
    }
    let all: Vec<PartitionId> = all.into_iter().filter(|p| convert::topic_of(core, *p).is_some()).collect();
    let ends = ranges(core, &all, deadline).await;
    let offsets = all.iter().zip(ends).map(|(p, range)| {
        let (log_start, log_end) = range.unwrap_or((-1, -1));
        let c = state.offsets.get(p);
        let committed = c.map_or(-1, |c| c.offset);
        // What was trimmed meanwhile is not behind: nobody will ever read it.
        let from = if committed < 0 { log_start } else { committed.max(log_start) };
        v1::GroupOffset {
            topic: convert::topic_of(core, *p).unwrap_or_default(),
            topic_id: p.topic.0,
            partition: p.index,
            committed,
            log_start,
            log_end,
            lag: match log_end {
                ..0 => -1,
                _ if committed < 0 && at_end => 0,
                end => (end - from).max(0),
            },
            member: holders.get(p).cloned().unwrap_or_default(),
            commit_time_ms: c.map_or(0, |c| c.commit_ms),
            metadata: c.map(|c| c.metadata.clone()).unwrap_or_default(),
        }
    });
    let members = state.members.iter().map(|(id, m)| v1::GroupMember {
        id: id.to_string(),
        instance: m.instance.clone().unwrap_or_default(),
        client: m.client.clone(),
        epoch: m.epoch,
        subscription: Some(convert::subscription_to(&m.subscription)),
        assigned: convert::assigned(core, m.assigned.iter().map(|(p, e)| (*p, *e))),
        revoking: convert::assigned(core, m.revoking.iter().map(|(p, e)| (*p, *e))),
        target: convert::assigned(core, m.target.iter().map(|p| (*p, 0))),
        away: m.away,
    });
    Ok(v1::DescribeGroupResponse {
        summary: Some(list::summary(&summary, &list::me(core))),
        members: members.collect(),
        offsets: offsets.collect(),
        declaration: convert::declaration_to(&state.declared),
    })
}
