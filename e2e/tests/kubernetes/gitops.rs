//! A GitOps pipeline: Flux's two controllers reconcile the example out of a bucket.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    Namespace, Operator, checkout, condition, consume_numbers, get, kubectl, produce_numbers, ready, seen,
    until,
};

use crate::flux::Flux;

const LIMIT: Duration = Duration::from_secs(300);
/// The example, in the checkout and in the bucket.
const EXAMPLE: &str = "examples/kustomize/base";
/// Its Cluster and its Topic.
const CLUSTER: &str = "demo";
const TOPIC: &str = "orders";

/// The example's Topic with something replaced.
fn topic(from: &str, to: &str) -> Result<String> {
    let path = checkout(EXAMPLE).join("topic.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    ensure!(text.contains(from), "{} has no {from:?}", path.display());
    Ok(text.replace(from, to))
}

/// Puts the whole example into the bucket.
fn put_example(flux: &Flux) -> Result<()> {
    for entry in std::fs::read_dir(checkout(EXAMPLE))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        flux.put(&format!("{EXAMPLE}/{name}"), &std::fs::read_to_string(entry.path())?)?;
    }
    Ok(())
}

#[test]
#[ignore = "builds and runs Flux: cargo xtask e2e --gitops"]
fn the_example_is_applied_changed_pruned_and_reverted_from_a_bucket() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("gitops")?;
    let ns = namespace.name();
    let flux = Flux::start(ns)?;
    put_example(&flux)?;
    flux.point(ns, EXAMPLE)?;
    let all = applied_and_changed(&flux, ns)
        .and_then(|()| pruned_and_reverted(&flux, ns))
        .and_then(|()| refused(&flux, ns))
        .and_then(|()| rejected(&flux, ns))
        .and_then(|()| quiet(&flux, ns));
    all.with_context(|| namespace.describe())
}

fn object(ns: &str) -> Result<Value> {
    get(ns, "topic", TOPIC)?.context("the Topic is gone")
}

fn applied_and_changed(flux: &Flux, ns: &str) -> Result<()> {
    flux.synced(ns, true)?;
    let cluster = get(ns, "cluster", CLUSTER)?.context("no Cluster")?;
    ensure!(ready(&cluster) && ready(&object(ns)?), "Flux was satisfied too early: {}", cluster["status"]);
    produce_numbers(ns, CLUSTER, TOPIC, 1..=500, LIMIT)?;
    flux.put(&format!("{EXAMPLE}/topic.yaml"), &topic("partitions: 8", "partitions: 9")?)?;
    flux.synced(ns, true)?;
    let changed = object(ns)?;
    ensure!(changed["status"]["partitions"] == 9 && ready(&changed), "{}", changed["status"]);
    seen(
        "the example applied from a bucket, Flux satisfied only when Cluster and Topic were Ready; a change rolled out",
    )
}

fn pruned_and_reverted(flux: &Flux, ns: &str) -> Result<()> {
    let id = object(ns)?["status"]["topicId"].clone();
    let kustomization = std::fs::read_to_string(checkout(EXAMPLE).join("kustomization.yaml"))?;
    let without = kustomization.replace("  - topic.yaml\n", "");
    ensure!(without != kustomization, "the example names no topic.yaml");
    flux.put(&format!("{EXAMPLE}/kustomization.yaml"), &without)?;
    flux.remove(&format!("{EXAMPLE}/topic.yaml"))?;
    flux.synced(ns, true)?;
    until("the Topic to be pruned", LIMIT, || Ok(get(ns, "topic", TOPIC)?.is_none().then_some(())))?;
    flux.put(&format!("{EXAMPLE}/kustomization.yaml"), &kustomization)?;
    flux.put(&format!("{EXAMPLE}/topic.yaml"), &topic("partitions: 8", "partitions: 9")?)?;
    flux.synced(ns, true)?;
    let back = object(ns)?;
    ensure!(back["status"]["topicId"] == id, "another topic came back: {}", back["status"]);
    let found = consume_numbers(ns, CLUSTER, TOPIC, LIMIT)?;
    ensure!(found == (1..=500).collect(), "{} of 500 records after prune and revert", found.len());
    seen("taken out of the bucket: pruned; put back: the same topic with its 500 records")
}

