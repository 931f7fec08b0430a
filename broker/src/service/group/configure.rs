//! `ConfigureGroup`, `GetGroupConfig`, and the configuration of a declared group: a record of the quorum.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::{
    Assignor, ErrorCode, GroupConfig, GroupMode, GroupName, GroupRecord, StaticAssignment, Version,
    meta::{Answer, Command, Query, Rejection, Reply},
};

use super::convert;
use crate::{
    core::Core,
    deadline::Deadline,
    fault::{Fault, rejected, shown},
    groups::group_name,
    route::topic_name,
};

pub(super) async fn configure(
    core: &Arc<Core>,
    r: v1::ConfigureGroupRequest,
    deadline: Deadline,
) -> Result<v1::ConfigureGroupResponse, Fault> {
    let name = group_name(&r.group)?;
    let version = r.version.map(Version);
    let what = format!("configure group {name}");
    let command = match r.config {
        Some(c) => Command::ConfigureGroup { name, version, config: config(c)? },
        None => Command::RemoveGroup { name, version },
    };
    let reply = deadline.bound(core.client.propose(command)).await.map_err(|_| Fault::deadline_unknown())?;
    match reply.map_err(|e| Fault::new(e.code(), format!("{what}: {e}")))? {
        Ok(Reply::Group(g)) => Ok(v1::ConfigureGroupResponse { version: g.version.0 }),
        Ok(Reply::Done) => Ok(v1::ConfigureGroupResponse { version: 0 }),
        Ok(_) => Err(Fault::internal(&what, "a reply of another kind")),
        Err(Rejection::NotFound { .. }) => {
            Err(Fault::new(ErrorCode::UnknownGroup, format!("{what}: it has no configuration")))
        }
        Err(r) => Err(rejected(&what, &r)),
    }
}

pub(super) async fn get(
    core: &Arc<Core>,
    r: v1::GetGroupConfigRequest,
    deadline: Deadline,
) -> Result<v1::GetGroupConfigResponse, Fault> {
    Ok(match record(core, &group_name(&r.group)?, deadline).await? {
        Some(g) => v1::GetGroupConfigResponse { config: Some(shown_config(&g.config)), version: g.version.0 },
        None => v1::GetGroupConfigResponse::default(),
    })
}

/// The record of a group; a linearizable read.
pub(super) async fn record(
    core: &Arc<Core>,
    name: &GroupName,
    deadline: Deadline,
) -> Result<Option<GroupRecord>, Fault> {
    let what = format!("read group {name}");
    let answer = deadline.bound(core.client.read(&Query::Group(name.clone()))).await;
    let answer = answer.map_err(|_| Fault::deadline())?;
    match answer.map_err(|e| Fault::new(e.code(), format!("{what}: {e}")))? {
        (Answer::Group(record), _) => Ok(record),
        _ => Err(Fault::internal(&what, "an answer of another kind")),
    }
}

/// Makes mode, assignor, static assignment and start of a group be as wished; the rest stays where nothing is wished. Answers
/// the version and whether anything changed.
///
/// # Errors
/// `CONFLICT` when somebody else changed it meanwhile: asking again is right.
pub(super) async fn merge(
    core: &Arc<Core>,
    name: &GroupName,
    wish: GroupConfig,
    deadline: Deadline,
) -> Result<(u64, bool), Fault> {
    let what = format!("configure group {name}");
    let old = record(core, name, deadline).await?;
    let had = old.as_ref().map(|g| g.config.clone()).unwrap_or_default();
    let config = GroupConfig {
        session_ms: wish.session_ms.or(had.session_ms),
        rebalance_ms: wish.rebalance_ms.or(had.rebalance_ms),
        offsets_retention_ms: wish.offsets_retention_ms.or(had.offsets_retention_ms),
        last_reset: wish.last_reset.or(had.last_reset),
        ..wish
    };
    let version = old.as_ref().map_or(Version(0), |g| g.version);
    if old.is_some_and(|g| g.config == config) {
        return Ok((version.0, false));
    }
    let command = Command::ConfigureGroup { name: name.clone(), version: Some(version), config };
    let reply = deadline.bound(core.client.propose(command)).await.map_err(|_| Fault::deadline_unknown())?;
    match reply.map_err(|e| Fault::new(e.code(), format!("{what}: {e}")))? {
        Ok(Reply::Group(g)) => Ok((g.version.0, true)),
        Ok(_) => Err(Fault::internal(&what, "a reply of another kind")),
        Err(r) => Err(rejected(&what, &r)),
    }
}

