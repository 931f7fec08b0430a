//! Rule 11 with the quorum's consent: who is asked, what is announced, who is drained.

use super::{super::Action, world::*};

fn outdated() -> World {
    let mut w = World::settled(3, 3, 3);
    for i in 0..3 {
        w.broker(i, "rw", true);
    }
    for set in w.observed.sets.values_mut() {
        set.update_revision = Some("r2".to_owned());
    }
    w
}

fn updated(w: &mut World, prefix: &str) {
    for pod in w.observed.pods.values_mut().filter(|p| p.name.starts_with(prefix)) {
        pod.revision = Some("r2".to_owned());
    }
}

fn waits(w: &World, pod: &str) -> String {
    let steps = w.plan().status.unwrap().plan.unwrap().steps;
    let step = steps.into_iter().find(|s| s.target == pod).unwrap();
    step.waits_for.unwrap_or_default()
}

#[test]
fn rule_11_nothing_is_replaced_before_the_quorum_agrees() {
    let mut w = outdated();
    assert_eq!(w.plan().asks, ["meta-uuid-2"], "one at a time is asked for");
    assert_eq!(w.replaced(), Vec::<String>::new());
    w.consent("meta-uuid-2", &["NOT_CAUGHT_UP", "QUORUM"]);
    assert_eq!(w.replaced(), Vec::<String>::new());
    assert_eq!(waits(&w, "c-meta-2"), "the quorum's consent: NOT_CAUGHT_UP, QUORUM");
    w.observed.consents.insert("meta-uuid-2".into(), Err("it does not answer".into()));
    assert_eq!(w.replaced(), Vec::<String>::new(), "no answer is not safe");
    w.consent("meta-uuid-2", &[]);
    assert_eq!(w.replaced(), ["c-meta-2"]);
    assert!(w.plan().asks.is_empty());
}

#[test]
fn rule_11_a_bookie_announces_its_restart_and_takes_it_back() {
    let mut w = outdated();
    updated(&mut w, "c-meta");
    assert_eq!(w.plan().asks, ["uuid-2"]);
    w.consent("uuid-2", &["UNDER_REPLICATED"]);
    assert_eq!(w.replaced(), Vec::<String>::new());
    w.consent("uuid-2", &[]);
    let announced = w.deeds().into_iter().find_map(|a| match a {
        Action::DeletePod { name, announce, .. } => Some((name, announce)),
        _ => None,
    });
    assert_eq!(announced, Some(("c-bookie-hot-2".to_owned(), Some("uuid-2".to_owned()))));
    // The update was taken back: the bookie stays.
    for set in w.observed.sets.values_mut() {
        set.update_revision = Some("r1".to_owned());
    }
    updated(&mut w, "nothing");
    for pod in w.observed.pods.values_mut() {
        pod.revision = Some("r1".to_owned());
    }
    let member = w.quorum().members.iter_mut().find(|m| m.uuid == "uuid-2").unwrap();
    member.restarting = true;
    let deeds = w.deeds();
    assert_eq!(deeds, [Action::CancelRestart { uuid: "uuid-2".into(), name: "c-bookie-hot-2".into() }]);
}

#[test]
fn rule_11_a_broker_is_drained_first_and_serves_again_afterwards() {
    let mut w = outdated();
    updated(&mut w, "c-meta");
    updated(&mut w, "c-bookie");
    assert_eq!(w.plan().asks, ["broker-uuid-2"]);
    let drain = |undo| Action::DrainBroker { uuid: "broker-uuid-2".into(), name: "c-broker-2".into(), undo };
    w.consent("broker-uuid-2", &["OWNS_PARTITIONS"]);
    assert_eq!(w.deeds(), [drain(false)]);
    assert_eq!(waits(&w, "c-broker-2"), "others to take over its partitions");
    w.broker(2, "draining", true);
    assert_eq!(w.deeds(), [], "it is wished once");
    // Something else stands against it: nobody is drained for nothing.
    w.broker(2, "rw", true);
    w.consent("broker-uuid-2", &["MEMBER_DOWN", "OWNS_PARTITIONS"]);
    assert_eq!(w.deeds(), []);
    w.broker(2, "draining", true);
    w.consent("broker-uuid-2", &[]);
    assert_eq!(w.replaced(), ["c-broker-2"]);
    // It is back with the new revision: it takes partitions again, before the next one goes.
    w.pod("c-broker-2").revision = Some("r2".into());
    assert!(w.deeds().contains(&drain(true)));
    w.pod("c-broker-2").ready = false;
    assert!(!w.deeds().contains(&drain(true)), "not before it is ready");
}

#[test]
fn a_broker_that_was_scaled_away_is_not_waited_for() {
    let mut w = World::settled(1, 3, 1);
    w.broker(0, "rw", true);
    w.broker(1, "rw", false);
    let deed = Action::DrainBroker { uuid: "broker-uuid-1".into(), name: "c-broker-1".into(), undo: false };
    assert_eq!(w.deeds(), [deed]);
    w.broker(1, "draining", false);
    assert_eq!(w.deeds(), []);
}

#[test]
fn without_a_broker_nobody_can_be_asked_and_the_own_checks_decide() {
    let mut w = outdated();
    for i in 0..3 {
        w.broker(i, "rw", false);
    }
    assert_eq!((w.plan().asks.len(), w.replaced()), (0, vec!["c-meta-2".to_owned()]));
}
