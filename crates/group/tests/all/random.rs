//! Random interleavings of everything that can happen: what must hold at any time, and that a replay of the log, cut behind
//! snapshots or compacted by key or neither, gives the very state (2.3; bugs 17 and 18 of 2.8).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use proptest::prelude::*;
use tidemill_group::{
    Assignment, Commit, Coordinator, Declare, GroupError, Heartbeat, Join, Leave, Release, Reset, Settings,
    Subscription, TopicEntry, Topics,
    log::{Key, Record},
};
use tidemill_types::{Assignor, Claim, GroupConfig, GroupName, PartitionId, TopicId};

use crate::harness::*;

type Step = (u8, [u8; 5]);

const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];

struct Run {
    w: World,
    /// What each member heard at some time: late and repeated requests are drawn from these.
    heard: Vec<Assignment>,
    topics: Arc<Topics>,
    next_topic: u64,
    /// A snapshot under way: where its first record stands, and the key behind which it goes on.
    snapshot: Option<(usize, Option<Key>)>,
    /// The log is known to be complete from here on.
    start: usize,
    cuts: u32,
    accepted: u32,
}

fn group_of(n: u8) -> GroupName {
    GroupName::new(["billing", "audit"][usize::from(n % 2)]).unwrap()
}

impl Run {
    fn new() -> Self {
        let mut w = World::new(3);
        w.c = Coordinator::new(Settings { max_members: 3, ..Settings::default() });
        let mut r = Self {
            w,
            heard: Vec::new(),
            topics: orders(3),
            next_topic: 2,
            snapshot: None,
            start: 0,
            cuts: 0,
            accepted: 0,
        };
        r.w.topics(r.topics.clone());
        r
    }

    fn pick(&self, n: u8) -> Option<Assignment> {
        let len = self.heard.len();
        // Mostly a young one.
        (len > 0).then(|| self.heard[len - 1 - usize::from(n).min(len - 1) % 6.min(len)].clone())
    }

    fn hear(&mut self, r: Result<Assignment, GroupError>) {
        if let Ok(a) = r {
            self.accepted += 1;
            self.heard.push(a);
        }
    }

    fn step(&mut self, (kind, n): Step) {
        let w = &mut self.w;
        match kind % 19 {
            0 | 1 => {
                let subscription = match n[2] % 4 {
                    0 => Subscription { topics: BTreeSet::new(), pattern: Some(".*".into()) },
                    _ => subscription(),
                };
                let j = Join {
                    group: group_of(n[0]),
                    incarnation: u64::from(n[3] % 3),
                    attempt: u64::from(n[4] % 3),
                    instance: (n[2] % 3 == 0).then(|| format!("i{}", n[1] % 2)),
                    subscription,
                    ..join(MEMBERS[usize::from(n[1] % 4)])
                };
                let r = w.try_join(j);
                self.hear(r);
            }
            2..=6 => {
                let Some(a) = self.pick(n[0]) else { return };
                let owned: BTreeSet<PartitionId> = match n[1] % 4 {
                    0 => a.assigned.iter().chain(&a.revoking).map(|(p, _)| *p).collect(),
                    _ => a.assigned.iter().map(|(p, _)| *p).collect(),
                };
                let beat = Heartbeat {
                    group: a.group.clone(),
                    member: a.member.clone(),
                    epoch: a.epoch,
                    revision: a.revision,
                    owned: (n[2] % 8 != 0).then_some(owned),
                    subscription: (n[3] % 16 == 0).then(subscription),
                };
                let outcome = self.w.c.heartbeat(beat, self.w.now);
                let r = self.w.took(outcome);
                self.hear(r);
            }
            7 => {
                let Some(a) = self.pick(n[0]) else { return };
                let comes_back = n[1] % 2 == 0;
                let leave = Leave { group: a.group, member: a.member, epoch: a.epoch, comes_back };
                let outcome = self.w.c.leave(&leave, self.w.now);
                drop(self.w.took(outcome));
            }
            8..=10 => {
                let a = self.pick(n[0]);
                let member = a.as_ref().filter(|_| n[1] % 4 != 0).map(|a| (a.member.clone(), a.epoch));
                let group = a.map_or_else(|| group_of(n[4]), |a| a.group);
                let part =
                    PartitionId { topic: TopicId(u64::from(n[2] % 3) + 1), index: u32::from(n[3] % 4) };
                let commit = Commit { group, member, offsets: vec![(part, committed(i64::from(n[4])))] };
                let outcome = self.w.c.commit(commit, self.w.now);
                drop(self.w.took(outcome));
            }
            11 => w.pass(Duration::from_secs(u64::from(n[0] % 60))),
            12 => {
                w.now.wall_ms += i64::from(n[0]) * 24 * 3_600 * 1_000 / 16;
                let effects = w.c.expire_offsets(w.now.wall_ms);
                w.wrote(effects);
            }
            13 if n[0] % 3 == 0 => {
                self.next_topic += 1;
                let entry = |id, partitions| TopicEntry { id: TopicId(id), partitions };
                let mut all = vec![(name("orders"), entry(1, 3 + u32::from(n[1] % 3)))];
                if n[2] % 2 == 0 {
                    all.push((name("more"), entry(self.next_topic, u32::from(n[3] % 3))));
                }
                self.topics = Arc::new(Topics::new(all, []));
                w.topics(self.topics.clone());
            }
            13 if n[0] % 3 == 1 => {
                let all = [Assignor::Range, Assignor::Uniform, Assignor::CooperativeSticky];
                let config = GroupConfig { assignor: all[usize::from(n[1] % 3)], ..GroupConfig::default() };
                let effects = w.c.set_config(&group_of(n[2]), Some(Arc::new(config)), w.now);
                w.wrote(effects);
            }
            13 => {
                let outcome = w.c.delete(&group_of(n[1]));
                drop(w.took(outcome));
            }
            14 => {
                let text = format!("u{}", n[1] % 3);
                let claim = Claim { uid: text.clone(), owner: format!("o{}", n[1] % 2) };
                let topics = (n[2] % 2 == 0).then(|| name("orders")).into_iter().collect();
                let from_uid = (n[3] % 4 == 0).then(|| "u1".to_owned());
                let d = Declare { group: group_of(n[0]), claim, from_uid, topics };
                let outcome = w.c.declare(d, w.now);
                drop(w.took(outcome));
            }
            15 => {
                let r =
                    Release { group: group_of(n[0]), uid: format!("u{}", n[1] % 3), delete: n[2] % 4 == 0 };
                let outcome = w.c.release(&r);
                drop(w.took(outcome));
            }
            16 => {
                let part = PartitionId { topic: TopicId(1), index: u32::from(n[1] % 4) };
                let once = (n[2] % 4 != 0).then(|| (format!("r{}", n[2] % 8), "earliest".to_owned()));
                let set = if n[3] % 2 == 0 { vec![(part, committed(i64::from(n[4])))] } else { Vec::new() };
                let forget = if n[3] % 2 == 0 { Vec::new() } else { vec![part] };
                let r = Reset { group: group_of(n[0]), once, set, forget, evict: n[3] % 3 == 0 };
                drop(w.reset(r));
            }
            17 => self.snapshot_part(usize::from(n[0])),
            _ => self.reload(n[0] % 2 == 0),
        }
    }

