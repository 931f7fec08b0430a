//! Rules 2, 6, 7 and 17 of the operator.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Operator, Size, apply, cluster, condition, consume_numbers, delete, get, kubectl,
    list, patch, produce_numbers, ready, seen, topic, until,
};

use crate::merge::merged;

const LIMIT: Duration = Duration::from_secs(180);

fn operators(n: u8) -> Result<()> {
    let system = Operator::namespace();
    let name = "deployment/tidemill-operator";
    kubectl(&["scale", name, "-n", system, &format!("--replicas={n}")])?.ok()?;
    until("the operators", LIMIT, || {
        let pods = list(system, "pods", "")?;
        Ok((pods.len() == usize::from(n)).then_some(()))
    })?;
    if n > 0 {
        kubectl(&["rollout", "status", name, "-n", system, "--timeout=120s"])?.ok()?;
    }
    Ok(())
}

/// Other tests need an operator, also when this one fails.
struct Restarted;

impl Drop for Restarted {
    fn drop(&mut self) {
        drop(operators(1));
    }
}

#[test]
fn rule_2_the_absence_of_an_object_deletes_nothing_and_a_deletion_is_taken_back() -> Result<()> {
    let namespace = Namespace::with_cluster("rule2", Size::SMALL)?;
    let ns = namespace.name();
    namespace.add_topic("orders", 2)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=500, LIMIT)?;

    // The object vanishes while nobody looks: its finalizer was taken away by force.
    let restarted = Restarted;
    operators(0)?;
    patch(ns, "topic", "orders", &json!({ "metadata": { "finalizers": null } }))?;
    delete(ns, "topic", "orders", LIMIT)?;
    drop(restarted);
    let passes = Operator::passes()?;
    until("passes", LIMIT, || Ok((Operator::passes()? > passes).then_some(())))?;
    ensure!(consume_numbers(ns, CLUSTER, "orders", LIMIT)?.len() == 500, "the topic went with its object");

    // Deleted in the ordinary way it is a tombstone: refused to clients, and back with its records when it is applied again.
    namespace.add_topic("bills", 2)?;
    produce_numbers(ns, CLUSTER, "bills", 1..=500, LIMIT)?;
    let id = topic_id(ns)?;
    delete(ns, "topic", "bills", LIMIT)?;
    let refused = produce_numbers(ns, CLUSTER, "bills", 501..=502, Duration::from_secs(60));
    ensure!(refused.is_err(), "a deleted topic takes records");
    namespace.add_topic("bills", 2)?;
    ensure!(topic_id(ns)? == id, "it is another topic");
    let found = consume_numbers(ns, CLUSTER, "bills", LIMIT)?;
    ensure!(found == (1..=500).collect(), "{} of 500 records", found.len());
    seen("an object that vanished took nothing along; a deleted one came back with its 500 records")
}

fn topic_id(ns: &str) -> Result<String> {
    let object = get(ns, "topic", "bills")?.context("no topic")?;
    Ok(object["status"]["topicId"].as_str().context("no id")?.to_owned())
}

/// Fields below `f:spec`, or of the metadata but for finalizers, that somebody else than kubectl owns.
fn touched(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
        let manager = entry["manager"].as_str().unwrap_or_default();
        if manager.starts_with("kubectl") {
            continue;
        }
        for (key, below) in entry["fieldsV1"].as_object().into_iter().flatten() {
            let fine = match key.as_str() {
                "f:status" => true,
                "f:metadata" => below.as_object().is_some_and(|m| m.keys().all(|k| k == "f:finalizers")),
                _ => false,
            };
            if !fine {
                found.push(format!("{manager}: {key}: {below}"));
            }
        }
    }
    found
}

#[test]
fn rule_6_the_operator_writes_status_and_finalizers_and_never_a_spec() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("rule6")?;
    let ns = namespace.name();
    // Deleting its volumes gives the Cluster a finalizer; so have the Topic and the group.
    let with_volumes = json!({ "spec": { "storagePolicy": { "whenDeleted": "Delete" } } });
    apply(ns, &merged(&cluster(Size::SMALL), &with_volumes).to_string())?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT * 2)?;
    namespace.add_topic("orders", 2)?;
    apply(
        ns,
        &json!({
            "apiVersion": "tidemill.dev/v1alpha1",
            "kind": "ConsumerGroup",
            "metadata": { "name": "billing" },
            "spec": { "clusterRef": { "name": CLUSTER }, "topics": ["orders"], "deletionPolicy": "Delete" },
        })
        .to_string(),
    )?;
    namespace.wait_ready("consumergroup", "billing", LIMIT)?;
    for (kind, name) in [("cluster", CLUSTER), ("topic", "orders"), ("consumergroup", "billing")] {
        let shown =
            kubectl(&["get", kind, name, "-n", ns, "--show-managed-fields", "-o", "json"])?.ok()?.stdout;
        let object: Value = serde_json::from_str(&shown)?;
        ensure!(object["metadata"]["finalizers"].is_array(), "{kind} {name} has no finalizer");
        let fields = object["metadata"]["managedFields"].as_array().context("no managed fields")?;
        let own = |e: &&Value| e["manager"] == "tidemill-operator-status" && e["subresource"] == "status";
        ensure!(fields.iter().any(|e| own(&e)), "{kind} {name}: nobody owns its status: {fields:?}");
        let touched = touched(&object);
        ensure!(touched.is_empty(), "{kind} {name}: {touched:?}");
    }
    // Effective values are in the status: the manifest says nothing of copies.
    let object = get(ns, "topic", "orders")?.context("no topic")?;
    ensure!(object["spec"]["replication"].is_null(), "{}", object["spec"]);
    ensure!(object["status"]["effective"]["copies"] == "3", "{}", object["status"]);
    seen(
        "managed fields of a Cluster, a Topic and a ConsumerGroup: the operator owns status and finalizers alone",
    )
}

