//! From nothing to the first record, as a person would do it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tidemill_e2e::kube::{Forward, Job, Namespace, Operator, checkout, kubectl, kubectl_with, seen};
use tidemill_e2e::tidemill;

const LIMIT: Duration = Duration::from_secs(240);

#[test]
fn from_helm_install_to_the_first_record() -> Result<()> {
    let operator = Operator::installed()?;
    let namespace = Namespace::create("quickstart")?;
    let ns = namespace.name();
    let started = Instant::now();
    let folder = checkout("examples/quickstart").display().to_string();
    kubectl(&["apply", "-n", ns, "-f", &folder])?.ok()?;
    let cluster = only(ns, "cluster")?;
    namespace.wait_ready("cluster", &cluster, LIMIT)?;
    let serving = started.elapsed();
    let name = only(ns, "topic")?;
    let name = name.as_str();
    namespace.wait_ready("topic", name, LIMIT)?;
    Job::start(ns, "produce", &cluster, &["produce", name, "--file=/in/lines"], "first\n")?.finish(LIMIT)?;
    let read = Job::start(ns, "consume", &cluster, &["consume", name, "--until-end"], "")?.finish(LIMIT)?;
    ensure!(read.lines().any(|line| line == "first"), "{read}");
    let record = started.elapsed();
    seen(format!(
        "helm install {:.1} s, kubectl apply to a Ready Cluster {:.1} s, to a record produced and consumed by pods {:.1} s: {:.1} s in all",
        operator.took.as_secs_f64(),
        serving.as_secs_f64(),
        record.as_secs_f64(),
        (operator.took + record).as_secs_f64()
    ))?;

    let forwarded = Forward::start(ns, &format!("service/{cluster}"))?;
    let server = format!("--server={}", forwarded.url());
    tidemill(&["topic", "describe", name, &server], b"", LIMIT)?.ok().context("through the port-forward")?;
    seen("described through a port-forward from outside of the cluster")
}

/// The name of the only object of a kind.
fn only(namespace: &str, kind: &str) -> Result<String> {
    let all: Value =
        serde_json::from_str(&kubectl(&["get", kind, "-n", namespace, "-o", "json"])?.ok()?.stdout)?;
    let items = all["items"].as_array().context("no list")?;
    ensure!(items.len() == 1, "the quickstart has {} objects of kind {kind}", items.len());
    Ok(items[0]["metadata"]["name"].as_str().context("no name")?.to_owned())
}

#[test]
fn charts_pass_lint_and_leave_no_difference_behind() -> Result<()> {
    Operator::installed()?;
    for chart in ["tidemill-crds", "tidemill-operator"] {
        let place = checkout("charts").join(chart).display().to_string();
        Operator::helm(&["lint", "--strict", &place])?.ok()?;
    }
    let crds = checkout("crds").display().to_string();
    let same = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", &crds, "-o", "json"];
    let applied: Value = serde_json::from_str(&kubectl(&same)?.ok()?.stdout)?;
    let items = applied["items"].as_array().cloned().unwrap_or_else(|| vec![applied]);
    ensure!(!items.is_empty(), "no definitions in {crds}");
    for item in &items {
        let name = item["metadata"]["name"].as_str().context("no name")?;
        let there = kubectl(&["get", "customresourcedefinition", name, "-o", "json"])?.ok()?.stdout;
        let there: Value = serde_json::from_str(&there)?;
        ensure!(there["spec"] == item["spec"], "{name}: applying crds/ again would change it");
    }
    let diff = kubectl_with(&["diff", "--server-side", "--force-conflicts", "-f", &crds], b"", LIMIT)?;
    seen(format!("{} definitions, lint clean; kubectl diff ends with {:?}", items.len(), diff.code))
}
