//! Even distribution with the fewest moves: loads, who is lightest per topic, and moves from heavy to light.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_types::{PartitionId, TopicId};

use super::{Candidate, Target};
use crate::MemberId;

/// An assignment in the making.
pub(super) struct Spread<'a> {
    target: &'a mut Target,
    /// Who wants a topic, lightest first.
    by_topic: BTreeMap<TopicId, BTreeSet<(usize, MemberId)>>,
    candidates: &'a BTreeMap<MemberId, Candidate>,
}

impl<'a> Spread<'a> {
    pub(super) fn new(candidates: &'a BTreeMap<MemberId, Candidate>, target: &'a mut Target) -> Self {
        let mut by_topic: BTreeMap<TopicId, BTreeSet<(usize, MemberId)>> = BTreeMap::new();
        for (id, c) in candidates {
            for t in &c.topics {
                by_topic.entry(*t).or_default().insert((0, id.clone()));
            }
        }
        Self { target, by_topic, candidates }
    }

    fn load(&self, id: &MemberId) -> usize {
        self.target.get(id).map_or(0, BTreeSet::len)
    }

    fn change(&mut self, id: &MemberId, with: impl FnOnce(&mut BTreeSet<PartitionId>)) {
        let before = self.load(id);
        with(self.target.entry(id.clone()).or_default());
        let after = self.load(id);
        let Some(c) = self.candidates.get(id) else { return };
        for t in &c.topics {
            if let Some(set) = self.by_topic.get_mut(t) {
                set.remove(&(before, id.clone()));
                set.insert((after, id.clone()));
            }
        }
    }

    /// Leaves a partition where it is.
    pub(super) fn keep(&mut self, id: &MemberId, p: PartitionId) {
        self.change(id, |have| {
            have.insert(p);
        });
    }

    /// To the lightest that wants it.
    pub(super) fn give(&mut self, p: PartitionId) {
        let lightest = self.by_topic.get(&p.topic).and_then(|s| s.first()).map(|(_, id)| id.clone());
        if let Some(id) = lightest {
            self.keep(&id, p);
        }
    }

    /// Moves partitions from heavy to light until no single move makes it more even. Each move lowers the sum of squares
    /// of the loads, so it ends.
    pub(super) fn even_out(&mut self) {
        while let Some((from, to, p)) = self.best_move() {
            self.change(&from, |have| {
                have.remove(&p);
            });
            self.change(&to, |have| {
                have.insert(p);
            });
        }
    }

    /// A partition of the heaviest member that has one for a member with at least two fewer.
    fn best_move(&self) -> Option<(MemberId, MemberId, PartitionId)> {
        let mut heavy: Vec<(usize, &MemberId)> =
            self.target.iter().map(|(id, have)| (have.len(), id)).filter(|(n, _)| *n > 1).collect();
        heavy.sort_unstable_by(|a, b| b.cmp(a));
        for (load, from) in heavy {
            let mut best: Option<(usize, MemberId, PartitionId)> = None;
            let mut topic = None;
            for p in self.target.get(from)?.iter().rev() {
                // One look per topic: its lightest is the same for all partitions.
                if topic.replace(p.topic) == Some(p.topic) {
                    continue;
                }
                let Some((n, to)) = self.by_topic.get(&p.topic).and_then(|s| s.first()) else { continue };
                if n + 1 < load && best.as_ref().is_none_or(|(least, ..)| n < least) {
                    best = Some((*n, to.clone(), *p));
                }
            }
            if let Some((_, to, p)) = best {
                return Some((from.clone(), to, p));
            }
        }
        None
    }
}