#[test]
fn rule_7_names_of_topics_never_become_names_or_labels_of_objects() -> Result<()> {
    let namespace = Namespace::with_cluster("rule7", Size::SMALL)?;
    let ns = namespace.name();
    let odd = format!("Orders_2026.v1-{}", "x".repeat(220));
    let manifest = merged(&topic("odd", 1), &json!({ "spec": { "topicName": odd } }));
    apply(ns, &manifest.to_string())?;
    namespace.wait_ready("topic", "odd", LIMIT)?;
    produce_numbers(ns, CLUSTER, "odd-not-there", 1..=1, Duration::from_secs(30))
        .err()
        .context("no such topic")?;
    let mut looked = 0;
    let kinds = "statefulsets,services,configmaps,serviceaccounts,poddisruptionbudgets,networkpolicies,\
persistentvolumeclaims,pods,topics.tidemill.dev,clusters.tidemill.dev,leases";
    for item in list(ns, kinds, "")? {
        looked += 1;
        let name = item["metadata"]["name"].to_string();
        let labels = item["metadata"]["labels"].to_string();
        let annotations = item["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let own =
            annotations.iter().filter(|(k, _)| *k != "kubectl.kubernetes.io/last-applied-configuration");
        let text = format!("{name}{labels}{:?}", own.collect::<Vec<_>>());
        ensure!(!text.contains("Orders_2026"), "the topic's name stands in {}", item["metadata"]);
    }
    ensure!(looked > 10, "only {looked} objects");
    seen(format!(
        "a topic name of {} bytes is in no name, label or annotation of {looked} objects",
        odd.len()
    ))
}

#[test]
fn rule_17_a_dead_cluster_does_not_hold_up_the_topics_of_a_live_one() -> Result<()> {
    let dead = Namespace::with_cluster("dead", Size::SMALL)?;
    let live = Namespace::with_cluster("live", Size::SMALL)?;
    // Paused, so that the operator leaves the sets alone; then no broker is left.
    patch(dead.name(), "cluster", CLUSTER, &json!({ "spec": { "paused": true } }))?;
    kubectl(&["scale", "statefulset", &format!("{CLUSTER}-broker"), "-n", dead.name(), "--replicas=0"])?
        .ok()?;
    until("the brokers to go", LIMIT, || Ok(dead.pods("broker")?.is_empty().then_some(())))?;
    let many = |ns: &str, n: usize| -> Result<()> {
        let items: Vec<Value> = (0..n).map(|i| topic(&format!("t{i}"), 1)).collect();
        apply(ns, &json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string())
    };
    many(dead.name(), 300)?;
    many(live.name(), 100)?;
    let are = |ns: &str| -> Result<(usize, usize)> {
        let all = list(ns, "topics", "")?;
        Ok((all.iter().filter(|t| ready(t)).count(), all.len()))
    };
    until("the live Cluster's topics", LIMIT, || {
        let (good, all) = are(live.name())?;
        ensure!(good == 100, "{good} of {all} are Ready");
        Ok(Some(()))
    })?;
    ensure!(are(dead.name())?.0 == 0, "topics of a dead Cluster are Ready");
    until("the finalizers of the dead Cluster's topics", LIMIT, || {
        let all = list(dead.name(), "topics", "")?;
        let bare = all.iter().filter(|t| !t["metadata"]["finalizers"].is_array()).count();
        ensure!(bare == 0, "{bare} have none");
        Ok(Some(()))
    })?;
    // Deletions of the live one go on too, whatever waits for the dead one.
    kubectl(&["delete", "topics", "--all", "-n", dead.name(), "--wait=false"])?.ok()?;
    kubectl(&["delete", "topics", "--all", "-n", live.name(), "--wait=false"])?.ok()?;
    until("the live Cluster's deletions", LIMIT, || {
        let left = list(live.name(), "topics", "")?.len();
        ensure!(left == 0, "{left} topics are left");
        Ok(Some(()))
    })?;
    let waiting = list(dead.name(), "topics", "")?;
    ensure!(waiting.len() == 300, "{} of 300 deletions wait for the dead Cluster", waiting.len());
    until("a reason", LIMIT, || {
        let all = list(dead.name(), "topics", "")?;
        let says: BTreeSet<String> = all.iter().filter_map(|t| Some(condition(t, "Ready")?.1)).collect();
        let known = ["WaitingForCluster", "ClusterUnavailable"].map(str::to_owned);
        ensure!(!says.is_empty() && says.iter().all(|r| known.contains(r)), "{says:?}");
        Ok(Some(()))
    })?;
    // They end with their Cluster (rule 1).
    delete(dead.name(), "cluster", CLUSTER, LIMIT)?;
    until("the dead Cluster's topics", LIMIT, || {
        let left = list(dead.name(), "topics", "")?.len();
        ensure!(left == 0, "{left} topics are left");
        Ok(Some(()))
    })?;
    seen(
        "300 topics of a dead Cluster beside 100 of a live one: made and deleted there, kept here until the Cluster went",
    )
}
