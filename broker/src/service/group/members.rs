//! Membership by unary calls.

use std::sync::Arc;

use tidemill_group::{Heartbeat, Join, Leave};
use tidemill_proto::v1;

use super::{convert, run};
use crate::{core::Core, deadline::Deadline, fault::Fault, groups::group_name};

/// What a join asks for; a member without an id gets one.
pub(super) fn join_of(r: v1::JoinGroupRequest, peer: &str) -> Result<Join, Fault> {
    let group = group_name(&r.group)?;
    let subscription =
        r.subscription.ok_or_else(|| Fault::invalid("subscription", "nothing", "topics or a pattern"))?;
    let member = if r.member.is_empty() { uuid::Uuid::new_v4().to_string() } else { r.member };
    let mut client: String = r.client.chars().take(200).collect();
    if !peer.is_empty() {
        client = if client.is_empty() { peer.to_owned() } else { format!("{client} {peer}") };
    }
    Ok(Join {
        group,
        member: member.into(),
        incarnation: r.incarnation,
        attempt: r.attempt,
        instance: (!r.instance.is_empty()).then_some(r.instance),
        client,
        subscription: convert::subscription(subscription)?,
        session_ms: (r.session_timeout_ms > 0).then_some(r.session_timeout_ms),
        rebalance_ms: (r.rebalance_timeout_ms > 0).then_some(r.rebalance_timeout_ms),
    })
}

pub(super) fn heartbeat_of(core: &Core, r: v1::HeartbeatRequest) -> Result<Heartbeat, Fault> {
    Ok(Heartbeat {
        group: group_name(&r.group)?,
        member: r.member.into(),
        epoch: r.epoch,
        revision: r.revision,
        owned: r.owned.as_ref().map(|o| convert::owned(core, o)).transpose()?,
        subscription: r.subscription.map(convert::subscription).transpose()?,
    })
}

pub(super) fn leave_of(r: v1::LeaveGroupRequest) -> Result<Leave, Fault> {
    let group = group_name(&r.group)?;
    Ok(Leave { group, member: r.member.into(), epoch: r.epoch, comes_back: r.comes_back })
}

pub(super) async fn join(
    core: &Arc<Core>,
    r: v1::JoinGroupRequest,
    peer: &str,
    deadline: Deadline,
) -> Result<v1::GroupAssignment, Fault> {
    let join = join_of(r, peer)?;
    let a = run(core, &join.group.clone(), deadline, |c, now| c.join(join, now)).await?;
    Ok(convert::assignment(core, a))
}

pub(super) async fn heartbeat(
    core: &Arc<Core>,
    r: v1::HeartbeatRequest,
    deadline: Deadline,
) -> Result<v1::GroupAssignment, Fault> {
    let beat = heartbeat_of(core, r)?;
    let a = run(core, &beat.group.clone(), deadline, |c, now| c.heartbeat(beat, now)).await?;
    Ok(convert::assignment(core, a))
}

pub(super) async fn leave(
    core: &Arc<Core>,
    r: v1::LeaveGroupRequest,
    deadline: Deadline,
) -> Result<v1::LeaveGroupResponse, Fault> {
    let leave = leave_of(r)?;
    run(core, &leave.group.clone(), deadline, move |c, now| c.leave(&leave, now)).await?;
    Ok(v1::LeaveGroupResponse {})
}
