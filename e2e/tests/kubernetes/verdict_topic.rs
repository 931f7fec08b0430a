//! The verdict table for Topics: each row reached for real.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Operator, Size, apply, cluster, condition, get, kubectl, patch, ready, topic, until,
};

use crate::verdict::{DONE, NEVER, PAUSED, REJECTED, RETRYING, Stopped, UNSEEN, WORKING, judge};

const LIMIT: Duration = Duration::from_secs(240);

#[test]
fn every_row_of_the_verdict_table_is_judged_alike_for_topics() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("verdicts-topic")?;
    let ns = namespace.name();
    let says = |row, what: &str| judge(ns, "topic", "orders", what, row);

    let stopped = Stopped::new()?;
    apply(ns, &topic("orders", 1).to_string())?;
    says(&NEVER, "never looked at")?;
    stopped.end()?;
    says(&WORKING, "its Cluster is not there")?;
    apply(ns, &cluster(Size::SMALL).to_string())?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    says(&DONE, "done")?;

    patch(ns, "topic", "orders", &json!({ "spec": { "paused": true } }))?;
    until("the pause to be seen", LIMIT, || {
        let object = get(ns, "topic", "orders")?.unwrap_or_default();
        Ok(condition(&object, "Paused").filter(|_| ready(&object)))
    })?;
    says(&PAUSED, "paused")?;
    patch(ns, "topic", "orders", &json!({ "spec": { "paused": false } }))?;
    says(&DONE, "done again")?;

    let stopped = Stopped::new()?;
    patch(ns, "topic", "orders", &json!({ "spec": { "partitions": 2 } }))?;
    says(&UNSEEN, "changed while the operator is down")?;
    stopped.end()?;
    says(&DONE, "grown")?;

    patch(ns, "topic", "orders", &json!({ "spec": { "offload": { "enabled": true } } }))?;
    says(&REJECTED, "asks for what this version cannot do")?;
    let why = get(ns, "topic", "orders")?.and_then(|object| condition(&object, "Stalled"));
    let why = why.context("no reason")?.2;
    ensure!(why.contains("spec.offload"), "it does not name the field: {why}");
    patch(ns, "topic", "orders", &json!({ "spec": { "offload": null } }))?;
    says(&DONE, "put right")?;

    without_brokers(&namespace, || {
        patch(ns, "topic", "orders", &json!({ "spec": { "partitions": 3 } }))?;
        says(&RETRYING, "no broker answers")
    })?;
    says(&DONE, "a broker is back")
}

/// Does something while the Cluster has no broker.
fn without_brokers(namespace: &Namespace, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let ns = namespace.name();
    // Paused, or the operator would bring it back.
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "paused": true } }))?;
    until("the pause to be seen", LIMIT, || {
        let object = get(ns, "cluster", CLUSTER)?.unwrap_or_default();
        Ok(condition(&object, "Paused"))
    })?;
    let set = format!("{CLUSTER}-broker");
    kubectl(&["scale", "statefulset", &set, "-n", ns, "--replicas=0"])?.ok()?;
    until("the broker's end", LIMIT, || Ok(namespace.pods("broker")?.is_empty().then_some(())))?;
    work()?;
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "paused": false } }))?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT).map(drop)
}
