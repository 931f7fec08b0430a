//! `ResetOffsets`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tidemill_group::{Committed, GroupError};
use tidemill_proto::v1::{self, reset_offsets_request::To};
use tidemill_types::{ErrorCode, GroupName, PartitionId};

use super::{
    commit::{checked, committed, from_outside},
    convert::{MAX_PARTITIONS, topic_of},
    run,
};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::Fault,
    groups::{Ask, Groups, group_name, list, ranges, refused},
};

pub(super) async fn reset(
    core: &Arc<Core>,
    r: v1::ResetOffsetsRequest,
    deadline: Deadline,
) -> Result<v1::ResetOffsetsResponse, Fault> {
    let group = group_name(&r.group)?;
    let Some(to) = r.to.clone() else {
        return Err(Fault::invalid(
            "to",
            "nothing",
            "earliest, latest, offset, timestamp_ms, exact or remove",
        ));
    };
    let before = present(core, &group, deadline).await?;
    let after: BTreeMap<PartitionId, Option<Committed>> = match &to {
        To::Exact(exact) => exactly(core, &exact.offsets, deadline).await?,
        to => moved(core, &r, to, &before, deadline).await?,
    };
    if after.is_empty() {
        return Err(refused(&group, &GroupError::UnknownGroup));
    }
    let changes = after
        .iter()
        .map(|(p, new)| v1::OffsetChange {
            topic: topic_of(core, *p).unwrap_or_default(),
            partition: p.index,
            from: before.get(p).map_or(-1, |c| c.offset),
            to: new.as_ref().map_or(-1, |c| c.offset),
        })
        .collect();
    if r.execute {
        let gone: Vec<PartitionId> = after.iter().filter(|(_, c)| c.is_none()).map(|(p, _)| *p).collect();
        let set: Vec<(PartitionId, Committed)> =
            after.into_iter().filter_map(|(p, c)| Some((p, c?))).collect();
        if !set.is_empty() {
            from_outside(core, &group, set, deadline).await?;
        }
        if !gone.is_empty() {
            let name = group.clone();
            run(core, &group, deadline, move |c, _| c.forget(&name, &gone)).await?;
        }
    }
    Ok(v1::ResetOffsetsResponse { changes, executed: r.execute })
}

/// What is committed now; a group with members is refused, also for a plan: it would be another one by then.
async fn present(
    core: &Arc<Core>,
    group: &GroupName,
    deadline: Deadline,
) -> Result<BTreeMap<PartitionId, Committed>, Fault> {
    let handle = Groups::coordinator(core, group, deadline).await?;
    let name = group.clone();
    let found =
        handle.ask(deadline, move |c| c.group(&name).map(|g| (g.members.len(), g.offsets.clone()))).await?;
    match found {
        Some((0, offsets)) => Ok(offsets),
        Some((members, _)) => Err(refused(group, &GroupError::NotEmpty { members })),
        None => Ok(BTreeMap::new()),
    }
}

async fn exactly(
    core: &Arc<Core>,
    offsets: &[v1::OffsetToCommit],
    deadline: Deadline,
) -> Result<BTreeMap<PartitionId, Option<Committed>>, Fault> {
    if !(1..=MAX_PARTITIONS).contains(&offsets.len()) {
        return Err(Fault::invalid("exact.offsets", offsets.len(), &format!("1 to {MAX_PARTITIONS}")));
    }
    let mut out = BTreeMap::new();
    for (verdict, o) in checked(core, offsets, deadline).await.into_iter().zip(offsets) {
        if out.insert(verdict?, Some(committed(o))).is_some() {
            let why = format!("{}/{} twice", o.topic, o.partition);
            return Err(Fault::invalid("exact.offsets", why, "each partition once"));
        }
    }
    Ok(out)
}

async fn moved(
    core: &Arc<Core>,
    r: &v1::ResetOffsetsRequest,
    to: &To,
    before: &BTreeMap<PartitionId, Committed>,
    deadline: Deadline,
) -> Result<BTreeMap<PartitionId, Option<Committed>>, Fault> {
    let ids: Vec<PartitionId> = which(core, r, before)?.into_iter().collect();
    if matches!(to, To::Remove(_)) {
        return Ok(ids.into_iter().filter(|p| before.contains_key(p)).map(|p| (p, None)).collect());
    }
    let ranges = ranges(core, &ids, deadline).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let targets: Vec<i64> = match to {
        To::Earliest(true) => ranges.iter().map(|r| r.0).collect(),
        To::Latest(true) => ranges.iter().map(|r| r.1).collect(),
        To::Offset(o) if *o >= 0 => ranges.iter().map(|r| (*o).clamp(r.0, r.1)).collect(),
        To::TimestampMs(ms) if *ms >= 0 => {
            let questions: Vec<_> = ids.iter().map(|id| (*id, Ask::Time(*ms))).collect();
            list(core, &questions, deadline).await.into_iter().collect::<Result<_, _>>()?
        }
        To::Offset(n) => return Err(Fault::invalid("offset", n, "0 or above")),
        To::TimestampMs(n) => return Err(Fault::invalid("timestamp_ms", n, "ms since 1970, 0 or above")),
        _ => return Err(Fault::invalid("to", "false", "true for the one that is meant")),
    };
    let new = |offset| Committed { offset, epoch: 0, metadata: String::new(), commit_ms: 0 };
    Ok(ids.into_iter().zip(targets.into_iter().map(|o| Some(new(o)))).collect())
}

/// The partitions that are meant.
fn which(
    core: &Arc<Core>,
    r: &v1::ResetOffsetsRequest,
    before: &BTreeMap<PartitionId, Committed>,
) -> Result<BTreeSet<PartitionId>, Fault> {
    if r.topics.is_empty() {
        if !r.partitions.is_empty() {
            return Err(Fault::invalid("partitions", "without topics", "none, or together with topics"));
        }
        return Ok(before.keys().filter(|p| topic_of(core, **p).is_some()).copied().collect());
    }
    let mut out = BTreeSet::new();
    for name in &r.topics {
        let topic = core.topic(name)?;
        if r.partitions.is_empty() {
            out.extend((0..topic.count.get()).map(|index| PartitionId { topic: topic.id, index }));
        }
        for index in &r.partitions {
            out.insert(topic.partition(*index)?);
        }
        if out.len() > MAX_PARTITIONS {
            let why = format!("more than {MAX_PARTITIONS} partitions");
            return Err(Fault::field(ErrorCode::InvalidArgument, "topics", &why, "fewer at once"));
        }
    }
    Ok(out)
}