/// What the definition refuses.
fn refused(flux: &Flux, ns: &str) -> Result<()> {
    flux.put(&format!("{EXAMPLE}/topic.yaml"), &topic("partitions: 8", "partitions: 7")?)?;
    let says = flux.synced(ns, false)?;
    ensure!(says.contains("partitions only grow"), "Flux says {says}");
    ensure!(ready(&object(ns)?), "a refused manifest did something");
    seen(format!("a manifest that the definition refuses: {says}"))
}

/// What only the operator can refuse.
fn rejected(flux: &Flux, ns: &str) -> Result<()> {
    let wants = topic("partitions: 8", "partitions: 9\n  offload: { enabled: true }")?;
    flux.put(&format!("{EXAMPLE}/topic.yaml"), &wants)?;
    let says = flux.synced(ns, false)?;
    ensure!(says.contains("Failed") && says.contains(TOPIC), "Flux says {says}");
    let why = condition(&object(ns)?, "Stalled").context("not Stalled")?.2;
    flux.put(&format!("{EXAMPLE}/topic.yaml"), &topic("partitions: 8", "partitions: 9")?)?;
    flux.synced(ns, true)?;
    seen(format!("a manifest that the operator rejects ({why}): {says}; put right: well again"))
}

fn quiet(flux: &Flux, ns: &str) -> Result<()> {
    // The budget opens a minute after all copies are there: that is no answer to a sync.
    until("the bookies' budget to open", LIMIT, || {
        let budget = get(ns, "poddisruptionbudget", &format!("{CLUSTER}-bookie"))?.context("no budget")?;
        Ok((budget["spec"]["maxUnavailable"] == 1).then_some(()))
    })?;
    let topic = object(ns)?["metadata"]["resourceVersion"].clone();
    let before = written(ns)?;
    let rounds = 100;
    for _ in 0..rounds {
        flux.synced(ns, true)?;
    }
    let after = written(ns)?;
    let moved: Vec<_> = before.iter().filter(|(name, was)| after.get(*name) != Some(was)).collect();
    ensure!(moved.is_empty() && before.len() == after.len(), "{rounds} forced syncs wrote: {moved:?}");
    ensure!(object(ns)?["metadata"]["resourceVersion"] == topic, "{rounds} forced syncs wrote the Topic");
    seen(format!("{rounds} forced syncs: not one of {} objects was written", before.len()))
}

/// Everything about the objects of the example that somebody writes on purpose: what is in `status`, such as how many pods
/// are ready, moves by itself.
fn written(ns: &str) -> Result<BTreeMap<String, Value>> {
    let kinds = "clusters.tidemill.dev,topics.tidemill.dev,statefulsets,services,configmaps,serviceaccounts,\
poddisruptionbudgets,networkpolicies,persistentvolumeclaims";
    let all = kubectl(&["get", kinds, "-n", ns, "-o", "json", "--show-managed-fields"])?.ok()?.stdout;
    let all: Value = serde_json::from_str(&all)?;
    let mut written = BTreeMap::new();
    for item in all["items"].as_array().context("no list")? {
        let meta = &item["metadata"];
        // What a controller of Kubernetes made may have none.
        let fields = meta["managedFields"].as_array().into_iter().flatten();
        let fields: Vec<&Value> = fields.filter(|entry| entry["subresource"] != "status").collect();
        let name = format!("{} {}", item["kind"], meta["name"]);
        let parts =
            json!([meta["generation"], meta["labels"], meta["annotations"], meta["finalizers"], fields]);
        written.insert(name, parts);
    }
    ensure!(written.len() > 15, "only {:?}", written.keys());
    Ok(written)
}
