//! `CommitOffsets`.

use std::sync::Arc;

use tidemill_group::{Commit, Committed};
use tidemill_proto::v1;
use tidemill_types::{ErrorCode, Offset, PartitionId};

use super::{
    convert::{MAX_PARTITIONS, partition},
    run,
};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::Fault,
    groups::{Ask, Groups, group_name, list, refused},
};

pub(super) async fn commit(
    core: &Arc<Core>,
    r: v1::CommitOffsetsRequest,
    deadline: Deadline,
) -> Result<v1::CommitOffsetsResponse, Fault> {
    let group = group_name(&r.group)?;
    if !(1..=MAX_PARTITIONS).contains(&r.offsets.len()) {
        return Err(Fault::invalid("offsets", r.offsets.len(), &format!("1 to {MAX_PARTITIONS}")));
    }
    let member = member_of(&r.member, r.epoch)?;
    // Not the coordinator: said before anybody is asked for ends.
    let _here = Groups::coordinator(core, &group, deadline).await?;
    let mut verdicts = checked(core, &r.offsets, deadline).await;
    let good: Vec<(PartitionId, Committed)> = verdicts
        .iter()
        .zip(&r.offsets)
        .filter_map(|(v, o)| v.as_ref().ok().map(|id| (*id, committed(o))))
        .collect();
    if !good.is_empty() {
        let commit = Commit { group: group.clone(), member, offsets: good };
        let each = run(core, &group, deadline, |c, now| c.commit(commit, now)).await?;
        let mut each = each.into_iter();
        for v in verdicts.iter_mut().filter(|v| v.is_ok()) {
            if let Some(Err(e)) = each.next() {
                *v = Err(refused(&group, &e));
            }
        }
    }
    let results = verdicts
        .into_iter()
        .zip(r.offsets)
        .map(|(v, o)| v1::CommittedResult {
            topic: o.topic,
            partition: o.partition,
            error: v.err().map(|f| f.to_proto()),
        })
        .collect();
    Ok(v1::CommitOffsetsResponse { results })
}

/// A member with its epoch, or nobody.
pub(super) fn member_of(member: &str, epoch: u64) -> Result<Option<(tidemill_group::MemberId, u64)>, Fault> {
    match (member.is_empty(), epoch) {
        (true, 0) => Ok(None),
        (true, _) => Err(Fault::invalid("member", "nothing", "a member together with its epoch")),
        (false, _) => Ok(Some((member.into(), epoch))),
    }
}

pub(super) fn committed(o: &v1::OffsetToCommit) -> Committed {
    Committed { offset: o.offset, epoch: o.partition_epoch, metadata: o.metadata.clone(), commit_ms: 0 }
}

/// Whether each partition exists and its offset lies within it. An end that cannot be learned now is a fault that can be
/// retried, for that partition alone.
pub(super) async fn checked(
    core: &Arc<Core>,
    offsets: &[v1::OffsetToCommit],
    deadline: Deadline,
) -> Vec<Result<PartitionId, Fault>> {
    let mut out: Vec<Result<PartitionId, Fault>> = offsets
        .iter()
        .map(|o| {
            if o.offset < 0 {
                return Err(Fault::invalid("offset", o.offset, "0 or above"));
            }
            partition(core, &o.topic, o.partition, o.topic_id)
        })
        .collect();
    let unknown: Vec<(usize, PartitionId)> = out
        .iter()
        .enumerate()
        .filter_map(|(i, r)| Some((i, *r.as_ref().ok()?)))
        .filter(|(i, id)| core.groups.ends.seen(*id).is_none_or(|end| offsets[*i].offset > end))
        .collect();
    let questions: Vec<_> = unknown.iter().map(|(_, id)| (*id, Ask::Latest)).collect();
    for ((i, _), end) in unknown.iter().zip(list(core, &questions, deadline).await) {
        let o = &offsets[*i];
        match end {
            Ok(end) if o.offset <= end => {}
            Ok(end) => {
                let why =
                    format!("{}/{}: offset {} is beyond the end at {end}", o.topic, o.partition, o.offset);
                out[*i] = Err(Fault::new(ErrorCode::OffsetOutOfRange, why).with_log(Offset(0), Offset(end)));
            }
            Err(f) => out[*i] = Err(f),
        }
    }
    out
}
