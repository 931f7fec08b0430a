//! `FetchOffsets`.

use std::sync::Arc;

use tidemill_group::Outcome;
use tidemill_proto::v1;
use tidemill_types::PartitionId;

use super::{
    commit::member_of,
    convert::{MAX_PARTITIONS, partition, topic_of},
    run,
};
use crate::{core::Core, deadline::Deadline, fault::Fault, groups::group_name};

pub(super) async fn fetch(
    core: &Arc<Core>,
    r: v1::FetchOffsetsRequest,
    deadline: Deadline,
) -> Result<v1::FetchOffsetsResponse, Fault> {
    let group = group_name(&r.group)?;
    if r.partitions.len() > MAX_PARTITIONS {
        return Err(Fault::invalid("partitions", r.partitions.len(), &format!("0 to {MAX_PARTITIONS}")));
    }
    let member = member_of(&r.member, r.epoch)?;
    let ids: Vec<Result<PartitionId, Fault>> =
        r.partitions.iter().map(|p| partition(core, &p.topic, p.partition, p.topic_id)).collect();
    let asked: Vec<PartitionId> = ids.iter().filter_map(|r| r.as_ref().ok().copied()).collect();
    let all = r.partitions.is_empty();
    let name = group.clone();
    let found = run(core, &group, deadline, move |c, _| Outcome {
        effects: tidemill_group::Effects::default(),
        answer: c.fetch(&name, member.as_ref(), (!all).then_some(&asked)),
    })
    .await?;
    let one = |topic: String, id: PartitionId, c: Option<tidemill_group::Committed>| {
        let c = c.unwrap_or(tidemill_group::Committed {
            offset: -1,
            epoch: 0,
            metadata: String::new(),
            commit_ms: 0,
        });
        v1::CommittedOffset {
            topic,
            partition: id.index,
            offset: c.offset,
            metadata: c.metadata,
            partition_epoch: c.epoch,
            commit_time_ms: c.commit_ms,
            topic_id: id.topic.0,
            error: None,
        }
    };
    let mut found = found.into_iter();
    let offsets = if all {
        // Of topics that are gone nothing is told.
        found.filter_map(|(id, c)| Some(one(topic_of(core, id)?, id, c))).collect()
    } else {
        ids.into_iter()
            .zip(r.partitions)
            .filter_map(|(id, p)| match id {
                Ok(_) => found.next().map(|(id, c)| one(p.topic, id, c)),
                Err(f) => Some(v1::CommittedOffset {
                    topic: p.topic,
                    partition: p.partition,
                    offset: -1,
                    error: Some(f.to_proto()),
                    ..v1::CommittedOffset::default()
                }),
            })
            .collect()
    };
    Ok(v1::FetchOffsetsResponse { offsets })
}
