//! The plan of consumer groups, carried out against the real coordinator.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use proptest::prelude::*;
use serde_json::{Value, json};
use tidemill_crd::{
    ConsumerGroup, Outcome,
    plan::{
        Claim, ClusterGate, GroupAction, GroupObject, GroupObserved, GroupPlan, GroupSeen, GroupWish,
        plan_group,
    },
};
use tidemill_group::{
    Committed, Coordinator, Declare, Join, Leave, Now, Outcome as Answer, Release, Reset, ResetOutcome,
    Settings, Subscription, TopicEntry, Topics,
};
use tidemill_types::{GroupName, PartitionId, TopicId, TopicName};

fn group(name: &str, spec: Value) -> ConsumerGroup {
    let mut spec = spec;
    spec["clusterRef"] = json!({"name": "c"});
    serde_json::from_value(json!({
        "apiVersion": "tidemill.dev/v1alpha1",
        "kind": "ConsumerGroup",
        "metadata": {"name": name},
        "spec": spec,
    }))
    .unwrap()
}

fn observed(group: Option<GroupSeen>) -> GroupObserved {
    GroupObserved { gate: ClusterGate::Open, group, behind: None }
}

fn object<'a>(group: &'a ConsumerGroup, uid: &'a str) -> GroupObject<'a> {
    GroupObject { group, uid, owner: "ConsumerGroup default/billing", deleted: false }
}

/// A cluster with one group, as the broker keeps it: claim, topics, resets and offsets at the coordinator, the configuration
/// in the quorum.
struct World {
    c: Coordinator,
    config: Option<GroupWish>,
    now: Now,
    /// Moves by resets, by id.
    resets: BTreeMap<String, u32>,
    joins: u64,
}

const MEMBER: &str = "m";

fn name() -> GroupName {
    GroupName::new("billing").unwrap()
}

impl World {
    fn new() -> Self {
        let mut c = Coordinator::new(Settings::default());
        let now = Now { mono: Duration::from_secs(1), wall_ms: 1_700_000_000_000 };
        let entry = |id| TopicEntry { id: TopicId(id), partitions: 2 };
        let topics = ["a", "b"].map(|t| TopicName::new(t).unwrap()).into_iter().zip([entry(1), entry(2)]);
        c.set_topics(Arc::new(Topics::new(topics, [])), now);
        Self { c, config: None, now, resets: BTreeMap::new(), joins: 0 }
    }

    fn seen(&self) -> Option<GroupSeen> {
        let g = self.c.group(&name())?;
        let topics: BTreeSet<String> = g.declared.topics.iter().map(ToString::to_string).collect();
        Some(GroupSeen {
            config: self.config.clone().map(|c| GroupWish { topics, ..c }),
            claim: g.declared.claim.as_ref().map(|c| Claim { uid: c.uid.clone(), owner: c.owner.clone() }),
            resets: g.declared.resets.iter().map(|r| (r.id.clone(), r.to.clone())).collect(),
            members: u32::try_from(g.members.len()).unwrap(),
            ..GroupSeen::default()
        })
    }

    fn carry_out(&mut self, action: &GroupAction) {
        match action {
            GroupAction::Declare { wish, claim, from_uid } => {
                let d = Declare {
                    group: name(),
                    claim: tidemill_types::Claim { uid: claim.uid.clone(), owner: claim.owner.clone() },
                    from_uid: from_uid.clone(),
                    topics: wish.topics.iter().map(|t| TopicName::new(t).unwrap()).collect(),
                };
                if self.c.declare(d, self.now).answer.is_ok() {
                    self.config = Some(wish.clone());
                }
            }
            GroupAction::Reset { id, shown, evict, .. } => {
                let p = PartitionId { topic: TopicId(1), index: 0 };
                let at = Committed { offset: 1, epoch: 0, metadata: String::new(), commit_ms: 0 };
                let once = Some((id.clone(), shown.clone()));
                let r = Reset { group: name(), once, set: vec![(p, at)], forget: Vec::new(), evict: *evict };
                if self.c.reset(r, self.now).answer == Ok(ResetOutcome::Done) {
                    *self.resets.entry(id.clone()).or_default() += 1;
                }
            }
            GroupAction::Release { uid, .. } => {
                let r = Release { group: name(), uid: uid.clone(), delete: false };
                self.c.release(&r).answer.unwrap();
            }
            GroupAction::Remove { uid, .. } => {
                let r = Release { group: name(), uid: uid.clone(), delete: true };
                if self.c.release(&r).answer == Ok(tidemill_group::Released::Done) {
                    self.config = None;
                    // A group of that name is a new one.
                    self.resets.clear();
                }
            }
        }
    }

    fn member(&mut self, there: bool) {
        let subscription =
            Subscription { topics: BTreeSet::from([TopicName::new("a").unwrap()]), pattern: None };
        self.joins += 1;
        if there {
            let j = Join {
                group: name(),
                member: MEMBER.into(),
                incarnation: 1,
                attempt: self.joins,
                instance: None,
                client: String::new(),
                subscription,
                session_ms: None,
                rebalance_ms: None,
            };
            let Answer { answer, .. } = self.c.join(j, self.now);
            answer.unwrap();
        } else if let Some(a) = self.c.assignment(&name(), &MEMBER.into()) {
            let leave = Leave { group: name(), member: MEMBER.into(), epoch: a.epoch, comes_back: false };
            self.c.leave(&leave, self.now).answer.unwrap();
        }
    }
}

