//! Rules 1 and 2: deletion always comes to an end.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Operator, Size, apply, cluster, condition, consume_numbers, delete, kubectl, list,
    produce_numbers, seen, together, topic, until,
};

const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn a_cluster_that_is_deleted_and_applied_again_has_its_records() -> Result<()> {
    let namespace = Namespace::with_cluster("again", Size::SMALL)?;
    let ns = namespace.name();
    namespace.create_topic(CLUSTER, "orders", 2)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=1000, LIMIT)?;
    delete(ns, "cluster", CLUSTER, LIMIT)?;
    until("the pods to go", LIMIT, || {
        let pods = list(ns, "pods", "tidemill.dev/cluster")?;
        Ok(pods.is_empty().then_some(()))
    })?;
    ensure!(
        list(ns, "persistentvolumeclaims", "")?.len() == 4,
        "volumes went with a Cluster that retains them"
    );
    apply(ns, &cluster(Size::SMALL).to_string())?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    let found = consume_numbers(ns, CLUSTER, "orders", LIMIT)?;
    ensure!(found == (1..=1000).collect(), "{} of 1000 records are there", found.len());
    seen("1 000 records, Cluster deleted, its 4 volumes kept, applied again: all records")
}

#[test]
fn a_cluster_that_says_so_takes_its_volumes_along() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("volumes")?;
    let ns = namespace.name();
    let mut manifest = cluster(Size::SMALL);
    manifest["spec"]["storagePolicy"] = json!({ "whenDeleted": "Delete" });
    apply(ns, &manifest.to_string())?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    delete(ns, "cluster", CLUSTER, LIMIT)?;
    until("the volumes to go", LIMIT, || {
        let left = list(ns, "persistentvolumeclaims", "")?;
        ensure!(left.is_empty(), "{} claims are left", left.len());
        Ok(Some(()))
    })?;
    seen("whenDeleted: Delete: no claim is left")
}

/// Topics that go with their Cluster.
const TOPICS: usize = 50;

/// What is deleted first.
#[derive(Clone, Copy)]
enum First {
    /// Everything at once, by the namespace.
    Namespace,
    /// The Topics, then the Cluster.
    Topics,
    /// The Cluster, then the Topics.
    Cluster,
}

#[test]
fn a_namespace_with_fifty_topics_goes_away_also_with_the_cluster_dead() -> Result<()> {
    for dead in [false, true] {
        goes_away(First::Namespace, dead)?;
    }
    Ok(())
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn fifty_topics_and_their_cluster_go_away_in_every_order() -> Result<()> {
    for first in [First::Topics, First::Cluster] {
        for dead in [false, true] {
            goes_away(first, dead)?;
        }
    }
    Ok(())
}

fn goes_away(first: First, dead: bool) -> Result<()> {
    let namespace = Namespace::with_cluster("gone", Size::SMALL)?;
    let ns = namespace.name().to_owned();
    apply(&ns, &together((0..TOPICS).map(|n| topic(&format!("orders-{n}"), 1))).to_string())?;
    namespace.wait_topics(TOPICS, LIMIT)?;
    if dead {
        namespace.kill_data_plane()?;
    }
    let started = Instant::now();
    let topics = || kubectl(&["delete", "topics", "--all", "-n", &ns, "--wait=false"])?.ok();
    let how = match first {
        First::Namespace => "the namespace",
        First::Topics => {
            topics()?;
            if dead {
                waits_and_says_so(&ns)?;
            } else {
                none(&ns, "topics")?;
            }
            delete(&ns, "cluster", CLUSTER, LIMIT)?;
            none(&ns, "topics")?;
            "Topics, Cluster, namespace"
        }
        First::Cluster => {
            delete(&ns, "cluster", CLUSTER, LIMIT)?;
            topics()?;
            none(&ns, "topics")?;
            "Cluster, Topics, namespace"
        }
    };
    namespace.delete(LIMIT)?;
    let plane = if dead { "without a single pod" } else { "that serves" };
    seen(format!(
        "a Cluster {plane} and its {TOPICS} Topics, deleted as {how}: gone {:.1} s after the first deletion",
        started.elapsed().as_secs_f64()
    ))
}

fn none(ns: &str, kind: &str) -> Result<()> {
    until(&format!("the end of all {kind}"), LIMIT, || {
        let left = list(ns, kind, "")?;
        ensure!(left.is_empty(), "{} are left, the first is {}", left.len(), left[0]["status"]);
        Ok(Some(()))
    })
}

/// A tombstone cannot be made without a data plane: the deletion is tried again, and that shows.
fn waits_and_says_so(ns: &str) -> Result<()> {
    until("the Topics to say why they wait", LIMIT, || {
        let left = list(ns, "topics", "")?;
        ensure!(left.len() == TOPICS, "{} of {TOPICS} are left", left.len());
        let shown = left.iter().filter(|topic| {
            condition(topic, "Reconciling").is_some_and(|(status, ..)| status == "True")
                && condition(topic, "Ready").is_some_and(|(.., message)| message.contains("tried again"))
        });
        let shown = shown.count();
        ensure!(shown == TOPICS, "{shown} of {TOPICS} say so: {}", left[0]["status"]);
        Ok(Some(()))
    })
}
