//! Partitions to brokers. Goals in order: never a draining owner; the count per broker within one; minimal moves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tidemill_types::meta::Assignment;
use tidemill_types::{MemberId, PartitionId};

/// A broker that could own partitions: one with a live session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerView {
    /// The broker.
    pub id: MemberId,
    /// Is being emptied by wish.
    pub draining: bool,
}

/// Where a partition is, and where it is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// The partition.
    pub id: PartitionId,
    /// Its live owner.
    pub owner: Option<MemberId>,
    /// The broker that the plan in force names.
    pub assigned: Option<MemberId>,
}

impl PartitionView {
    /// The broker that it stays with when the balance allows: where it was sent last, else where it still is.
    fn home(&self, brokers: &BTreeMap<MemberId, usize>) -> Option<MemberId> {
        let known = |b: &MemberId| brokers.contains_key(b);
        self.assigned.filter(known).or(self.owner.filter(known))
    }
}

/// The assignments that differ from those in force.
///
/// Brokers that are not listed are gone, and so are their partitions' assignments. Without any broker that is not
/// draining there is nowhere to go: the plan is empty and everything stays. A balanced assignment is left alone.
/// Brokers and partitions may come in any order; duplicates count once.
#[must_use]
pub fn plan(brokers: &[BrokerView], partitions: &[PartitionView]) -> Vec<Assignment> {
    let mut counts: BTreeMap<MemberId, usize> =
        brokers.iter().filter(|b| !b.draining).map(|b| (b.id, 0)).collect();
    if counts.is_empty() {
        return Vec::new();
    }
    let partitions: BTreeMap<PartitionId, &PartitionView> = partitions.iter().map(|p| (p.id, p)).collect();
    let mut homes: BTreeMap<MemberId, Vec<&PartitionView>> = BTreeMap::new();
    let mut homeless: Vec<&PartitionView> = Vec::new();
    for p in partitions.values() {
        match p.home(&counts) {
            Some(b) => homes.entry(b).or_default().push(p),
            None => homeless.push(p),
        }
    }
    // The brokers that have most get the quotas that are one higher: so the fewest have to give.
    let (each, one_more) = (partitions.len() / counts.len(), partitions.len() % counts.len());
    let mut by_count: Vec<(Reverse<usize>, MemberId)> =
        counts.keys().map(|b| (Reverse(homes.get(b).map_or(0, Vec::len)), *b)).collect();
    by_count.sort_unstable();
    let quota: BTreeMap<MemberId, usize> =
        by_count.iter().enumerate().map(|(i, (_, b))| (*b, each + usize::from(i < one_more))).collect();

    let mut wanted: BTreeMap<PartitionId, MemberId> = BTreeMap::new();
    for (b, mut at_home) in homes {
        // What is not served from there yet moves first: nobody notices.
        at_home.sort_by_key(|p| (p.owner != Some(b), p.id));
        let stay = quota.get(&b).copied().unwrap_or(0).min(at_home.len());
        homeless.extend(at_home.drain(stay..));
        wanted.extend(at_home.iter().map(|p| (p.id, b)));
        counts.insert(b, stay);
    }
    homeless.sort_by_key(|p| p.id);
    // The broker with most room first: neighbours of one topic spread over all that have some.
    let mut room: BTreeSet<(Reverse<usize>, MemberId)> = quota
        .iter()
        .map(|(b, q)| (Reverse(q - counts.get(b).copied().unwrap_or(0)), *b))
        .filter(|(Reverse(left), _)| *left > 0)
        .collect();
    for p in homeless {
        let Some((Reverse(left), b)) = room.pop_first() else { break };
        wanted.insert(p.id, b);
        if left > 1 {
            room.insert((Reverse(left - 1), b));
        }
    }
    partitions
        .values()
        .filter_map(|p| {
            let broker = wanted.get(&p.id).copied();
            (broker != p.assigned).then_some(Assignment { partition: p.id, broker })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidemill_types::TopicId;

    use super::*;

    fn id(n: u8) -> MemberId {
        MemberId(uuid::Uuid::from_u128(u128::from(n)))
    }

    fn partition(index: u32, owner: Option<u8>, assigned: Option<u8>) -> PartitionView {
        let id_of = |b: Option<u8>| b.map(id);
        PartitionView {
            id: PartitionId { topic: TopicId(1), index },
            owner: id_of(owner),
            assigned: id_of(assigned),
        }
    }

    fn apply(partitions: &[PartitionView], plan: &[Assignment]) -> Vec<PartitionView> {
        let new: BTreeMap<_, _> = plan.iter().map(|a| (a.partition, a.broker)).collect();
        partitions
            .iter()
            .map(|p| PartitionView { assigned: new.get(&p.id).copied().unwrap_or(p.assigned), ..*p })
            .collect()
    }

    /// Fewest partitions that must leave their home, over every way to deal the quotas out.
    fn fewest_moves(homes: &[usize], homeless: usize) -> usize {
        let n = homes.iter().sum::<usize>() + homeless;
        let (each, one_more) = (n / homes.len(), n % homes.len());
        (0u32..1 << homes.len())
            .filter(|s| s.count_ones() as usize == one_more)
            .map(|s| {
                let quota = |i: usize| each + (s >> i & 1) as usize;
                homes.iter().enumerate().map(|(i, h)| h.saturating_sub(quota(i))).sum::<usize>()
            })
            .min()
            .unwrap()
    }

    fn views() -> impl Strategy<Value = (Vec<BrokerView>, Vec<PartitionView>)> {
        let brokers = proptest::collection::btree_map(0u8..8, any::<bool>(), 0..7).prop_map(|m| {
            m.into_iter().map(|(n, draining)| BrokerView { id: id(n), draining }).collect::<Vec<_>>()
        });
        let place = || proptest::option::weighted(0.8, 0u8..8);
        let partitions = proptest::collection::vec((place(), place()), 0..40).prop_map(|v| {
            v.into_iter().zip(0u32..).map(|((o, a), i)| partition(i, o, a)).collect::<Vec<_>>()
        });
        (brokers, partitions)
    }

    proptest! {
        #[test]
        fn every_goal((brokers, partitions) in views()) {
            let plan_ = plan(&brokers, &partitions);
            let serving: BTreeMap<MemberId, usize> =
                brokers.iter().filter(|b| !b.draining).map(|b| (b.id, 0)).collect();
            if serving.is_empty() {
                prop_assert!(plan_.is_empty());
                return Ok(());
            }
            let after = apply(&partitions, &plan_);
            // Never a draining owner, nor one that is gone.
            let mut counts = serving.clone();
            for p in &after {
                *counts.get_mut(&p.assigned.unwrap()).expect("a serving broker") += 1;
            }
            // Within one.
            prop_assert!(counts.values().max().unwrap() - counts.values().min().unwrap() <= 1);
            // Minimal: exactly as many leave their home as must.
            let mut homes = serving.clone();
            let (mut homeless, mut moved) = (0, 0);
            for (before, after) in partitions.iter().zip(&after) {
                match before.home(&serving) {
                    Some(h) => {
                        *homes.get_mut(&h).unwrap() += 1;
                        moved += usize::from(after.assigned != Some(h));
                    }
                    None => homeless += 1,
                }
            }
            prop_assert_eq!(moved, fewest_moves(&homes.into_values().collect::<Vec<_>>(), homeless));
            // Only what differs is said, and a second look changes nothing.
            for a in &plan_ {
                prop_assert!(partitions.iter().any(|p| p.id == a.partition && p.assigned != a.broker));
            }
            prop_assert!(plan(&brokers, &after).is_empty());
        }

        #[test]
        fn order_of_the_input_does_not_matter((brokers, partitions) in views()) {
            let (mut b, mut p) = (brokers.clone(), partitions.clone());
            b.reverse();
            p.reverse();
            prop_assert_eq!(plan(&brokers, &partitions), plan(&b, &p));
        }
    }

    #[test]
    fn what_is_not_served_yet_moves_first() {
        let brokers = [1, 2].map(|n| BrokerView { id: id(n), draining: false });
        let partitions =
            [partition(0, None, Some(1)), partition(1, Some(1), Some(1)), partition(2, Some(1), Some(1))];
        let moved = plan(&brokers, &partitions);
        assert_eq!(moved, [Assignment { partition: partitions[0].id, broker: Some(id(2)) }]);
    }

    #[test]
    fn neighbours_of_a_topic_spread() {
        let brokers = [1, 2, 3].map(|n| BrokerView { id: id(n), draining: false });
        let partitions: Vec<_> = (0..6).map(|i| partition(i, None, None)).collect();
        let first: BTreeSet<_> = plan(&brokers, &partitions)[..3].iter().map(|a| a.broker).collect();
        assert_eq!(first.len(), 3);
    }
}