fn settle(w: &mut World, object: GroupObject<'_>) -> GroupPlan {
    for _ in 0..5 {
        let plan = plan_group(object, &observed(w.seen()));
        if plan.actions.is_empty() {
            return plan;
        }
        plan.actions.iter().for_each(|a| w.carry_out(a));
    }
    unreachable!("it does not come to rest: {:?}", plan_group(object, &observed(w.seen())))
}

#[test]
fn configured_once_and_reset_once_per_id() {
    let mut w = World::new();
    let g = group("billing", json!({"topics": ["b", "a"], "reset": {"id": "r1", "to": "earliest"}}));
    let plan = plan_group(object(&g, "1"), &observed(w.seen()));
    assert!(matches!(&plan.actions[..], [GroupAction::Declare { .. }, GroupAction::Reset { .. }]));
    assert_eq!(settle(&mut w, object(&g, "1")).verdict.outcome, Outcome::Done);
    // Another id while a member is there: it waits, and says no number.
    let g2 = group("billing", json!({"topics": ["a", "b"], "reset": {"id": "r2", "to": "latest"}}));
    w.member(true);
    let plan = settle(&mut w, object(&g2, "1"));
    assert_eq!(plan.verdict.reason, "WaitingForEmptyGroup");
    w.member(false);
    settle(&mut w, object(&g2, "1"));
    // Back to the first manifest, by a revert: it was carried out.
    assert_eq!(settle(&mut w, object(&g, "1")).verdict.outcome, Outcome::Done);
    assert_eq!(w.resets, BTreeMap::from([("r1".to_owned(), 1), ("r2".to_owned(), 1)]));
    // Members that may be removed are.
    let spec = json!({"topics": ["a"], "reset": {"id": "r3", "to": "latest", "requireEmpty": false}});
    let g3 = group("billing", spec);
    w.member(true);
    assert_eq!(settle(&mut w, object(&g3, "1")).verdict.outcome, Outcome::Done);
    assert_eq!((w.resets["r3"], w.seen().unwrap().members), (1, 0));
}

#[test]
fn rule_8_the_loser_says_whom_it_lost_to_and_takes_over_when_free() {
    let mut w = World::new();
    let first = group("billing", json!({"topics": ["a"]}));
    let second = group("other", json!({"groupName": "billing", "topics": ["b"]}));
    settle(&mut w, object(&first, "1"));
    let other =
        GroupObject { group: &second, uid: "2", owner: "ConsumerGroup default/other", deleted: false };
    let plan = settle(&mut w, other);
    assert_eq!((plan.verdict.outcome, plan.verdict.reason.as_str()), (Outcome::Rejected, "Conflict"));
    assert!(plan.verdict.message.contains("ConsumerGroup default/billing"));
    // Its deletion touches nothing of the winner's.
    let gone = plan_group(GroupObject { deleted: true, ..other }, &observed(w.seen()));
    assert_eq!((gone.actions.len(), gone.verdict.outcome), (0, Outcome::Done));
    // The winner was retained: no finalizer, its object is seen to be gone.
    let seen = w.seen().map(|s| GroupSeen { holder_gone: true, ..s });
    let plan = plan_group(other, &observed(seen));
    let [GroupAction::Declare { from_uid: Some(from), .. }] = &plan.actions[..] else {
        unreachable!("{plan:?}")
    };
    assert_eq!(from, "1");
    // Or it was released.
    let plan = plan_group(GroupObject { deleted: true, ..object(&first, "1") }, &observed(w.seen()));
    plan.actions.iter().for_each(|a| w.carry_out(a));
    assert_eq!(settle(&mut w, other).verdict.outcome, Outcome::Done);
}

#[test]
fn what_the_data_plane_lacks_is_never_ready() {
    for mode in ["Queue", "FifoQueue"] {
        let spec = json!({"topics": ["a"], "mode": mode, "delivery": {"leaseDuration": "30s"}});
        let p = plan_group(object(&group("billing", spec), "1"), &observed(None));
        assert_eq!((p.verdict.outcome, p.verdict.reason.as_str()), (Outcome::Rejected, "Unsupported"));
        assert!(p.actions.is_empty() && p.verdict.message.contains("spec.mode"));
    }
}

#[test]
fn lag_above_the_limit_is_a_condition_without_a_number_that_moves() {
    let g = group("billing", json!({"topics": ["a"], "limits": {"maxLag": 100}}));
    let at = |behind, lag| {
        let seen = GroupSeen { lag: Some(lag), ..GroupSeen::default() };
        let observed = GroupObserved { behind, ..observed(Some(seen)) };
        let all = plan_group(object(&g, "1"), &observed).conditions;
        all.into_iter().find(|c| c.type_ == "LagWithinLimit").unwrap()
    };
    assert_eq!(at(Some(true), 101), at(Some(true), 9_000_000));
    assert_eq!((at(Some(true), 1).status, at(Some(false), 1).status), (Some(false), Some(true)));
    assert_eq!(at(None, 1).status, None);
}

