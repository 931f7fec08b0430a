//! The coordinator, its members, and what is on the network between them.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_group::{
    Commit, Committed, Coordinator, Heartbeat, Join, Leave, MemberId, Now, Subscription, log::Key,
};
use tidemill_types::{GroupName, PartitionId, TopicName};

use super::scope::GroupScope;

/// Members.
pub(super) const MEMBERS: usize = 2;

/// A message on the network: unordered, late, repeated or never delivered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Message {
    Join { m: usize, attempt: u64 },
    Beat { m: usize, attempt: u64, epoch: u64, revision: u64, owned: BTreeSet<PartitionId> },
    Commit { m: usize, attempt: u64, epoch: u64, p: PartitionId, granted: u64 },
    Leave { m: usize, attempt: u64, epoch: u64 },
    Answer { m: usize, attempt: u64, told: Told },
    Refused { m: usize, attempt: u64 },
}

/// An assignment as a member heard it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told {
    pub(super) epoch: u64,
    pub(super) revision: u64,
    pub(super) assigned: BTreeMap<PartitionId, u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) attempt: u64,
    pub(super) told: Option<Told>,
    /// What it reads, with the epoch of the grant.
    pub(super) holding: BTreeMap<PartitionId, u64>,
    /// The revision that it acts upon.
    pub(super) applied: u64,
    /// The coordinator removed this life: it reads on until it hears of it, and nothing of it counts.
    pub(super) expired: bool,
}

/// A state of the world.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) coordinator: Coordinator,
    pub(super) members: [Member; MEMBERS],
    pub(super) net: BTreeSet<Message>,
    pub(super) left: [u8; 7],
    pub(super) broken: Option<String>,
}

pub(super) fn group() -> GroupName {
    #[expect(clippy::expect_used, reason = "a constant")]
    GroupName::new("g").expect("a name")
}

pub(super) fn topic() -> TopicName {
    #[expect(clippy::expect_used, reason = "a constant")]
    TopicName::new("t").expect("a name")
}

pub(super) fn id(m: usize) -> MemberId {
    format!("m{m}").into()
}

pub(super) const NOW: Now = Now { mono: std::time::Duration::from_secs(1), wall_ms: 1 };

impl World {
    /// Whether the member's life is the one that the coordinator knows.
    pub(super) fn is_in(&self, m: usize) -> bool {
        let known = self.coordinator.group(&group()).and_then(|g| g.members.get(&id(m)));
        known.is_some_and(|k| k.attempt == self.members[m].attempt && self.members[m].told.is_some())
    }

    /// Whether its life goes on as far as anybody can tell: it was not removed and did not leave.
    pub(super) fn is_live(&self, m: usize) -> bool {
        self.members[m].told.is_some() && !self.members[m].expired
    }

    pub(super) fn answer(&mut self, m: usize, attempt: u64, ok: bool) {
        let now = self.coordinator.assignment(&group(), &id(m));
        self.net.insert(match now.filter(|_| ok) {
            Some(a) => {
                let assigned = a.assigned.into_iter().collect();
                Message::Answer { m, attempt, told: Told { epoch: a.epoch, revision: a.revision, assigned } }
            }
            None => Message::Refused { m, attempt },
        });
    }

    pub(super) fn join(&mut self, m: usize) -> Message {
        let me = &mut self.members[m];
        // Whatever it had is given up before it asks.
        *me = Member { attempt: me.attempt + 1, ..Member::default() };
        Message::Join { m, attempt: me.attempt }
    }

    pub(super) fn beat(&self, m: usize) -> Option<Message> {
        let me = &self.members[m];
        let epoch = me.told.as_ref()?.epoch;
        let owned = me.holding.keys().copied().collect();
        Some(Message::Beat { m, attempt: me.attempt, epoch, revision: me.applied, owned })
    }

    pub(super) fn apply(&mut self, m: usize, give_up: bool) {
        let me = &mut self.members[m];
        let Some(told) = &me.told else { return };
        if give_up {
            me.holding.retain(|p, since| told.assigned.get(p) == Some(since));
            me.applied = told.revision;
        }
        for (p, since) in &told.assigned {
            me.holding.entry(*p).or_insert(*since);
        }
    }

