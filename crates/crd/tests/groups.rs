//! The plan of consumer groups.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

use serde_json::json;
use tidemill_crd::{
    ConsumerGroup, Outcome,
    plan::{ClusterGate, GroupAction, GroupObject, GroupObserved, GroupSeen, plan_group},
};

fn group(spec: serde_json::Value) -> ConsumerGroup {
    let mut spec = spec;
    spec["clusterRef"] = json!({"name": "c"});
    serde_json::from_value(json!({
        "apiVersion": "tidemill.dev/v1alpha1",
        "kind": "ConsumerGroup",
        "metadata": {"name": "billing"},
        "spec": spec,
    }))
    .unwrap()
}

fn observed(group: Option<GroupSeen>) -> GroupObserved {
    GroupObserved { gate: ClusterGate::Open, group, supported: Ok(()) }
}

#[test]
fn configured_once_and_reset_once_per_id() {
    let g = group(json!({"topics": ["b", "a"], "reset": {"id": "r1", "to": "earliest"}}));
    let object = GroupObject { group: &g, deleted: false };
    let p = plan_group(object, &observed(None));
    let [GroupAction::Configure(wish), GroupAction::Reset { reset, topics, .. }] = &p.actions[..] else {
        unreachable!("{p:?}")
    };
    assert_eq!(
        (wish.topics.join(","), topics.join(","), reset.id.as_str()),
        ("a,b".into(), "a,b".into(), "r1")
    );
    let mut seen =
        GroupSeen { config: Some(wish.clone()), last_reset: Some("r1".into()), members: 2, lag: Some(5) };
    let p = plan_group(object, &observed(Some(seen.clone())));
    assert_eq!((p.actions.len(), p.verdict.outcome), (0, Outcome::Done));
    // Another id while members are there: it waits.
    seen.last_reset = Some("r0".into());
    let p = plan_group(object, &observed(Some(seen.clone())));
    assert_eq!((p.actions.len(), p.verdict.reason.as_str()), (0, "WaitingForEmptyGroup"));
    seen.members = 0;
    assert_eq!(plan_group(object, &observed(Some(seen))).actions.len(), 1);
}

#[test]
fn what_the_data_plane_lacks_is_never_ready() {
    let queue = group(json!({"topics": ["a"], "mode": "Queue"}));
    let p = plan_group(GroupObject { group: &queue, deleted: false }, &observed(None));
    assert_eq!((p.verdict.outcome, p.verdict.reason.as_str()), (Outcome::Rejected, "NotSupported"));
    let g = group(json!({"topics": ["a"]}));
    let seen = GroupObserved { supported: Err("not yet".into()), ..observed(None) };
    let p = plan_group(GroupObject { group: &g, deleted: false }, &seen);
    assert_eq!((p.verdict.outcome, p.verdict.message.as_str()), (Outcome::Rejected, "not yet"));
}

#[test]
fn lag_above_the_limit_is_a_condition_without_a_number_that_moves() {
    let g = group(json!({"topics": ["a"], "limits": {"maxLag": 100}}));
    let object = GroupObject { group: &g, deleted: false };
    let lag = |n| GroupSeen { config: None, last_reset: None, members: 0, lag: Some(n) };
    let at = |n| plan_group(object, &observed(Some(lag(n)))).conditions;
    assert_eq!(at(101), at(9_000_000));
    assert_eq!(at(0), at(100));
    assert_eq!((at(101)[0].status, at(100)[0].status), (Some(false), Some(true)));
}

#[test]
fn a_deletion_keeps_what_it_shall_keep() {
    let g = group(json!({"topics": ["a"]}));
    let p = plan_group(GroupObject { group: &g, deleted: true }, &observed(None));
    assert_eq!((p.actions.len(), p.verdict.outcome), (0, Outcome::Done));
    let g = group(json!({"topics": ["a"], "deletionPolicy": "Delete"}));
    let configured = plan_group(GroupObject { group: &g, deleted: false }, &observed(None));
    let [GroupAction::Configure(wish)] = &configured.actions[..] else { unreachable!() };
    let seen = GroupSeen { config: Some(wish.clone()), last_reset: None, members: 0, lag: None };
    let p = plan_group(GroupObject { group: &g, deleted: true }, &observed(Some(seen)));
    assert_eq!(p.actions, [GroupAction::Remove { name: "billing".into() }]);
}
