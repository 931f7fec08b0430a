//! Who shall have which partition. Pure functions of members, topics and the assignment before; the same input gives the
//! same answer.

mod range;
mod spread;
mod sticky;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};

use tidemill_types::{Assignor, GroupConfig, PartitionId, TopicId};

use crate::MemberId;

/// What an assignor knows of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its instance id.
    pub instance: Option<String>,
    /// The topics that it wants.
    pub topics: BTreeSet<TopicId>,
    /// Its target so far: the coordinator's own, never what a member claims.
    pub before: BTreeSet<PartitionId>,
}

/// Partitions per member; every candidate stands in it.
pub type Target = BTreeMap<MemberId, BTreeSet<PartitionId>>;

/// Shares the partitions of `topics` (with their counts) out. Partitions of topics that nobody wants stay out; each other
/// one goes to exactly one member that wants its topic, except with [`Assignor::Static`].
///
/// `named`: topic ids by name, for the static assignment of `config`.
#[must_use]
pub fn assign(
    config: Option<&GroupConfig>,
    candidates: &BTreeMap<MemberId, Candidate>,
    topics: &BTreeMap<TopicId, u32>,
    named: impl Fn(&tidemill_types::TopicName) -> Option<TopicId>,
) -> Target {
    let mut target: Target = candidates.keys().map(|m| (m.clone(), BTreeSet::new())).collect();
    match config.map_or(Assignor::default(), |c| c.assignor) {
        Assignor::Range => range::assign(candidates, topics, &mut target),
        Assignor::Uniform => uniform::assign(candidates, topics, &mut target),
        Assignor::CooperativeSticky => sticky::assign(candidates, topics, &mut target),
        Assignor::Static => fixed(config, candidates, topics, named, &mut target),
    }
    target
}

/// What the configuration says, as far as the member is there and wants the topic.
fn fixed(
    config: Option<&GroupConfig>,
    candidates: &BTreeMap<MemberId, Candidate>,
    topics: &BTreeMap<TopicId, u32>,
    named: impl Fn(&tidemill_types::TopicName) -> Option<TopicId>,
    target: &mut Target,
) {
    let by_instance: BTreeMap<&str, &MemberId> =
        candidates.iter().filter_map(|(id, c)| Some((c.instance.as_deref()?, id))).collect();
    for s in config.map(|c| c.static_assignment.as_slice()).unwrap_or_default() {
        let (Some(id), Some(topic)) = (by_instance.get(s.instance.as_str()), named(&s.topic)) else {
            continue;
        };
        let count = topics.get(&topic).copied().unwrap_or(0);
        if candidates.get(*id).is_some_and(|c| c.topics.contains(&topic)) {
            let there = s.partitions.iter().filter(|p| **p < count);
            let parts = there.map(|index| PartitionId { topic, index: *index });
            target.entry((*id).clone()).or_default().extend(parts);
        }
    }
}

/// All partitions of the topics that somebody wants, in order.
fn wanted(
    candidates: &BTreeMap<MemberId, Candidate>,
    topics: &BTreeMap<TopicId, u32>,
) -> BTreeSet<PartitionId> {
    let some: BTreeSet<TopicId> = candidates.values().flat_map(|c| c.topics.iter().copied()).collect();
    let of = |t: &TopicId| {
        let (topic, count) = (*t, topics.get(t).copied().unwrap_or(0));
        (0..count).map(move |index| PartitionId { topic, index })
    };
    some.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests;
