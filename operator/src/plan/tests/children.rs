use serde_json::Value;
use tidemill_crd::Outcome;

use super::{super::Action, world::*};

fn child(w: &World, kind: &str, name: &str) -> Option<Value> {
    w.plan().actions.into_iter().find_map(|a| match a {
        Action::Apply(v) if v["kind"] == kind && v["metadata"]["name"] == name => Some(*v),
        _ => None,
    })
}

#[test]
fn rule_3_a_settled_cluster_is_done_and_its_plan_does_not_move() {
    let w = World::settled(3, 3, 3);
    let (a, b) = (w.plan(), w.plan());
    assert_eq!(a.verdict.outcome, Outcome::Done, "{:?}", a.verdict);
    assert_eq!(a.actions, b.actions);
    assert!(a.look_again_s.is_none() && a.status == b.status && a.conditions == b.conditions);
    assert_eq!(w.deeds(), []);
}

#[test]
fn rule_5_labels_and_annotations_of_the_cluster_stay_there() {
    let mut w = World::settled(3, 3, 3);
    let before = w.plan().actions;
    w.cluster.metadata.labels = Some([("argocd.argoproj.io/instance".to_owned(), "app".to_owned())].into());
    w.cluster.metadata.annotations = Some([("note".to_owned(), "x".to_owned())].into());
    assert_eq!(w.plan().actions, before);
}

#[test]
fn rule_12_budgets_follow_the_arithmetic() {
    let most = |w: &World, name: &str| {
        child(w, "PodDisruptionBudget", name).map(|b| b["spec"]["maxUnavailable"].clone())
    };
    let w = World::settled(5, 3, 3);
    assert_eq!(most(&w, "c-meta"), Some(2.into()));
    assert_eq!(most(&w, "c-bookie"), Some(1.into()));
    assert_eq!(most(&w, "c-broker"), Some(1.into()));
    let single = World::settled(1, 1, 1);
    for name in ["c-meta", "c-bookie", "c-broker"] {
        assert_eq!(most(&single, name), None, "{name}: a budget of one only blocks drains");
    }
    let mut under = World::settled(3, 3, 3);
    under.quorum().under = Ok(1);
    under.observed.clean_for_s = 0;
    assert_eq!(most(&under, "c-bookie"), Some(0.into()));
    under.quorum().under = Ok(0);
    under.observed.clean_for_s = 59;
    assert_eq!(most(&under, "c-bookie"), Some(0.into()), "hysteresis");
}

#[test]
fn rule_16_a_newer_operator_changes_no_image() {
    let mut w = World::settled(3, 3, 3);
    let live = child(&w, "StatefulSet", "c-meta").unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "tidemill:0.1.0");
    let mut old = live;
    old["spec"]["template"]["spec"]["containers"][0]["image"] = "tidemill:0.0.9".into();
    w.observed.children.insert(("StatefulSet".into(), "c-meta".into()), old);
    let image = |w: &World| {
        child(w, "StatefulSet", "c-broker").unwrap()["spec"]["template"]["spec"]["containers"][0]["image"]
            .clone()
    };
    assert_eq!(image(&w), "tidemill:0.0.9");
    w.cluster.spec.version = Some("0.2.0".into());
    assert_eq!(image(&w), "tidemill:0.2.0", "until the Cluster opts in");
}

#[test]
fn what_is_not_wished_for_any_more_goes_with_preconditions() {
    let mut w = World::settled(1, 1, 1);
    let stale = serde_json::json!({
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": "c-meta", "uid": "u", "resourceVersion": "9",
            "ownerReferences": [{"uid": "cluster-uid"}],
        },
    });
    w.observed.children.insert(("PodDisruptionBudget".into(), "c-meta".into()), stale.clone());
    let prune = Action::Prune {
        kind: "PodDisruptionBudget".into(),
        name: "c-meta".into(),
        uid: "u".into(),
        version: "9".into(),
    };
    assert_eq!(w.deeds(), [prune]);
    let mut foreign = stale;
    foreign["metadata"]["ownerReferences"] = serde_json::json!([]);
    w.observed.children.insert(("PodDisruptionBudget".into(), "c-meta".into()), foreign);
    assert_eq!(w.deeds(), [], "what is not ours stays");
}

#[test]
fn paused_changes_nothing() {
    let mut w = World::settled(3, 3, 3);
    w.cluster.spec.paused = true;
    let plan = w.plan();
    assert_eq!(plan.verdict.outcome, Outcome::Paused);
    assert!(plan.actions.is_empty() && plan.status.is_none());
}

#[test]
fn rule_13_the_operator_judges_again_what_the_schema_refuses() {
    let refused = |change: fn(&mut World), what: &str| {
        let mut w = World::settled(3, 3, 3);
        change(&mut w);
        let (_, why) = w.stalled();
        assert!(why.contains(what), "{why}");
        assert!(w.plan().actions.is_empty());
    };
    refused(|w| w.cluster.spec.meta.replicas = 2, "1, 3 or 5");
    refused(|w| w.cluster.spec.bookie_pools.clear(), "at least one");
    refused(|w| w.cluster.spec.bookie_pools[0].storage.size = tidemill_crd::Quantity::new("1Mi"), "64Mi");
    refused(
        |w| drop(w.cluster.spec.config.insert("broker.listen".into(), "x".into())),
        "sets this key itself",
    );
    refused(|w| drop(w.cluster.spec.config.insert("nonsense".into(), "x".into())), "ROLE.KEY");
    refused(
        |w| {
            w.cluster.spec.version = Some("1".into());
            w.cluster.spec.image = Some("x:1".into());
        },
        "either",
    );
}
