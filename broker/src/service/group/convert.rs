//! Between the wire and the coordinator.

use std::{collections::BTreeSet, sync::Arc};

use tidemill_group::{Assignment, Declaration, Subscription};
use tidemill_proto::v1::{self, start_at::At};
use tidemill_runtime::defaults;
use tidemill_types::{Assignor, Claim, ErrorCode, PartitionId, StartAt, TopicName};

use crate::{
    core::Core,
    fault::{Fault, shown},
};

/// Partitions in one request.
pub(super) const MAX_PARTITIONS: usize = 10_000;

pub(super) fn subscription(s: v1::Subscription) -> Result<Subscription, Fault> {
    let topics: Result<BTreeSet<TopicName>, Fault> =
        s.topics.iter().map(|t| crate::route::topic_name(t)).collect();
    Ok(Subscription { topics: topics?, pattern: (!s.pattern.is_empty()).then_some(s.pattern) })
}

pub(super) fn subscription_to(s: &Subscription) -> v1::Subscription {
    v1::Subscription {
        topics: s.topics.iter().map(ToString::to_string).collect(),
        pattern: s.pattern.clone().unwrap_or_default(),
    }
}

/// A partition by name; `id`: the topic's id as the client knows it, 0 = not told.
pub(super) fn partition(core: &Core, topic: &str, index: u32, id: u64) -> Result<PartitionId, Fault> {
    let t = core.topic(topic)?;
    if id != 0 && t.id.0 != id {
        let why =
            format!("topic {} with id {id} does not exist any more, now it has id {}", shown(topic), t.id);
        return Err(Fault::new(ErrorCode::UnknownTopic, why));
    }
    t.partition(index)
}

/// Partitions that a member says it owns. One of a topic that is gone is owned by nobody.
pub(super) fn owned(core: &Core, o: &v1::OwnedPartitions) -> Result<BTreeSet<PartitionId>, Fault> {
    if o.partitions.len() > MAX_PARTITIONS {
        let allowed = format!("at most {MAX_PARTITIONS}");
        return Err(Fault::invalid("owned.partitions", o.partitions.len(), &allowed));
    }
    let table = core.mirror.table();
    let by_name = |p: &v1::GroupPartition| {
        let id = match p.topic_id {
            0 => TopicName::new(&p.topic).ok().and_then(|n| table.topic_by_name(&n)).map(|t| t.id)?,
            id => tidemill_types::TopicId(id),
        };
        Some(PartitionId { topic: id, index: p.partition })
    };
    Ok(o.partitions.iter().filter_map(by_name).collect())
}

pub(super) fn assigned(
    core: &Core,
    parts: impl IntoIterator<Item = (PartitionId, u64)>,
) -> Vec<v1::AssignedPartition> {
    let table = core.mirror.table();
    parts
        .into_iter()
        .map(|(p, epoch)| v1::AssignedPartition {
            // A topic that is gone has no name any more; its partitions are being revoked.
            topic: table.topic(p.topic).map(|t| t.name.to_string()).unwrap_or_default(),
            topic_id: p.topic.0,
            partition: p.index,
            epoch,
        })
        .collect()
}

pub(super) fn assignment(core: &Core, a: Assignment) -> v1::GroupAssignment {
    // Three chances within a session, at the usual pace at most.
    let interval = ms(defaults::GROUP_HEARTBEAT).min(a.session_ms / 3).max(1);
    v1::GroupAssignment {
        group: a.group.to_string(),
        member: a.member.to_string(),
        epoch: a.epoch,
        revision: a.revision,
        assigned: assigned(core, a.assigned),
        revoking: assigned(core, a.revoking),
        heartbeat_interval_ms: interval,
        session_timeout_ms: a.session_ms,
        rebalance_timeout_ms: a.rebalance_ms,
        start_at: a.start_at.map(start_to),
    }
}

pub(super) fn start_to(s: StartAt) -> v1::StartAt {
    v1::StartAt {
        at: Some(match s {
            StartAt::Earliest => At::Earliest(true),
            StartAt::Latest => At::Latest(true),
            StartAt::Timestamp(ms) => At::TimestampMs(ms),
        }),
    }
}

pub(super) fn start(s: &v1::StartAt) -> Result<StartAt, Fault> {
    match s.at {
        Some(At::Earliest(true)) => Ok(StartAt::Earliest),
        Some(At::Latest(true)) => Ok(StartAt::Latest),
        Some(At::TimestampMs(ms)) if ms >= 0 => Ok(StartAt::Timestamp(ms)),
        _ => Err(Fault::invalid(
            "start_at",
            "nothing of it",
            "earliest = true, latest = true, or timestamp_ms of 0 or above",
        )),
    }
}

pub(super) fn assignor(a: Assignor) -> &'static str {
    match a {
        Assignor::Range => "range",
        Assignor::Uniform => "uniform",
        Assignor::CooperativeSticky => "cooperative-sticky",
        Assignor::Static => "static",
    }
}

pub(super) fn claim_to(c: &Claim) -> v1::GroupClaim {
    v1::GroupClaim { uid: c.uid.clone(), owner: c.owner.clone() }
}

/// `None` when nobody declared anything.
pub(super) fn declaration_to(d: &Declaration) -> Option<v1::GroupDeclaration> {
    (*d != Declaration::default()).then(|| v1::GroupDeclaration {
        claim: d.claim.as_ref().map(claim_to),
        topics: d.topics.iter().map(ToString::to_string).collect(),
        resets: d
            .resets
            .iter()
            .map(|r| v1::GroupReset { id: r.id.clone(), to: r.to.clone(), at_ms: r.at_ms })
            .collect(),
    })
}

pub(super) fn state(members: usize, settled: bool) -> &'static str {
    match (members, settled) {
        (0, _) => "empty",
        (_, true) => "stable",
        (_, false) => "rebalancing",
    }
}

pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn ms(d: std::time::Duration) -> u32 {
    u32::try_from(d.as_millis()).unwrap_or(u32::MAX)
}

/// The name of a topic by id, when it still exists.
pub(super) fn topic_of(core: &Arc<Core>, p: PartitionId) -> Option<String> {
    core.mirror.table().topic(p.topic).filter(|t| !t.deleting).map(|t| t.name.to_string())
}
