//! Consumer groups: the real coordinator with members that join, hear late or twice or never, are removed, and a coordinator
//! that fails over; explored breadth-first in small scopes.
//!
//! | invariant | |
//! | --- | --- |
//! | O | no partition is held by two members that were not removed |
//! | H | a member that was not removed holds only what the coordinator thinks that it holds |
//! | C | a commit counts only for the grant that it was made under |
//! | L | nothing but its own word or its silence ends a member's life |
//! | P | when everything is heard again, each partition comes to one member |

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tidemill_group::{
    Commit, Committed, Coordinator, Heartbeat, Join, Leave, MemberId, Now, Rules, Settings, Subscription,
    TopicEntry, Topics, log::Key,
};
use tidemill_types::{GroupName, PartitionId, TopicId, TopicName};

use crate::{explore::Model, hash::Print};

/// Members.
const MEMBERS: usize = 2;

/// What is explored.
#[derive(Clone, Debug)]
pub struct GroupScope {
    /// Partitions of the topic.
    pub partitions: u32,
    /// Joins in all.
    pub joins: u8,
    /// Heartbeats in all.
    pub beats: u8,
    /// Commits in all.
    pub commits: u8,
    /// Members that leave in all.
    pub leaves: u8,
    /// Sessions that end although their members live.
    pub expiries: u8,
    /// Coordinators that die.
    pub fail_overs: u8,
    /// Messages that are delivered twice.
    pub twice: u8,
    /// The coordinator's rules.
    pub rules: Rules,
    /// A new coordinator knows the members of the old one.
    pub members_are_in_the_log: bool,
}

/// A scope as a model.
#[derive(Clone, Debug)]
pub struct GroupModel(pub GroupScope);

/// A message on the network: unordered, late, repeated or never delivered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Join { m: usize, attempt: u64 },
    Beat { m: usize, attempt: u64, epoch: u64, revision: u64, owned: BTreeSet<PartitionId> },
    Commit { m: usize, attempt: u64, epoch: u64, p: PartitionId, granted: u64 },
    Leave { m: usize, attempt: u64, epoch: u64 },
    Answer { m: usize, attempt: u64, told: Told },
    Refused { m: usize, attempt: u64 },
}

/// An assignment as a member heard it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    epoch: u64,
    revision: u64,
    assigned: BTreeMap<PartitionId, u64>,
}

#[derive(Clone, Debug, Default)]
struct Member {
    attempt: u64,
    told: Option<Told>,
    /// What it reads, with the epoch of the grant.
    holding: BTreeMap<PartitionId, u64>,
    /// The revision that it acts upon.
    applied: u64,
    /// The coordinator removed this life: it reads on until it hears of it, and nothing of it counts.
    expired: bool,
}

/// A state of the world.
#[derive(Clone, Debug)]
pub struct World {
    coordinator: Coordinator,
    members: [Member; MEMBERS],
    net: BTreeSet<Message>,
    left: [u8; 7],
    broken: Option<String>,
}

/// A step.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A member begins a new life.
    Join(usize),
    /// A member tells what it holds.
    Beat(usize),
    /// A member takes up what is new, and gives nothing up yet.
    Take(usize),
    /// A member makes what it reads equal to what it was told.
    Apply(usize),
    /// A member commits.
    Commit(usize, PartitionId),
    /// A member leaves.
    Leave(usize),
    /// The coordinator removes a member that it does not hear.
    Expire(usize),
    /// Another coordinator.
    FailOver,
    /// The message with this number comes, and is gone or comes again later.
    Deliver(usize, bool),
}

fn group() -> GroupName {
    #[expect(clippy::expect_used, reason = "a constant")]
    GroupName::new("g").expect("a name")
}

fn topic() -> TopicName {
    #[expect(clippy::expect_used, reason = "a constant")]
    TopicName::new("t").expect("a name")
}

fn id(m: usize) -> MemberId {
    format!("m{m}").into()
}