    /// One part of a snapshot, in between everything else; with the last one the log may be cut.
    fn snapshot_part(&mut self, max: usize) {
        let (first, after) = self.snapshot.take().unwrap_or((self.w.log.len(), None));
        let (records, next) = self.w.c.snapshot(after.as_ref(), 1 + max * 4);
        self.w.wrote(tidemill_group::Effects { records, ..tidemill_group::Effects::default() });
        match next {
            Some(_) => self.snapshot = Some((first, next)),
            None => {
                self.start = first;
                self.cuts += 1;
            }
        }
    }

    fn replayed(&self) -> Coordinator {
        let mut c = Coordinator::new(Settings { max_members: 3, ..Settings::default() });
        let cut: &[Record] = &self.w.log[self.start..];
        for r in cut {
            c.replay(r);
        }
        c
    }

    /// A replay of the log as key compaction leaves it: up to somewhere the last record of each key, with or without the
    /// tombstones, and everything behind.
    fn replay_compacted(&self) {
        let log = &self.w.log;
        for upto in [log.len() / 3, log.len() * 2 / 3, log.len()] {
            let last: BTreeMap<&Key, usize> =
                log[..upto].iter().enumerate().map(|(i, r)| (&r.key, i)).collect();
            for tombstones in [true, false] {
                let mut c = Coordinator::new(Settings { max_members: 3, ..Settings::default() });
                for (i, r) in log.iter().enumerate() {
                    let stays = i >= upto || (last[&r.key] == i && (tombstones || r.value.is_some()));
                    if stays {
                        c.replay(r);
                    }
                }
                assert!(
                    c.states().eq(self.w.c.states()),
                    "compacted up to {upto} of {}, it differs",
                    log.len()
                );
            }
        }
    }

    fn reload(&mut self, keep: bool) {
        let mut c = self.replayed();
        assert!(c.states().eq(self.w.c.states()), "replay of {} records differs", self.w.log.len());
        self.replay_compacted();
        if keep {
            return;
        }
        // Another coordinator goes on; a snapshot that was under way is lost.
        self.snapshot = None;
        c.loaded(self.w.now);
        let effects = c.set_topics(self.topics.clone(), self.w.now);
        self.w.c = c;
        self.w.wrote(effects);
    }
}

fn run(steps: &[Step]) -> Run {
    let mut r = Run::new();
    for s in steps {
        let before: Vec<(GroupName, u64)> = r.w.c.states().map(|(n, g)| (n.clone(), g.epoch)).collect();
        r.step(*s);
        r.w.check();
        for (name, epoch) in before {
            assert!(r.w.c.group(&name).is_none_or(|g| g.epoch >= epoch), "the epoch of {name} went back");
        }
    }
    r.reload(true);
    r
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_replay_gives_the_same_state(steps in proptest::collection::vec((any::<u8>(), any::<[u8; 5]>()), 1..150)) {
        run(&steps);
    }
}

/// The sequences are worth something only if they get somewhere.
#[test]
fn the_sequences_reach_cuts_and_accepted_requests() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};

    let mut runner = TestRunner::deterministic();
    let (mut cuts, mut accepted, mut offsets) = (0, 0, 0);
    for _ in 0..40 {
        let all = proptest::collection::vec((any::<u8>(), any::<[u8; 5]>()), 100..150);
        let r = run(&all.new_tree(&mut runner).unwrap().current());
        cuts += r.cuts;
        accepted += r.accepted;
        offsets += r.w.c.list().map(|s| s.offsets).sum::<usize>();
    }
    assert!(cuts > 20 && accepted > 500 && offsets > 5, "{cuts} {accepted} {offsets}");
}
