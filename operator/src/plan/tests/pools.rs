use super::{super::Action, world::*};

fn replicas(w: &World, pool: &str) -> i64 {
    w.plan()
        .actions
        .iter()
        .find_map(|a| match a {
            Action::Apply(v)
                if v["metadata"]["name"] == format!("c-bookie-{pool}") && v["kind"] == "StatefulSet" =>
            {
                v["spec"]["replicas"].as_i64()
            }
            _ => None,
        })
        .unwrap()
}

fn why(w: &World) -> String {
    let plan = w.plan();
    plan.conditions.iter().find(|c| c.type_ == "ScaledDown").map(|c| c.message.clone()).unwrap_or_default()
}

#[test]
fn out_at_once() {
    let mut w = World::settled(3, 3, 1);
    w.cluster.spec.bookie_pools[0].replicas = 5;
    assert_eq!(replicas(&w, "hot"), 5);
}

#[test]
fn rule_10_in_only_by_drain_retirement_and_removal() {
    let mut w = World::settled(3, 4, 1);
    w.cluster.spec.bookie_pools[0].replicas = 3;
    assert_eq!(replicas(&w, "hot"), 4, "not before it is retired");
    let drain = Action::Drain {
        uuid: "uuid-3".into(),
        pod: "c-bookie-hot-3".into(),
        claim: "data-c-bookie-hot-3".into(),
    };
    assert_eq!(w.deeds(), [drain]);
    w.member("hot", 3, "uuid-3", "draining");
    w.observed.needs.insert("uuid-3".into(), "still needed by ledger 7 of orders-0 (closed)".into());
    assert_eq!(w.deeds(), [Action::Retire { uuid: "uuid-3".into(), pod: "c-bookie-hot-3".into() }]);
    assert_eq!(replicas(&w, "hot"), 4);
    assert!(why(&w).contains("ledger 7 of orders-0"), "{}", why(&w));
    w.member("hot", 3, "uuid-3", "retired");
    assert_eq!(replicas(&w, "hot"), 3);
    assert_eq!(w.deeds(), [], "the volume waits until its pod is gone");
    w.observed.pods.remove("c-bookie-hot-3");
    w.observed.bookies.remove("c-bookie-hot-3");
    w.observed.sets.get_mut("c-bookie-hot").unwrap().replicas = 3;
    let delete = Action::DeleteClaim {
        name: "data-c-bookie-hot-3".into(),
        uid: "data-c-bookie-hot-3-uid".into(),
        version: "5".into(),
        uuid: "uuid-3".into(),
    };
    assert_eq!(w.deeds(), [delete]);
}

#[test]
fn rule_10_no_answer_is_not_retired() {
    let mut w = World::settled(3, 4, 1);
    w.cluster.spec.bookie_pools[0].replicas = 3;
    w.member("hot", 3, "uuid-3", "retired");
    w.observed.quorum = Some(Err("the metadata quorum does not answer".into()));
    assert_eq!(replicas(&w, "hot"), 4);
    assert_eq!(w.deeds(), []);
    // Neither for a volume that is left over.
    w.observed.pods.remove("c-bookie-hot-3");
    w.observed.sets.get_mut("c-bookie-hot").unwrap().replicas = 3;
    assert_eq!(w.deeds(), []);
}

#[test]
fn rule_10_identity_is_the_uuid_and_not_the_number() {
    let mut w = World::settled(3, 4, 1);
    w.cluster.spec.bookie_pools[0].replicas = 3;
    // An earlier bookie of the same name was retired; the one that is there now was not.
    w.member("hot", 3, "older", "retired");
    assert_eq!(replicas(&w, "hot"), 4);
    // Its volume says who it is also when the pod is gone.
    w.observed.bookies.remove("c-bookie-hot-3");
    assert!(matches!(&w.deeds()[..], [Action::Drain { uuid, .. }] if uuid == "uuid-3"));
    w.observed.claims.get_mut("data-c-bookie-hot-3").unwrap().uuid = None;
    assert_eq!(w.deeds(), []);
    assert!(why(&w).contains("not known"), "{}", why(&w));
}

