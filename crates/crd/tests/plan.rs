//! The plan against the quorum's own state machine: what is planned is carried out there, and planned again.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, outside of test functions")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidemill_crd::{
    Outcome, Topic,
    plan::{self, ClusterGate, TopicAction, TopicObject, TopicObserved, TopicPlan, TopicSeen, plan_topic},
    topic::{Adoption, DeletionPolicy},
};
use tidemill_metadata::State;
use tidemill_types::meta::{
    Adoption as StateAdoption, ClaimRelease, Command, ControlAction, ControlCommand, ControlReply,
    MemberSpec, Reply, Request, TopicDeletion, TopicWish,
};
use tidemill_types::{
    Claim, ClusterId, Endpoint, Incarnation, MemberId, MemberRole, RequestId, Revision, SessionId,
    TopicConfig, TopicName,
};

/// Keys of these tests: the state machine has typed fields, the interface has text.
fn config(pairs: &BTreeMap<String, String>) -> TopicConfig {
    let mut c = TopicConfig::default();
    for (k, v) in pairs {
        match k.as_str() {
            "retention.bytes" => c.retention_bytes = v.parse().ok(),
            "copies" => c.replication.copies = v.parse().unwrap(),
            "ackQuorum" => c.replication.ack_quorum = v.parse().unwrap(),
            other => panic!("{other}"),
        }
    }
    if pairs.contains_key("copies") && !pairs.contains_key("ackQuorum") {
        c.replication.ack_quorum = c.replication.ack_quorum.min(c.replication.copies);
    }
    c
}

fn shown(c: &TopicConfig) -> BTreeMap<String, String> {
    [
        ("copies", c.replication.copies.to_string()),
        ("ackQuorum", c.replication.ack_quorum.to_string()),
        ("retention.bytes", c.retention_bytes.map(|v| v.to_string()).unwrap_or_default()),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), v))
    .collect()
}

struct World {
    state: State,
    revision: u64,
}

impl World {
    fn new() -> Self {
        let mut w = Self { state: State::new(), revision: 0 };
        let id = MemberId(uuid(1));
        w.send(Command::Init { cluster: ClusterId(uuid(9)) });
        w.send(Command::OpenSession(MemberSpec {
            cluster: None,
            id,
            role: MemberRole::Broker,
            name: "b".into(),
            incarnation: Incarnation(1),
            endpoint: Endpoint { host: "h".into(), port: 1 },
            zone: String::new(),
            free_bytes: 0,
            read_only: false,
        }));
        w.control(ControlAction::RaiseFeatureLevel { level: tidemill_metadata::FEATURE_LEVEL });
        w.send(Command::Tick { wall_ms: 1_000_000, jump: true });
        w
    }

    fn send(&mut self, command: Command) -> Reply {
        self.revision += 1;
        let request = Request { session: SessionId::NONE, request: RequestId(self.revision), command };
        self.state.apply(Revision(self.revision), &request).result.unwrap()
    }