/// Removes the configuration of a group; one that is not there is gone.
pub(super) async fn remove(core: &Arc<Core>, name: &GroupName, deadline: Deadline) -> Result<(), Fault> {
    let what = format!("remove the configuration of group {name}");
    let command = Command::RemoveGroup { name: name.clone(), version: None };
    let reply = deadline.bound(core.client.propose(command)).await.map_err(|_| Fault::deadline_unknown())?;
    match reply.map_err(|e| Fault::new(e.code(), format!("{what}: {e}")))? {
        Ok(_) | Err(Rejection::NotFound { .. }) => Ok(()),
        Err(r) => Err(rejected(&what, &r)),
    }
}

pub(super) fn config(c: v1::GroupConfig) -> Result<GroupConfig, Fault> {
    let mode = match c.mode.as_str() {
        "" | "stream" => GroupMode::Stream,
        "queue" | "fifo-queue" => {
            let why = format!("groups of mode {} are not in this version, stream is", c.mode);
            return Err(Fault::new(ErrorCode::Unsupported, why));
        }
        other => return Err(Fault::invalid("config.mode", shown(other), "stream")),
    };
    let assignor = match c.assignor.as_str() {
        "" | "cooperative-sticky" => Assignor::CooperativeSticky,
        "range" => Assignor::Range,
        "uniform" => Assignor::Uniform,
        "static" => Assignor::Static,
        other => {
            let allowed = "cooperative-sticky, range, uniform, static";
            return Err(Fault::invalid("config.assignor", shown(other), allowed));
        }
    };
    let static_assignment: Result<Vec<_>, Fault> = c
        .static_assignment
        .into_iter()
        .map(|s| {
            let topic = topic_name(&s.topic)?;
            Ok(StaticAssignment { instance: s.instance, topic, partitions: s.partitions })
        })
        .collect();
    Ok(GroupConfig {
        mode,
        assignor,
        static_assignment: static_assignment?,
        start_at: c.start_at.as_ref().map(convert::start).transpose()?,
        session_ms: (c.session_timeout_ms > 0).then_some(c.session_timeout_ms),
        rebalance_ms: (c.rebalance_timeout_ms > 0).then_some(c.rebalance_timeout_ms),
        offsets_retention_ms: (c.offsets_retention_ms > 0).then_some(c.offsets_retention_ms),
        last_reset: (!c.last_reset.is_empty()).then_some(c.last_reset),
    })
}

fn shown_config(c: &GroupConfig) -> v1::GroupConfig {
    v1::GroupConfig {
        mode: match c.mode {
            GroupMode::Stream => "stream",
            GroupMode::Queue => "queue",
            GroupMode::FifoQueue => "fifo-queue",
        }
        .to_owned(),
        assignor: convert::assignor(c.assignor).to_owned(),
        static_assignment: c
            .static_assignment
            .iter()
            .map(|s| v1::StaticAssignment {
                instance: s.instance.clone(),
                topic: s.topic.to_string(),
                partitions: s.partitions.clone(),
            })
            .collect(),
        start_at: c.start_at.map(convert::start_to),
        session_timeout_ms: c.session_ms.unwrap_or(0),
        rebalance_timeout_ms: c.rebalance_ms.unwrap_or(0),
        offsets_retention_ms: c.offsets_retention_ms.unwrap_or(0),
        last_reset: c.last_reset.clone().unwrap_or_default(),
    }
}