#[test]
fn rule_10_thirteen_pods_lose_the_highest_number_and_not_the_last_in_the_alphabet() {
    let mut w = World::settled(3, 13, 1);
    w.cluster.spec.bookie_pools[0].replicas = 11;
    w.member("hot", 12, "uuid-12", "retired");
    w.member("hot", 9, "uuid-9", "rw");
    assert_eq!(replicas(&w, "hot"), 12);
    // Both that go are drained at once, but only the highest number leaves.
    assert!(matches!(&w.deeds()[..], [Action::Drain { uuid, .. }] if uuid == "uuid-11"));
    w.member("hot", 12, "uuid-12", "draining");
    w.member("hot", 11, "uuid-11", "retired");
    assert_eq!(replicas(&w, "hot"), 13);
}

#[test]
fn a_pool_that_is_taken_out_is_drained_and_removed() {
    let mut w = World::settled(3, 3, 1);
    w.set(crate::names::Role::Bookie, Some("old"), 1);
    w.bookie("old", 0, "uuid-old", Some(ID));
    w.member("old", 0, "uuid-old", "rw");
    assert!(matches!(&w.deeds()[..], [Action::Drain { uuid, .. }] if uuid == "uuid-old"));
    w.member("old", 0, "uuid-old", "retired");
    assert!(matches!(&w.deeds()[..], [Action::ScaleSet { name, replicas: 0, .. }] if name == "c-bookie-old"));
    w.observed.sets.get_mut("c-bookie-old").unwrap().replicas = 0;
    w.observed.pods.remove("c-bookie-old-0");
    w.observed.bookies.remove("c-bookie-old-0");
    assert!(matches!(&w.deeds()[..], [Action::DeleteClaim { uuid, .. }] if uuid == "uuid-old"));
    w.observed.claims.remove("data-c-bookie-old-0");
    assert!(matches!(&w.deeds()[..], [Action::DeleteSet { name, .. }] if name == "c-bookie-old"));
}

#[test]
fn a_drain_is_taken_back_only_when_it_was_the_operators() {
    let mut w = World::settled(3, 3, 1);
    w.member("hot", 2, "uuid-2", "draining");
    assert_eq!(w.deeds(), [], "a person's wish");
    w.observed.claims.get_mut("data-c-bookie-hot-2").unwrap().draining = true;
    assert!(matches!(&w.deeds()[..], [Action::Undrain { uuid, .. }] if uuid == "uuid-2"));
}

#[test]
fn rule_11_the_rest_goes_on_while_a_scale_down_waits() {
    let mut w = World::settled(3, 4, 1);
    w.cluster.spec.bookie_pools[0].replicas = 3;
    w.member("hot", 3, "uuid-3", "draining");
    w.observed.sets.get_mut("c-meta").unwrap().update_revision = Some("r2".into());
    assert_eq!(w.replaced(), ["c-meta-2"]);
}

#[test]
fn rule_10_who_was_retired_before_the_wish_was_taken_back_returns_with_an_empty_volume() {
    let mut w = World::settled(3, 5, 1);
    let claim = "data-c-bookie-hot-4";
    w.member("hot", 4, "uuid-4", "retired");
    assert_eq!(replicas(&w, "hot"), 5, "a person retired it and replaces it");
    w.observed.claims.get_mut(claim).unwrap().draining = true;
    assert_eq!(replicas(&w, "hot"), 4);
    assert!(why(&w).contains("one by one"), "not Ready with one bookie less: {}", why(&w));
    assert_eq!(w.deeds(), [], "the volume waits until its pod is gone");
    w.observed.pods.remove("c-bookie-hot-4");
    w.observed.bookies.remove("c-bookie-hot-4");
    w.observed.sets.get_mut("c-bookie-hot").unwrap().replicas = 4;
    assert!(matches!(&w.deeds()[..], [Action::DeleteClaim { uuid, .. }] if uuid == "uuid-4"));
    // A pod that came now would get the volume of the retired one.
    assert_eq!(replicas(&w, "hot"), 4);
    w.observed.claims.remove(claim);
    assert_eq!(replicas(&w, "hot"), 5);
    assert_eq!(why(&w), "");
}
