//! `ResetOffsets`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tidemill_group::{Committed, GroupError, GroupState, Reset, ResetOutcome};
use tidemill_proto::v1::{self, reset_offsets_request::To};
use tidemill_types::{ErrorCode, GroupName, PartitionId};

use super::{
    commit::{checked, committed},
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
    let once = r.once.clone().map(|o| (o.id, o.to));
    let present = present(core, &group, once.as_ref().map(|o| o.0.clone()), deadline).await?;
    if present.done {
        return Ok(v1::ResetOffsetsResponse { already: true, ..v1::ResetOffsetsResponse::default() });
    }
    // Refused also for a plan: it would be another one by then.
    if present.members > 0 && !r.evict {
        return Err(refused(&group, &GroupError::NotEmpty { members: present.members }));
    }
    let before = present.offsets;
    let after: BTreeMap<PartitionId, Option<Committed>> = match &to {
        To::Exact(exact) => exactly(core, &exact.offsets, deadline).await?,
        to => moved(core, &r, to, &before, deadline).await?,
    };
    if after.is_empty() && once.is_none() {
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
    let mut already = false;
    if r.execute {
        let forget = after.iter().filter(|(_, c)| c.is_none()).map(|(p, _)| *p).collect();
        let set = after.into_iter().filter_map(|(p, c)| Some((p, c?))).collect();
        let reset = Reset { group: group.clone(), once, set, forget, evict: r.evict };
        let done = run(core, &group, deadline, move |c, now| c.reset(reset, now)).await?;
        already = done == ResetOutcome::Already;
    }
    Ok(v1::ResetOffsetsResponse { changes, executed: r.execute && !already, already })
}

/// A group before its reset.
#[derive(Default)]
struct Present {
    members: usize,
    offsets: BTreeMap<PartitionId, Committed>,
    /// A reset of this id was carried out.
    done: bool,
}

async fn present(
    core: &Arc<Core>,
    group: &GroupName,
    id: Option<String>,
    deadline: Deadline,
) -> Result<Present, Fault> {
    let handle = Groups::coordinator(core, group, deadline).await?;
    let name = group.clone();
    handle
        .ask(deadline, move |c| {
            let done = id.is_some_and(|id| c.reset_done(&name, &id));
            let of = |g: &GroupState| Present { members: g.members.len(), offsets: g.offsets.clone(), done };
            c.group(&name).map(of).unwrap_or_default()
        })
        .await
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
