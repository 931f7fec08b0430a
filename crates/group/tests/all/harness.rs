//! A coordinator with its log, and the few phrases that the tests are made of.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tidemill_group::{
    Assignment, Commit, Committed, Coordinator, Effects, GroupError, Heartbeat, Join, Leave, MemberId, Now,
    Outcome, Reset, ResetOutcome, Settings, Subscription, TopicEntry, Topics,
    log::{self, Record},
};
use tidemill_types::{GroupName, PartitionId, TopicId, TopicName};

pub(crate) fn group() -> GroupName {
    GroupName::new("billing").unwrap()
}

pub(crate) fn name(s: &str) -> TopicName {
    TopicName::new(s).unwrap()
}

pub(crate) fn id(s: &str) -> MemberId {
    s.into()
}

pub(crate) fn p(index: u32) -> PartitionId {
    PartitionId { topic: TopicId(1), index }
}

pub(crate) fn orders(partitions: u32) -> Arc<Topics> {
    Arc::new(Topics::new([(name("orders"), TopicEntry { id: TopicId(1), partitions })], []))
}

pub(crate) fn subscription() -> Subscription {
    Subscription { topics: BTreeSet::from([name("orders")]), pattern: None }
}

pub(crate) fn join(member: &str) -> Join {
    Join {
        group: group(),
        member: id(member),
        incarnation: 0,
        attempt: 0,
        instance: None,
        client: String::new(),
        subscription: subscription(),
        session_ms: None,
        rebalance_ms: None,
    }
}

pub(crate) fn committed(offset: i64) -> Committed {
    Committed { offset, epoch: 1, metadata: String::new(), commit_ms: 0 }
}

pub(crate) fn reset() -> Reset {
    Reset { group: group(), once: None, set: Vec::new(), forget: Vec::new(), evict: false }
}

/// One coordinator and everything that it has written.
pub(crate) struct World {
    pub(crate) c: Coordinator,
    pub(crate) log: Vec<Record>,
    pub(crate) now: Now,
}

impl World {
    pub(crate) fn new(partitions: u32) -> Self {
        let mut w = Self {
            c: Coordinator::new(Settings::default()),
            log: Vec::new(),
            now: Now { mono: Duration::from_secs(1), wall_ms: 1_700_000_000_000 },
        };
        w.c.set_topics(orders(partitions), w.now);
        w
    }

    pub(crate) fn wrote(&mut self, effects: Effects) -> Effects {
        for r in &effects.records {
            // Through their bytes, as on disk.
            let (k, v) = log::encode(r).unwrap();
            self.log.push(log::decode(&k, v.as_deref()).unwrap());
        }
        effects
    }

    pub(crate) fn took<T>(&mut self, outcome: Outcome<T>) -> Result<T, GroupError> {
        assert!(outcome.answer.is_ok() || outcome.effects.is_empty(), "a refusal changed something");
        self.wrote(outcome.effects);
        outcome.answer
    }

    pub(crate) fn join(&mut self, member: &str) -> Assignment {
        self.try_join(join(member)).unwrap()
    }

    pub(crate) fn try_join(&mut self, j: Join) -> Result<Assignment, GroupError> {
        let outcome = self.c.join(j, self.now);
        self.took(outcome)
    }

    /// A heartbeat that confirms what `a` says: it holds the assigned partitions and nothing else.
    pub(crate) fn beat(&mut self, a: &Assignment) -> Result<Assignment, GroupError> {
        self.beat_with(a, Some(a.assigned.iter().map(|(p, _)| *p).collect()))
    }

    pub(crate) fn beat_with(
        &mut self,
        a: &Assignment,
        owned: Option<BTreeSet<PartitionId>>,
    ) -> Result<Assignment, GroupError> {
        let beat = Heartbeat {
            group: a.group.clone(),
            member: a.member.clone(),
            epoch: a.epoch,
            revision: a.revision,
            owned,
            subscription: None,
        };
        let outcome = self.c.heartbeat(beat, self.now);
        self.took(outcome)
    }

    pub(crate) fn leave(&mut self, a: &Assignment) -> Result<(), GroupError> {
        let leave =
            Leave { group: a.group.clone(), member: a.member.clone(), epoch: a.epoch, comes_back: false };
        let outcome = self.c.leave(&leave, self.now);
        self.took(outcome)
    }

    pub(crate) fn commit(
        &mut self,
        member: Option<(&str, u64)>,
        p: PartitionId,
        offset: i64,
    ) -> Result<(), GroupError> {
        let commit = Commit {
            group: group(),
            member: member.map(|(m, e)| (id(m), e)),
            offsets: vec![(p, committed(offset))],
        };
        let outcome = self.c.commit(commit, self.now);
        self.took(outcome).and_then(|mut each| each.remove(0))
    }

    pub(crate) fn reset(&mut self, r: Reset) -> Result<ResetOutcome, GroupError> {
        let outcome = self.c.reset(r, self.now);
        self.took(outcome)
    }

    pub(crate) fn topics(&mut self, t: Arc<Topics>) {
        let effects = self.c.set_topics(t, self.now);
        self.wrote(effects);
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now.mono += time;
        self.now.wall_ms += i64::try_from(time.as_millis()).unwrap();
        let effects = self.c.expire_members(self.now);
        self.wrote(effects);
    }

    /// Another coordinator takes over.
    pub(crate) fn fail_over(&mut self, topics: Arc<Topics>) {
        let mut next = Coordinator::new(Settings::default());
        for r in &self.log {
            next.replay(r);
        }
        assert!(next.states().eq(self.c.states()), "the log and the state differ");
        next.loaded(self.now);
        let effects = next.set_topics(topics, self.now);
        self.c = next;
        self.wrote(effects);
    }

    pub(crate) fn now_of(&self, member: &str) -> Assignment {
        self.c.assignment(&group(), &id(member)).unwrap()
    }

    pub(crate) fn offset(&self, p: PartitionId) -> Option<i64> {
        let all = self.c.fetch(&group(), None, Some(&[p])).unwrap();
        all[0].1.as_ref().map(|c| c.offset)
    }

    /// What must hold at any time.
    pub(crate) fn check(&self) {
        for (_, g) in self.c.states() {
            let mut held = BTreeSet::new();
            for (id, m) in &g.members {
                for p in m.assigned.keys().chain(m.revoking.keys()) {
                    assert!(held.insert(*p), "{p} is held twice, last by {id}");
                }
                assert!(m.joined_epoch <= m.epoch && m.epoch <= g.epoch);
                assert!(m.assigned.values().chain(m.revoking.values()).all(|e| *e <= m.epoch));
                // Only who owes nothing takes part in the newest epoch.
                assert!(m.epoch == g.epoch || !m.revoking.is_empty());
                assert!(m.assigned.keys().all(|p| m.target.contains(p)));
            }
            let targets: Vec<_> = g.members.values().flat_map(|m| &m.target).collect();
            assert_eq!(targets.iter().collect::<BTreeSet<_>>().len(), targets.len(), "two targets");
            assert_eq!(g.empty_since_ms.is_some(), g.members.is_empty());
        }
    }
}

pub(crate) fn indexes(parts: &[(PartitionId, u64)]) -> Vec<u32> {
    parts.iter().map(|(p, _)| p.index).collect()
}
