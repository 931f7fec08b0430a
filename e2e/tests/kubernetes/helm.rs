//! Both charts are upgraded and rolled back under a Cluster that serves.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Operator, Size, checkout, get, kubectl, list, produce_numbers, ready, seen, until,
};

const LIMIT: Duration = Duration::from_secs(120);
const CRDS: &str = "tidemill-crds";
const OPERATOR: &str = "tidemill-operator";

#[test]
fn both_charts_are_upgraded_and_rolled_back_and_no_pod_of_a_cluster_moves() -> Result<()> {
    let namespace = Namespace::with_cluster("helm", Size::SMALL)?;
    let ns = namespace.name();
    namespace.add_topic("orders", 1)?;
    let pods = uids(ns)?;
    let before = [revision(CRDS)?, revision(OPERATOR)?];

    for (chart, more) in
        [(CRDS, &[][..]), (OPERATOR, &["--set", "log.format=text", "--set", "replicas=2"][..])]
    {
        let place = checkout("charts").join(chart).display().to_string();
        let mut args = vec!["upgrade", chart, place.as_str(), "--reuse-values"];
        args.extend(more);
        helm(&args)?;
    }
    let deployment = deployment()?;
    ensure!(deployment["spec"]["replicas"] == 2, "the new values are not there: {}", deployment["spec"]);
    still_serves(&namespace)?;

    for (chart, revision) in [(OPERATOR, before[1]), (CRDS, before[0])] {
        helm(&["rollback", chart, &revision.to_string()])?;
    }
    let after = self::deployment()?;
    ensure!(after["spec"]["replicas"] == 1, "the old values are not back: {}", after["spec"]);
    still_serves(&namespace)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=100, LIMIT)?;
    ensure!(uids(ns)? == pods, "a pod of the Cluster was replaced");
    seen(format!(
        "both charts upgraded with other values and rolled back: {} pods of a Cluster stayed as they were, it was Ready",
        pods.len()
    ))
}

/// A change after an upgrade is carried out by whoever leads now.
fn still_serves(namespace: &Namespace) -> Result<()> {
    let ns = namespace.name();
    let passes = until("the operators to answer", LIMIT, || Operator::passes().map(Some))?;
    let mark = format!("example.org/look={}", uuid::Uuid::new_v4());
    kubectl(&["annotate", "cluster", CLUSTER, "-n", ns, "--overwrite", &mark])?.ok()?;
    until("a pass", LIMIT, || Ok((Operator::passes()? != passes).then_some(())))?;
    let cluster = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
    ensure!(ready(&cluster), "{}", cluster["status"]);
    for topic in list(ns, "topics", "")? {
        ensure!(ready(&topic), "{}", topic["status"]);
    }
    Ok(())
}

fn helm(args: &[&str]) -> Result<()> {
    let mut all = args.to_vec();
    all.extend(["--namespace", Operator::namespace(), "--wait", "--timeout=3m"]);
    Operator::helm(&all)?.ok().map(drop)
}

/// The newest revision of a release.
fn revision(release: &str) -> Result<u64> {
    let args = ["history", release, "--namespace", Operator::namespace(), "--max=1", "--output=json"];
    let all: Value = serde_json::from_str(&Operator::helm(&args)?.ok()?.stdout)?;
    all[0]["revision"].as_u64().with_context(|| format!("{release}: {all}"))
}

fn deployment() -> Result<Value> {
    get(Operator::namespace(), "deployment", OPERATOR)?.context("no operator")
}

fn uids(ns: &str) -> Result<Vec<String>> {
    let mut uids = Vec::new();
    for pod in list(ns, "pods", "tidemill.dev/cluster")? {
        uids.push(pod["metadata"]["uid"].as_str().context("a pod without a uid")?.to_owned());
    }
    uids.sort();
    Ok(uids)
}