#[test]
fn a_missing_topic_is_told_and_waited_for() {
    let g = group("billing", json!({"topics": ["a", "z"]}));
    let mut w = World::new();
    settle(&mut w, object(&g, "1"));
    let seen = w.seen().map(|s| GroupSeen { missing: BTreeSet::from(["z".to_owned()]), ..s });
    let plan = plan_group(object(&g, "1"), &observed(seen));
    let c = plan.conditions.iter().find(|c| c.type_ == "TopicsFound").unwrap();
    assert_eq!((plan.verdict.outcome, c.status), (Outcome::Done, Some(false)));
    assert!(c.message.contains("topic z"));
}

#[test]
fn rule_1_the_delete_branch_ends_without_a_cluster() {
    let delete = group("billing", json!({"topics": ["a"], "deletionPolicy": "Delete"}));
    let retain = group("billing", json!({"topics": ["a"]}));
    let missing = ClusterGate::Missing { cluster: "c".into() };
    let down = ClusterGate::NotReady { why: "no".into() };
    for (g, gate, outcome) in [
        (&delete, &missing, Outcome::Done),
        (&retain, &missing, Outcome::Done),
        (&delete, &down, Outcome::Retrying),
        (&retain, &down, Outcome::Done),
    ] {
        let seen = GroupObserved { gate: gate.clone(), ..observed(None) };
        let plan = plan_group(GroupObject { deleted: true, ..object(g, "1") }, &seen);
        assert_eq!((plan.verdict.outcome, plan.actions.len()), (outcome, 0), "{gate:?}");
    }
    let mut w = World::new();
    settle(&mut w, object(&delete, "1"));
    w.member(true);
    let gone = GroupObject { deleted: true, ..object(&delete, "1") };
    assert_eq!(settle(&mut w, gone).verdict.reason, "WaitingForEmptyGroup");
    w.member(false);
    assert_eq!(settle(&mut w, gone).verdict.outcome, Outcome::Done);
    assert!(w.seen().is_none() && w.config.is_none());
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    /// A manifest is written: which topics, assignor, reset.
    Write(u8, u8, u8),
    /// A pass that ends after so many actions, as if the process had died then.
    Pass(u8),
    /// The same actions once more, by an operator that came to life again with an old view.
    Stale,
    /// The object is deleted and made anew.
    Anew,
    Member(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3u8, 0..3u8, 0..5u8).prop_map(|(a, b, c)| Step::Write(a, b, c)),
        6 => (0..4u8).prop_map(Step::Pass),
        2 => Just(Step::Stale),
        1 => Just(Step::Anew),
        3 => any::<bool>().prop_map(Step::Member),
    ]
}

fn written(n: (u8, u8, u8)) -> ConsumerGroup {
    let topics = [json!(["a"]), json!(["a", "b"]), json!([])][usize::from(n.0)].clone();
    let assignment =
        [json!({"strategy": "range"}), json!({"strategy": "uniform"}), json!({})][usize::from(n.1)].clone();
    let mut spec = json!({"topics": topics, "assignment": assignment, "startAt": "earliest"});
    if n.2 > 0 {
        spec["reset"] =
            json!({"id": format!("r{}", n.2), "to": "earliest", "requireEmpty": n.2.is_multiple_of(2)});
    }
    group("billing", spec)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn it_comes_to_rest_and_no_reset_happens_twice(steps in proptest::collection::vec(step(), 1..60)) {
        let mut w = World::new();
        let (mut g, mut uid) = (written((0, 0, 0)), 1);
        let mut last: Vec<GroupAction> = Vec::new();
        for s in steps {
            match s {
                Step::Write(a, b, c) => g = written((a, b, c)),
                Step::Pass(n) => {
                    let id = uid.to_string();
                    let plan = plan_group(object(&g, &id), &observed(w.seen()));
                    // What is done is done: nothing is promised before it.
                    prop_assert!(plan.verdict.outcome != Outcome::Done || plan.actions.is_empty());
                    plan.actions.iter().take(usize::from(n)).for_each(|a| w.carry_out(a));
                    last = plan.actions;
                }
                Step::Stale => last.iter().for_each(|a| w.carry_out(a)),
                Step::Anew => uid += 1,
                Step::Member(there) => w.member(there),
            }
            for (id, times) in &w.resets {
                prop_assert_eq!(*times, 1, "reset {}", id);
            }
        }
        w.member(false);
        let id = uid.to_string();
        let plan = settle(&mut w, object(&g, &id));
        prop_assert_eq!(plan.verdict.outcome, Outcome::Done);
        let seen = w.seen().unwrap();
        prop_assert_eq!(seen.claim.unwrap().uid, id);
        if let Some(reset) = &g.spec.reset {
            prop_assert_eq!(w.resets.get(&reset.id), Some(&1));
        }
    }
}