    pub(super) fn deliver(&mut self, message: Message) {
        match message {
            Message::Join { m, attempt } => {
                let join = Join {
                    group: group(),
                    member: id(m),
                    incarnation: 1,
                    attempt,
                    instance: None,
                    client: String::new(),
                    subscription: Subscription { topics: BTreeSet::from([topic()]), pattern: None },
                    session_ms: None,
                    rebalance_ms: None,
                };
                let ok = self.coordinator.join(join, NOW).answer.is_ok();
                self.answer(m, attempt, ok);
            }
            Message::Beat { m, attempt, epoch, revision, owned } => {
                let beat = Heartbeat {
                    group: group(),
                    member: id(m),
                    epoch,
                    revision,
                    owned: Some(owned),
                    subscription: None,
                };
                let ok = self.coordinator.heartbeat(beat, NOW).answer.is_ok();
                self.answer(m, attempt, ok);
            }
            Message::Commit { m, epoch, p, granted, .. } => {
                let committed = Committed { offset: 1, epoch: 0, metadata: String::new(), commit_ms: 0 };
                let known = self.coordinator.group(&group()).and_then(|g| g.members.get(&id(m)).cloned());
                let commit =
                    Commit { group: group(), member: Some((id(m), epoch)), offsets: vec![(p, committed)] };
                let accepted = self.coordinator.commit(commit, NOW).answer.is_ok_and(|each| each == [Ok(())]);
                let now = known.and_then(|k| k.assigned.get(&p).or_else(|| k.revoking.get(&p)).copied());
                if accepted && now != Some(granted) {
                    self.broken =
                        Some(format!("C: m{m} committed {p} of grant {granted}, it is {now:?} now"));
                }
            }
            Message::Leave { m, attempt, epoch } => {
                let known =
                    self.coordinator.group(&group()).and_then(|g| Some(g.members.get(&id(m))?.attempt));
                let leave = Leave { group: group(), member: id(m), epoch, comes_back: false };
                let left = self.coordinator.leave(&leave, NOW).answer.is_ok();
                if left && known != Some(attempt) {
                    self.broken = Some(format!("L: life {known:?} of m{m} was ended by life {attempt}"));
                }
            }
            Message::Answer { m, attempt, told } => {
                let me = &mut self.members[m];
                // One that is older than what was heard is no news.
                let news =
                    me.told.as_ref().is_none_or(|t| (t.epoch, t.revision) < (told.epoch, told.revision));
                if attempt == me.attempt && news {
                    me.told = Some(told);
                }
            }
            Message::Refused { m, attempt } => {
                let me = &mut self.members[m];
                if attempt == me.attempt {
                    me.told = None;
                    me.holding.clear();
                    me.applied = 0;
                }
            }
        }
    }

    pub(super) fn fail_over(&mut self, scope: &GroupScope) {
        let mut next = Coordinator::new(scope.settings());
        let (records, _) = self.coordinator.snapshot(None, usize::MAX);
        for r in &records {
            if scope.members_are_in_the_log || !matches!(r.key, Key::Member(..)) {
                next.replay(r);
            }
        }
        next.loaded(NOW);
        next.set_topics(scope.topics(), NOW);
        self.coordinator = next;
    }

    /// Nothing is late any more: does the group come to rest?
    pub(super) fn heals(&self, scope: &GroupScope) -> Result<(), String> {
        let mut w = self.clone();
        w.net.clear();
        for _ in 0..4 {
            for m in 0..MEMBERS {
                let request = if w.is_in(m) { w.beat(m) } else { Some(w.join(m)) };
                let Some(request) = request else { continue };
                w.deliver(request);
                for answer in std::mem::take(&mut w.net) {
                    w.deliver(answer);
                }
                w.apply(m, true);
            }
        }
        let held: Vec<PartitionId> = w.members.iter().flat_map(|m| m.holding.keys().copied()).collect();
        let each: BTreeSet<PartitionId> = held.iter().copied().collect();
        if held.len() == each.len() && each.len() == scope.partitions as usize {
            Ok(())
        } else {
            Err(format!("P: in the end {held:?} are held"))
        }
    }
}
