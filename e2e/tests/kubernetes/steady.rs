//! Rule 3: an operator that has nothing to do writes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tidemill_e2e::kube::{CLUSTER, Namespace, Operator, Size, kubectl, produce_numbers, seen, until};

/// Everything that the operator may write, but for its own lease.
const KINDS: &str = "clusters.tidemill.dev,statefulsets,services,configmaps,serviceaccounts,poddisruptionbudgets,\
networkpolicies,persistentvolumeclaims,pods";
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn restarts_and_forced_syncs_write_nothing_also_under_traffic() -> Result<()> {
    let namespace = Namespace::with_cluster("steady", Size::SMALL)?;
    let ns = namespace.name();
    namespace.create_topic(CLUSTER, "orders", 4)?;
    let before = settled(&namespace)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=5000, LIMIT)?;

    // A sync that a person or a tool forces: an annotation that means nothing to the operator.
    let syncs = 20;
    let mut cluster = String::new();
    for n in 0..syncs {
        let passes = Operator::passes()?;
        let annotation = format!("example.org/sync={n}");
        kubectl(&["annotate", "cluster", CLUSTER, "-n", ns, "--overwrite", &annotation])?.ok()?;
        cluster = versions(ns)?.remove(&format!("Cluster {CLUSTER}")).context("the Cluster is gone")?;
        until("a pass", LIMIT, || Ok((Operator::passes()? > passes).then_some(())))?;
    }
    // A new process lists and reconciles everything.
    let restarts = 2;
    for _ in 0..restarts {
        Operator::restart()?;
    }
    let mut after = versions(ns)?;
    let last = after.insert(format!("Cluster {CLUSTER}"), before[&format!("Cluster {CLUSTER}")].clone());
    ensure!(last == Some(cluster), "the Cluster was written after the last annotation");
    let moved: Vec<&String> = before.keys().filter(|key| after.get(*key) != before.get(*key)).collect();
    ensure!(moved.is_empty(), "written without need: {moved:?}");
    ensure!(before.len() == after.len(), "{} objects before, {} after", before.len(), after.len());
    seen(format!(
        "{} objects, 5 000 records, {syncs} forced syncs and {restarts} restarts of the operator: no resourceVersion moved",
        before.len()
    ))
}

/// Kind and name of every object with its resourceVersion. The pods of clients are not the operator's.
fn versions(namespace: &str) -> Result<BTreeMap<String, String>> {
    let all =
        kubectl(&["get", KINDS, "-n", namespace, "-l", "tidemill.dev/cluster", "-o", "json"])?.ok()?.stdout;
    let cluster = kubectl(&["get", "cluster", CLUSTER, "-n", namespace, "-o", "json"])?.ok()?.stdout;
    let (all, cluster): (Value, Value) = (serde_json::from_str(&all)?, serde_json::from_str(&cluster)?);
    let mut versions = BTreeMap::new();
    for item in all["items"].as_array().context("no list")?.iter().chain([&cluster]) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        versions.insert(
            format!("{} {}", text(&item["kind"]), text(&item["metadata"]["name"])),
            text(&item["metadata"]["resourceVersion"]),
        );
    }
    ensure!(versions.len() > 10, "only {versions:?}");
    Ok(versions)
}

/// The versions, once two readings with a pass in between are equal.
fn settled(namespace: &Namespace) -> Result<BTreeMap<String, String>> {
    until("the objects to settle", LIMIT, || {
        let (first, passes) = (versions(namespace.name())?, Operator::passes()?);
        let annotation = format!("example.org/look={passes}");
        kubectl(&["annotate", "service", CLUSTER, "-n", namespace.name(), "--overwrite", &annotation])?
            .ok()?;
        until("a pass", LIMIT, || Ok((Operator::passes()? > passes).then_some(())))?;
        let second = versions(namespace.name())?;
        let key = format!("Service {CLUSTER}");
        let same = first
            .iter()
            .filter(|(name, _)| **name != key)
            .all(|(name, version)| second.get(name) == Some(version));
        Ok((same && first.len() == second.len()).then_some(second))
    })
}
