use tidemill_crd::{Outcome, cluster::UpdateStrategy};

use super::world::*;

/// Everything has a newer revision.
fn outdated(metas: i32, bookies: i32, brokers: i32) -> World {
    let mut w = World::settled(metas, bookies, brokers);
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

#[test]
fn rule_11_quorum_then_bookies_then_brokers_one_by_one() {
    let mut w = outdated(3, 3, 3);
    assert_eq!(w.replaced(), ["c-meta-2"], "followers before the leader, which is c-meta-1");
    w.pod("c-meta-2").revision = Some("r2".into());
    assert_eq!(w.replaced(), ["c-meta-0"]);
    w.pod("c-meta-0").revision = Some("r2".into());
    assert_eq!(w.replaced(), ["c-meta-1"]);
    updated(&mut w, "c-meta");
    assert_eq!(w.replaced(), ["c-bookie-hot-2"]);
    updated(&mut w, "c-bookie");
    assert_eq!(w.replaced(), ["c-broker-2"]);
    w.cluster.spec.updates.max_concurrent = 2;
    assert_eq!(w.replaced(), ["c-broker-2", "c-broker-1"]);
    w.pod("c-broker-0").ready = false;
    assert_eq!(w.replaced().len(), 1, "one is away already");
    updated(&mut w, "c-broker");
    w.pod("c-broker-0").ready = true;
    assert_eq!(w.plan().verdict.outcome, Outcome::Done);
}

#[test]
fn rule_11_the_next_waits_until_the_last_has_caught_up() {
    let mut w = outdated(3, 3, 3);
    updated(&mut w, "c-meta");
    w.pod("c-bookie-hot-2").revision = Some("r2".into());
    w.pod("c-bookie-hot-2").ready = false;
    assert_eq!(w.replaced(), Vec::<String>::new());
    let plan = w.plan().status.unwrap().plan.unwrap();
    assert!(
        plan.steps.iter().any(|s| s.waits_for.as_deref() == Some("c-bookie-hot-2 to be ready")),
        "{plan:?}"
    );
    w.pod("c-bookie-hot-2").ready = true;
    w.quorum().under = Ok(4);
    assert_eq!(w.replaced(), Vec::<String>::new(), "a fragment is below its copies");
    w.quorum().under = Err("no answer".into());
    assert_eq!(w.replaced(), Vec::<String>::new(), "no answer is not safe");
    w.quorum().under = Ok(0);
    assert_eq!(w.replaced(), ["c-bookie-hot-1"]);
    let Some(Ok(b)) = w.observed.bookies.get_mut("c-bookie-hot-0") else { panic!() };
    b.state = "limbo".into();
    assert_eq!(w.replaced(), Vec::<String>::new());
}

#[test]
fn rule_11_a_lagging_voter_holds_the_quorum() {
    let mut w = outdated(3, 3, 3);
    let Some(Ok(m)) = w.observed.metas.get_mut("c-meta-1") else { panic!() };
    m.applied = 50_000;
    assert_eq!(w.replaced(), Vec::<String>::new());
}

#[test]
fn rule_11_a_pod_that_never_was_ready_may_always_be_replaced() {
    let mut w = outdated(3, 3, 3);
    w.quorum().under = Ok(4);
    let pod = w.pod("c-bookie-hot-0");
    (pod.ready, pod.was_ready) = (false, false);
    assert!(w.replaced().contains(&"c-bookie-hot-0".to_owned()));
}

#[test]
fn rule_11_a_set_whose_controller_is_behind_tells_nothing() {
    let mut w = outdated(3, 3, 3);
    for set in w.observed.sets.values_mut() {
        set.settled = false;
    }
    assert_eq!(w.replaced(), Vec::<String>::new());
}

#[test]
fn approval_names_the_goal_and_stays_valid_while_it_is_reached() {
    let mut w = outdated(3, 3, 3);
    w.cluster.spec.updates.strategy = UpdateStrategy::Approve;
    assert_eq!(w.replaced(), Vec::<String>::new());
    let hash = w.plan().status.unwrap().plan.unwrap().hash;
    w.cluster.spec.updates.approved_plan = Some(hash.clone());
    assert_eq!(w.replaced(), ["c-meta-2"]);
    updated(&mut w, "c-meta");
    assert_eq!(w.plan().status.unwrap().plan.unwrap().hash, hash);
    assert_eq!(w.replaced(), ["c-bookie-hot-2"]);
    w.cluster.spec.config.insert("broker.roll-ms".into(), "1".into());
    assert_eq!(w.replaced(), Vec::<String>::new(), "another goal needs another approval");
}

#[test]
fn outside_of_its_windows_nothing_is_replaced() {
    let mut w = outdated(3, 3, 3);
    w.cluster.spec.updates.windows = vec![tidemill_crd::cluster::Window {
        days: vec![],
        start: "02:00".into(),
        duration: tidemill_crd::Duration::new("1h"),
    }];
    assert_eq!(w.replaced(), Vec::<String>::new());
    w.minute = 130;
    assert_eq!(w.replaced(), ["c-meta-2"]);
}

#[test]
fn rule_4_a_set_that_its_controller_has_not_looked_at_is_not_done() {
    let mut w = World::settled(3, 3, 3);
    assert_eq!(w.plan().verdict.outcome, Outcome::Done);
    let set = w.observed.sets.values_mut().next().unwrap();
    set.settled = false;
    let plan = w.plan();
    assert_eq!((plan.verdict.outcome, plan.verdict.reason.as_str()), (Outcome::Working, "RollingUpdate"));
}