const NOW: Now = Now { mono: std::time::Duration::from_secs(1), wall_ms: 1 };

impl GroupScope {
    /// Two members, one partition, enough of everything to go wrong.
    #[must_use]
    pub fn small() -> Self {
        Self {
            partitions: 1,
            joins: 2,
            beats: 2,
            commits: 0,
            leaves: 0,
            expiries: 0,
            fail_overs: 0,
            twice: 0,
            rules: Rules::default(),
            members_are_in_the_log: true,
        }
    }

    /// With changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn topics(&self) -> Arc<Topics> {
        Arc::new(Topics::new([(topic(), TopicEntry { id: TopicId(1), partitions: self.partitions })], []))
    }

    fn settings(&self) -> Settings {
        Settings { rules: self.rules, ..Settings::default() }
    }
}

impl World {
    /// Whether the member's life is the one that the coordinator knows.
    fn is_in(&self, m: usize) -> bool {
        let known = self.coordinator.group(&group()).and_then(|g| g.members.get(&id(m)));
        known.is_some_and(|k| k.attempt == self.members[m].attempt && self.members[m].told.is_some())
    }

    /// Whether its life goes on as far as anybody can tell: it was not removed and did not leave.
    fn is_live(&self, m: usize) -> bool {
        self.members[m].told.is_some() && !self.members[m].expired
    }

    fn answer(&mut self, m: usize, attempt: u64, ok: bool) {
        let now = self.coordinator.assignment(&group(), &id(m));
        self.net.insert(match now.filter(|_| ok) {
            Some(a) => {
                let assigned = a.assigned.into_iter().collect();
                Message::Answer { m, attempt, told: Told { epoch: a.epoch, revision: a.revision, assigned } }
            }
            None => Message::Refused { m, attempt },
        });
    }

    fn join(&mut self, m: usize) -> Message {
        let me = &mut self.members[m];
        // Whatever it had is given up before it asks.
        *me = Member { attempt: me.attempt + 1, ..Member::default() };
        Message::Join { m, attempt: me.attempt }
    }

    fn beat(&self, m: usize) -> Option<Message> {
        let me = &self.members[m];
        let epoch = me.told.as_ref()?.epoch;
        let owned = me.holding.keys().copied().collect();
        Some(Message::Beat { m, attempt: me.attempt, epoch, revision: me.applied, owned })
    }

