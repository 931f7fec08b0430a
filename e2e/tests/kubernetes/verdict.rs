//! The verdict table: each row reached for real, and what kstatus and Argo CD make of it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Operator, Size, apply, argo, condition, get, kstatus, kubectl, patch, ready, seen,
    until,
};

const LIMIT: Duration = Duration::from_secs(120);

/// One row: Ready, Reconciling, Stalled, kstatus, Argo CD, and whether the operator has looked at the newest generation.
pub(crate) struct Row(
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
    &'static str,
    &'static str,
    bool,
);

pub(crate) const NEVER: Row = Row("Unknown", None, None, "InProgress", "Progressing", false);
pub(crate) const WORKING: Row = Row("False", Some("True"), None, "InProgress", "Progressing", true);
/// A failure that is tried again: the same conditions, and the message says what failed.
pub(crate) const RETRYING: Row = WORKING;
pub(crate) const DONE: Row = Row("True", None, None, "Current", "Healthy", true);
pub(crate) const REJECTED: Row = Row("False", None, Some("True"), "Failed", "Degraded", true);
pub(crate) const PAUSED: Row = Row("True", None, None, "Current", "Suspended", true);
pub(crate) const UNSEEN: Row = Row("True", None, None, "InProgress", "Progressing", false);

pub(crate) fn judge(ns: &str, kind: &str, name: &str, what: &str, row: &Row) -> Result<()> {
    let object = until(&format!("{kind} {name}, {what}"), LIMIT, || {
        let object = get(ns, kind, name)?.context("it is not there")?;
        let status = |name: &str| condition(&object, name).map(|(status, ..)| status);
        let is = (status("Ready"), status("Reconciling"), status("Stalled"));
        let want = (Some(row.0.to_owned()), row.1.map(str::to_owned), row.2.map(str::to_owned));
        ensure!(is == want, "conditions are {is:?}, not {want:?}: {}", object["status"]);
        let looked = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        ensure!(looked == row.5, "observedGeneration: {}", object["status"]);
        Ok(Some(object))
    })?;
    let verdicts = (kstatus(&object)?, argo(&script(kind), &object)?);
    ensure!(
        verdicts == (row.3.to_owned(), row.4.to_owned()),
        "{kind}, {what}: kstatus and Argo CD say {verdicts:?}, not {:?}\n{}",
        (row.3, row.4),
        object["status"]
    );
    let reason = condition(&object, "Ready").unwrap_or_default().1;
    seen(format!("{kind}, {what}: Ready={} {reason}; kstatus {}, Argo CD {}", row.0, row.3, row.4))
}

fn script(kind: &str) -> String {
    format!("examples/argocd/health/{kind}.lua")
}

fn operators(n: u8) -> Result<()> {
    let system = Operator::namespace();
    let name = "deployment/tidemill-operator";
    kubectl(&["scale", name, "-n", system, &format!("--replicas={n}")])?.ok()?;
    if n == 0 {
        return until("the operator's end", LIMIT, || {
            let left = kubectl(&["get", "pods", "-n", system, "-o", "name"])?.ok()?.stdout;
            Ok(left.trim().is_empty().then_some(()))
        });
    }
    kubectl(&["rollout", "status", name, "-n", system, "--timeout=120s"])?.ok().map(drop)
}

/// While this is there no operator runs; then as many as before.
pub(crate) struct Stopped {
    before: u8,
}

impl Stopped {
    pub(crate) fn new() -> Result<Self> {
        let stopped = Self { before: running()? };
        operators(0)?;
        Ok(stopped)
    }

    pub(crate) fn end(self) -> Result<()> {
        operators(self.before)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Other tests need it, also when this one has failed. At an ordinary end it runs already.
        drop(operators(self.before));
    }
}

#[test]
fn every_row_of_the_verdict_table_is_judged_alike() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("verdicts")?;
    let ns = namespace.name();
    let cluster = tidemill_e2e::kube::cluster(Size::SMALL);

    let stopped = Stopped::new()?;
    apply(ns, &cluster.to_string())?;
    judge(ns, "cluster", CLUSTER, "never looked at", &NEVER)?;
    stopped.end()?;
    judge(ns, "cluster", CLUSTER, "starting", &WORKING)?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT * 2)?;
    judge(ns, "cluster", CLUSTER, "done", &DONE)?;
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "paused": true } }))?;
    until("the pause to be seen", LIMIT, || {
        let object = get(ns, "cluster", CLUSTER)?.unwrap_or_default();
        Ok(condition(&object, "Paused").filter(|_| ready(&object)))
    })?;
    judge(ns, "cluster", CLUSTER, "paused", &PAUSED)?;
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "paused": false } }))?;
    judge(ns, "cluster", CLUSTER, "done again", &DONE)?;

    let stopped = Stopped::new()?;
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "brokers": { "replicas": 2 } } }))?;
    judge(ns, "cluster", CLUSTER, "changed while the operator is down", &UNSEEN)?;
    stopped.end()?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;

    // A key that the definition cannot know to be the operator's own.
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "config": { "broker.listen": "0.0.0.0:1" } } }))?;
    judge(ns, "cluster", CLUSTER, "a spec that no rule of the definition refuses", &REJECTED)?;
    let says =
        get(ns, "cluster", CLUSTER)?.and_then(|object| condition(&object, "Stalled")).unwrap_or_default().2;
    ensure!(says.contains("spec.config[broker.listen]"), "it does not name the field: {says}");
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "config": { "broker.listen": null } } }))?;
    judge(ns, "cluster", CLUSTER, "put right", &DONE)
}

fn running() -> Result<u8> {
    let object: Value =
        get(Operator::namespace(), "deployment", "tidemill-operator")?.context("no operator")?;
    u8::try_from(object["spec"]["replicas"].as_u64().unwrap_or(1)).context("replicas")
}