    fn control(&mut self, action: ControlAction) -> ControlReply {
        match self.send(Command::Control(ControlCommand { epoch: None, action })) {
            Reply::Control(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    fn observe(&self, name: &str) -> TopicObserved {
        let claim = |c: &Claim| plan::Claim { uid: c.uid.clone(), owner: c.owner.clone() };
        let topic = self.state.topics().find(|t| t.name.as_str() == name).map(|t| {
            let control = self.state.topic_control(t.id);
            TopicSeen {
                id: t.id.0,
                partitions: t.partitions,
                config: shown(&t.config),
                claim: control.and_then(|c| c.claim.as_ref()).map(claim),
                tombstone: control.and_then(|c| c.tombstone.as_ref()).map(|t| plan::Tombstone {
                    purge_at_ms: t.purge_at_ms,
                    former: t.former.as_ref().map(claim),
                }),
                without_owner: 0,
            }
        });
        TopicObserved {
            gate: ClusterGate::Open,
            topic,
            defaults: shown(&TopicConfig::default()),
            max_copies: None,
        }
    }

    /// Carries a plan out; every element must be accepted: the plan had seen what the state machine judges by.
    fn carry_out(&mut self, p: &TopicPlan) {
        for action in &p.actions {
            let reply = match action.clone() {
                TopicAction::Apply { wish, claim, adoption } => {
                    self.control(ControlAction::ApplyTopics(vec![TopicWish {
                        name: TopicName::new(&wish.name).unwrap(),
                        partitions: wish.partitions,
                        config: config(&wish.config),
                        claim: Some(Claim { uid: claim.uid, owner: claim.owner }),
                        adoption: match adoption {
                            Adoption::Fail => StateAdoption::Fail,
                            Adoption::IfMatches => StateAdoption::IfMatches,
                            Adoption::Take => StateAdoption::Take,
                        },
                    }]))
                }
                TopicAction::Delete { name, uid, purge_after_ms, .. } => {
                    self.control(ControlAction::TombstoneTopics(vec![TopicDeletion {
                        name: TopicName::new(&name).unwrap(),
                        uid: Some(uid),
                        purge_after_ms,
                    }]))
                }
                TopicAction::Release { name, uid } => {
                    self.control(ControlAction::ReleaseClaims(vec![ClaimRelease {
                        name: TopicName::new(&name).unwrap(),
                        uid,
                    }]))
                }
            };
            match reply {
                ControlReply::Applied(v) => assert!(v[0].is_ok(), "{action:?}: {v:?}"),
                ControlReply::Tombstoned(v) => assert!(v[0].is_ok(), "{action:?}: {v:?}"),
                ControlReply::Released(v) => assert_eq!(v, [true], "{action:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn uuid(n: u128) -> ::uuid::Uuid {
    ::uuid::Uuid::from_u128(n)
}

fn topic(name: &str, partitions: i32) -> Topic {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "tidemill.dev/v1alpha1",
        "kind": "Topic",
        "metadata": {"name": name},
        "spec": {"clusterRef": {"name": "c"}, "partitions": partitions},
    }))
    .unwrap()
}

fn object<'a>(topic: &'a Topic, uid: &'a str, owner: &'a str, deleted: bool) -> TopicObject<'a> {
    TopicObject { topic, uid, owner, deleted, was_ready: false, defaults: None }
}

/// One step of somebody: which of two objects, how it looks, whether it is deleted.
#[derive(Clone, Debug)]
struct Step {
    who: usize,
    partitions: i32,
    bytes: Option<u32>,
    copies: Option<i32>,
    adoption: Adoption,
    policy: DeletionPolicy,
    deleted: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let adoption = prop_oneof![Just(Adoption::Fail), Just(Adoption::IfMatches), Just(Adoption::Take)];
    let policy = prop_oneof![Just(DeletionPolicy::Delete), Just(DeletionPolicy::Retain)];
    let bytes = prop_oneof![Just(None), (1u32..3).prop_map(Some)];
    let copies = prop_oneof![Just(None), (1i32..4).prop_map(Some)];
    (0usize..2, 1i32..4, bytes, copies, adoption, policy, prop::bool::weighted(0.25)).prop_map(
        |(who, partitions, bytes, copies, adoption, policy, deleted)| Step {
            who,
            partitions,
            bytes,
            copies,
            adoption,
            policy,
            deleted,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever two objects wish of one topic: a plan that was carried out leaves nothing to plan, no topic is ever gone or
    /// smaller, records are deleted only by the holder's own deletion, and who is refused is told why.
    #[test]
    fn plans_settle_and_lose_nothing(steps in proptest::collection::vec(step(), 1..25)) {
        let mut w = World::new();
        let names = [("uid-0", "Topic a/t"), ("uid-1", "Topic b/t")];
        for s in steps {
            let (uid, owner) = names[s.who];
            let mut t = topic("t", s.partitions);
            t.spec.adoption = s.adoption;
            t.spec.deletion_policy = s.policy;
            if let Some(n) = s.bytes {
                t.spec.config.clear();
                t.spec.retention = Some(serde_json::from_value(serde_json::json!({"bytes": n.to_string()})).unwrap());
            }
            if let Some(n) = s.copies {
                t.spec.replication = Some(serde_json::from_value(serde_json::json!({"copies": n})).unwrap());
            }
            let before = w.observe("t");
            let p = plan_topic(object(&t, uid, owner, s.deleted), &before);
            // The same again is the same.
            prop_assert_eq!(&p, &plan_topic(object(&t, uid, owner, s.deleted), &before));
            w.carry_out(&p);
            let after = w.observe("t");
            let again = plan_topic(object(&t, uid, owner, s.deleted), &after);
            prop_assert!(again.actions.is_empty(), "{:?} then {:?}", p, again);
            if !p.actions.is_empty() {
                prop_assert_eq!(again.verdict.outcome, Outcome::Done, "{:?}", again);
            }
            if p.verdict.outcome == Outcome::Rejected {
                prop_assert!(p.actions.is_empty());
                prop_assert!(!p.verdict.message.is_empty());
            }
            if let Some(old) = &before.topic {
                let new = after.topic.as_ref();
                prop_assert!(new.is_some_and(|n| n.partitions >= old.partitions && n.id == old.id), "a topic never goes or shrinks");
                let deleted_now = old.tombstone.is_none() && new.is_some_and(|n| n.tombstone.is_some());
                let own = old.claim.as_ref().is_some_and(|c| c.uid == uid);
                prop_assert!(!deleted_now || (s.deleted && own && s.policy == DeletionPolicy::Delete));
                // Rule 8: nobody takes a claim from a holder.
                if let (Some(a), Some(b)) = (&old.claim, new.and_then(|n| n.claim.as_ref())) {
                    prop_assert_eq!(&a.uid, &b.uid);
                }
            }
        }
    }
}

#[test]
fn a_conflict_names_the_holder_and_ends_when_it_is_free() {
    let mut w = World::new();
    let t = topic("t", 1);
    let (first, second) = (object(&t, "1", "Topic a/t", false), object(&t, "2", "Topic b/t", false));
    let p = plan_topic(first, &w.observe("t"));
    assert_eq!((p.verdict.reason.as_str(), p.verdict.outcome), ("Creating", Outcome::Working));
    w.carry_out(&p);
    assert!(plan_topic(first, &w.observe("t")).is_done());
    let lost = plan_topic(second, &w.observe("t"));
    assert_eq!((lost.verdict.outcome, lost.verdict.reason.as_str()), (Outcome::Rejected, "Conflict"));
    assert_eq!(lost.verdict.message, "topic t is claimed by Topic a/t");
    let mut kept = t.clone();
    kept.spec.deletion_policy = DeletionPolicy::Retain;
    let p = plan_topic(object(&kept, "1", "Topic a/t", true), &w.observe("t"));
    w.carry_out(&p);
    let mut adopts = t.clone();
    adopts.spec.adoption = Adoption::IfMatches;
    let p = plan_topic(object(&adopts, "2", "Topic b/t", false), &w.observe("t"));
    assert_eq!(p.verdict.reason, "Adopting");
    w.carry_out(&p);
    assert!(plan_topic(object(&adopts, "2", "Topic b/t", false), &w.observe("t")).is_done());
}

#[test]
fn a_tombstone_comes_back_to_its_owner() {
    let mut w = World::new();
    let t = topic("t", 2);
    w.carry_out(&plan_topic(object(&t, "1", "Topic a/t", false), &w.observe("t")));
    w.carry_out(&plan_topic(object(&t, "1", "Topic a/t", true), &w.observe("t")));
    assert!(w.observe("t").topic.unwrap().tombstone.is_some());
    let stranger = plan_topic(object(&t, "9", "Topic b/t", false), &w.observe("t"));
    assert_eq!(
        (stranger.verdict.outcome, stranger.verdict.reason.as_str()),
        (Outcome::Rejected, "Tombstoned")
    );
    assert!(stranger.verdict.message.contains("deleted by Topic a/t"), "{}", stranger.verdict.message);
    // The revert in git makes another object of the same name.
    let back = plan_topic(object(&t, "2", "Topic a/t", false), &w.observe("t"));
    assert_eq!(back.verdict.reason, "Undeleting");
    w.carry_out(&back);
    assert!(plan_topic(object(&t, "2", "Topic a/t", false), &w.observe("t")).is_done());
}

#[test]
fn gates_and_what_goes_through_them() {
    let t = topic("t", 1);
    let mut seen = World::new().observe("t");
    let verdict = |t: &Topic, seen: &TopicObserved, deleted: bool| {
        let v = plan_topic(object(t, "1", "o", deleted), seen).verdict;
        (v.outcome, v.reason)
    };
    let missing = ClusterGate::Missing { cluster: "c".into() };
    let away = ClusterGate::NotReady { why: "it starts".into() };
    let forbidden = ClusterGate::Forbidden { cluster: "c".into(), namespace: "n".into() };
    for (gate, live, deleted) in [
        (missing, (Outcome::Working, "WaitingForCluster"), (Outcome::Done, "Deleted")),
        (away, (Outcome::Working, "WaitingForCluster"), (Outcome::Retrying, "WaitingForCluster")),
        (forbidden, (Outcome::Rejected, "NotAllowed"), (Outcome::Done, "Deleted")),
    ] {
        seen.gate = gate;
        assert_eq!(verdict(&t, &seen, false), (live.0, live.1.to_owned()));
        assert_eq!(verdict(&t, &seen, true), (deleted.0, deleted.1.to_owned()));
    }
    let mut paused = t.clone();
    paused.spec.paused = true;
    assert_eq!(verdict(&paused, &seen, false), (Outcome::Paused, "Paused".to_owned()));
    let mut wrong = t.clone();
    wrong.spec.partitions = 0;
    let p = plan_topic(object(&wrong, "1", "o", false), &seen);
    assert_eq!(p.verdict.message, "spec.partitions: 1 to 100000");
}

#[test]
fn a_small_cluster_gives_what_it_has_and_says_so() {
    let mut w = World::new();
    let mut t = topic("t", 1);
    t.spec.replication =
        Some(serde_json::from_value(serde_json::json!({"copies": 1, "ackQuorum": 1})).unwrap());
    w.carry_out(&plan_topic(object(&t, "1", "o", false), &w.observe("t")));
    t.spec.replication =
        Some(serde_json::from_value(serde_json::json!({"copies": 3, "ackQuorum": 2})).unwrap());
    let mut seen = w.observe("t");
    seen.max_copies = Some(1);
    let p = plan_topic(object(&t, "1", "o", false), &seen);
    assert!(p.is_done(), "{p:?}");
    let c = &p.conditions[0];
    assert_eq!((c.type_, c.status), ("Replicated", Some(false)));
    assert_eq!(c.message, "1 copies instead of 3: the cluster has no more");
}

#[test]
fn ready_waits_for_owners_once_and_does_not_flicker() {
    let mut w = World::new();
    let t = topic("t", 2);
    w.carry_out(&plan_topic(object(&t, "1", "o", false), &w.observe("t")));
    let mut seen = w.observe("t");
    if let Some(topic) = &mut seen.topic {
        topic.without_owner = 1;
    }
    let first = plan_topic(object(&t, "1", "o", false), &seen);
    assert_eq!(
        (first.verdict.outcome, first.verdict.reason.as_str()),
        (Outcome::Working, "WaitingForOwners")
    );
    let later = plan_topic(TopicObject { was_ready: true, ..object(&t, "1", "o", false) }, &seen);
    assert!(later.is_done(), "{later:?}");
    assert_eq!(later, plan_topic(object(&t, "1", "o", false), &w.observe("t")), "nothing in it moves");
}
