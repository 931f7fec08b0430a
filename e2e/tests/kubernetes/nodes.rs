//! Nodes are drained, and break for ever.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use serde_json::Value;
use tidemill_e2e::kube::{
    CLUSTER, Job, Namespace, Size, condition, consume_numbers, drain, kill_node, kubectl, list,
    produce_numbers, seen, start_node, uncordon, until,
};

use crate::kills::summary;

const LIMIT: Duration = Duration::from_secs(300);

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn nodes_are_drained_one_by_one_under_load_and_budgets_hold() -> Result<()> {
    let namespace = Namespace::with_cluster("drain", Size::SAFE)?;
    let ns = namespace.name();
    let verify = Job::start(ns, "verify", CLUSTER, &["verify", "--duration=180s", "--rate=300"], "")?;
    until("the load", LIMIT, || Ok((verify.phase()? == "Running").then_some(())))?;
    let busy = node_of(ns, "verify")?;
    let nodes: Vec<String> = list(ns, "nodes", "")?
        .iter()
        .filter_map(|node| node["metadata"]["name"].as_str().map(str::to_owned))
        .filter(|node| *node != busy)
        .collect();
    ensure!(!nodes.is_empty(), "a cluster of one node has nowhere to drain to");
    let mut away = [0; 3];
    for node in &nodes {
        let drained = drain_watched(&namespace, node, &mut away);
        uncordon(node)?;
        drained?;
        namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    }
    // What budgets are for: never more away than the quorum and the copies bear.
    ensure!(away.iter().all(|most| *most <= 1), "most {ROLES:?} away at once: {away:?}");
    ensure!(away.iter().sum::<usize>() > 0, "no pod had to move");
    let report = verify.finish(LIMIT)?;
    seen(format!(
        "{} nodes drained one after the other under verify, most {ROLES:?} away at once {away:?}: {}",
        nodes.len(),
        summary(&report)
    ))
}

const ROLES: [&str; 3] = ["meta", "bookie", "broker"];

/// Drains a node and notes how many pods of each role were not Ready at once.
fn drain_watched(namespace: &Namespace, node: &str, away: &mut [usize; 3]) -> Result<()> {
    let wished = [Size::SAFE.metas, Size::SAFE.bookies, Size::SAFE.brokers];
    thread::scope(|scope| {
        let work = scope.spawn(|| drain(node, LIMIT));
        while !work.is_finished() {
            let pods = list(namespace.name(), "pods", "tidemill.dev/cluster")?;
            for ((role, wished), most) in ROLES.iter().zip(wished).zip(away.iter_mut()) {
                let ready = pods.iter().filter(|pod| serves(pod, role)).count();
                *most = usize::from(wished).saturating_sub(ready).max(*most);
            }
            thread::park_timeout(Duration::from_millis(200));
        }
        work.join().map_err(|_| anyhow!("the drain panicked"))?
    })
}

fn serves(pod: &Value, role: &str) -> bool {
    let labels = &pod["metadata"]["labels"];
    labels["app.kubernetes.io/component"] == role
        && pod["metadata"]["deletionTimestamp"].is_null()
        && condition(pod, "Ready").is_some_and(|(status, ..)| status == "True")
}

#[test]
#[ignore = "breaks a node: cargo xtask e2e --full"]
fn a_node_that_breaks_for_ever_costs_no_record() -> Result<()> {
    let namespace = Namespace::with_cluster("broken", Size::SAFE)?;
    let ns = namespace.name();
    namespace.create_topic(CLUSTER, "orders", 4)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=2000, LIMIT)?;
    let last = list(ns, "nodes", "")?.len() - 1;
    ensure!(last > 0, "a cluster of one node has nothing left");
    let node = format!("node-{last}");
    kill_node(u8::try_from(last)?)?;
    let result = broken(&namespace, &node);
    // Whatever came of it, other tests need the node.
    kubectl(&["taint", "node", &node, "node.kubernetes.io/out-of-service-"])?;
    start_node(u8::try_from(last)?)?;
    until("the node to come back", LIMIT, || {
        let nodes = kubectl(&["get", "node", &node, "--no-headers"])?.ok()?.stdout;
        Ok((!nodes.contains("NotReady")).then_some(()))
    })?;
    result
}

fn broken(namespace: &Namespace, node: &str) -> Result<()> {
    until("the node to be missed", LIMIT, || {
        let nodes = kubectl(&["get", "node", node, "--no-headers"])?.ok()?.stdout;
        Ok(nodes.contains("NotReady").then_some(()))
    })?;
    // What a person does whose machine will not come back.
    kubectl(&[
        "taint",
        "node",
        node,
        "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        "--overwrite",
    ])?
    .ok()?;
    let ns = namespace.name();
    produce_numbers(ns, CLUSTER, "orders", 2001..=4000, LIMIT)?;
    let found = consume_numbers(ns, CLUSTER, "orders", LIMIT)?;
    ensure!(found == (1..=4000).collect(), "{} of 4000 records", found.len());
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    seen(format!(
        "{node} killed with its kubelet and pods: 2 000 records from before and 2 000 from after are there"
    ))
}

fn node_of(ns: &str, pod: &str) -> Result<String> {
    let object: Value = tidemill_e2e::kube::get(ns, "pod", pod)?.unwrap_or_default();
    Ok(object["spec"]["nodeName"].as_str().unwrap_or_default().to_owned())
}