    fn apply(&mut self, m: usize, give_up: bool) {
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

    fn deliver(&mut self, message: Message) {
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

    fn fail_over(&mut self, scope: &GroupScope) {
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
    fn heals(&self, scope: &GroupScope) -> Result<(), String> {
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

impl Model for GroupModel {
    type State = World;
    type Action = Step;

    fn initial(&self) -> World {
        let mut coordinator = Coordinator::new(self.0.settings());
        coordinator.set_topics(self.0.topics(), NOW);
        let s = &self.0;
        World {
            coordinator,
            members: Default::default(),
            net: BTreeSet::new(),
            left: [s.joins, s.beats, s.commits, s.leaves, s.expiries, s.fail_overs, s.twice],
            broken: None,
        }
    }

    fn actions(&self, w: &World, out: &mut Vec<Step>) {
        for m in 0..MEMBERS {
            let me = &w.members[m];
            if w.left[0] > 0 {
                out.push(Step::Join(m));
            }
            if let Some(told) = &me.told {
                if w.left[1] > 0 {
                    out.push(Step::Beat(m));
                }
                if told.assigned.keys().any(|p| !me.holding.contains_key(p)) {
                    out.push(Step::Take(m));
                }
                if me.applied != told.revision || me.holding != told.assigned {
                    out.push(Step::Apply(m));
                }
                if w.left[2] > 0 {
                    out.extend(me.holding.keys().map(|p| Step::Commit(m, *p)));
                }
                if w.left[3] > 0 {
                    out.push(Step::Leave(m));
                }
            }
            if w.left[4] > 0 && w.coordinator.assignment(&group(), &id(m)).is_some() {
                out.push(Step::Expire(m));
            }
        }
        if w.left[5] > 0 {
            out.push(Step::FailOver);
        }
        for n in 0..w.net.len() {
            out.push(Step::Deliver(n, false));
            if w.left[6] > 0 {
                out.push(Step::Deliver(n, true));
            }
        }
    }

    fn apply(&self, w: &World, step: Step) -> World {
        let mut w = w.clone();
        match step {
            Step::Join(m) => {
                w.left[0] -= 1;
                let message = w.join(m);
                w.net.insert(message);
            }
            Step::Beat(m) => {
                w.left[1] -= 1;
                let message = w.beat(m);
                w.net.extend(message);
            }
            Step::Take(m) => w.apply(m, false),
            Step::Apply(m) => w.apply(m, true),
            Step::Commit(m, p) => {
                w.left[2] -= 1;
                let me = &w.members[m];
                if let (Some(t), Some(granted)) = (&me.told, me.holding.get(&p)) {
                    let message =
                        Message::Commit { m, attempt: me.attempt, epoch: t.epoch, p, granted: *granted };
                    w.net.insert(message);
                }
            }
            Step::Leave(m) => {
                w.left[3] -= 1;
                let me = &mut w.members[m];
                if let Some(t) = me.told.take() {
                    let message = Message::Leave { m, attempt: me.attempt, epoch: t.epoch };
                    me.holding.clear();
                    me.applied = 0;
                    w.net.insert(message);
                }
            }
            Step::Expire(m) => {
                w.left[4] -= 1;
                if let Some(a) = w.coordinator.assignment(&group(), &id(m)) {
                    let gone = Leave { group: group(), member: id(m), epoch: a.epoch, comes_back: false };
                    let life =
                        w.coordinator.group(&group()).and_then(|g| Some(g.members.get(&id(m))?.attempt));
                    w.coordinator.leave(&gone, NOW);
                    w.members[m].expired |= life == Some(w.members[m].attempt);
                }
            }
            Step::FailOver => {
                w.left[5] -= 1;
                w.fail_over(&self.0);
            }
            Step::Deliver(n, again) => {
                if let Some(message) = w.net.iter().nth(n).cloned() {
                    if again {
                        w.left[6] -= 1;
                    } else {
                        w.net.remove(&message);
                    }
                    w.deliver(message);
                }
            }
        }
        w
    }

    fn fingerprint(&self, w: &World) -> u128 {
        let groups: Vec<_> = w.coordinator.states().collect();
        Print::of(&format!("{groups:?}{:?}{:?}{:?}{:?}", w.members, w.net, w.left, w.broken))
    }

    fn violated(&self, w: &World) -> Option<String> {
        if let Some(what) = &w.broken {
            return Some(what.clone());
        }
        let mut holders: BTreeMap<PartitionId, usize> = BTreeMap::new();
        for m in (0..MEMBERS).filter(|m| w.is_live(*m)) {
            let known = w.coordinator.group(&group()).and_then(|g| g.members.get(&id(m)));
            for p in w.members[m].holding.keys() {
                if let Some(other) = holders.insert(*p, m) {
                    return Some(format!("O: {p} is held by m{other} and m{m}"));
                }
                if known.is_none_or(|k| !k.assigned.contains_key(p) && !k.revoking.contains_key(p)) {
                    return Some(format!("H: m{m} holds {p} and the coordinator does not know it"));
                }
            }
        }
        // Costly: of each state whose fingerprint says so, and of all that are near the end.
        if self.fingerprint(w).is_multiple_of(16) { w.heals(&self.0).err() } else { None }
    }

    fn describe(&self, w: &World, step: Step) -> String {
        match step {
            Step::Deliver(n, again) => {
                let message = w.net.iter().nth(n);
                format!("deliver{} {message:?}", if again { " (and again later)" } else { "" })
            }
            other => format!("{other:?}"),
        }
    }
}
