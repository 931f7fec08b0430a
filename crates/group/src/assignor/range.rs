//! Per topic: neighbouring partitions to members in order of instance id, then member id. With equal counts and
//! subscriptions the same index of two topics goes to one member.

use std::collections::BTreeMap;

use tidemill_types::{PartitionId, TopicId};

use super::{Candidate, Target};
use crate::MemberId;

pub(super) fn assign(
    candidates: &BTreeMap<MemberId, Candidate>,
    topics: &BTreeMap<TopicId, u32>,
    target: &mut Target,
) {
    let mut order: Vec<(&MemberId, &Candidate)> = candidates.iter().collect();
    // Members with an instance id keep their place across restarts.
    order.sort_by_key(|(id, c)| (c.instance.is_none(), c.instance.clone(), (*id).clone()));
    for (topic, count) in topics {
        let members: Vec<&MemberId> =
            order.iter().filter(|(_, c)| c.topics.contains(topic)).map(|(id, _)| *id).collect();
        let Ok(n) = u32::try_from(members.len()) else { continue };
        if n == 0 {
            continue;
        }
        let (each, more) = (count / n, count % n);
        let mut next = 0;
        for (i, id) in (0u32..).zip(members) {
            let len = each + u32::from(i < more);
            let parts = (next..next + len).map(|index| PartitionId { topic: *topic, index });
            target.entry(id.clone()).or_default().extend(parts);
            next += len;
        }
    }
}
