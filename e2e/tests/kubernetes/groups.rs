//! ConsumerGroups: every row of the verdict table, resets that happen once, claims, deletion, and a quiet steady state.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Job, Namespace, Operator, Size, apply, argo, cluster, condition, delete, get, kstatus, kubectl,
    patch, produce_numbers, ready, seen, until,
};

use crate::merge::merged;

const LIMIT: Duration = Duration::from_secs(180);
const SCRIPT: &str = "examples/argocd/health/consumergroup.lua";

fn group(name: &str, change: &Value) -> Value {
    let base = json!({
        "apiVersion": "tidemill.dev/v1alpha1",
        "kind": "ConsumerGroup",
        "metadata": { "name": name },
        "spec": { "clusterRef": { "name": CLUSTER }, "topics": ["orders"], "startAt": "earliest" },
    });
    merged(&base, &json!({ "spec": change }))
}

/// Waits for a reason of Ready in the newest generation, and for what the judges have to make of it.
fn judged(ns: &str, name: &str, reason: &str, verdicts: (&str, &str)) -> Result<Value> {
    let object = until(&format!("group {name}: {reason}"), LIMIT, || {
        let object = get(ns, "consumergroup", name)?.context("it is not there")?;
        let looked = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let is = condition(&object, if reason == "Paused" { "Paused" } else { "Ready" });
        ensure!(looked && is.is_some_and(|(_, r, _)| r == reason), "{}", object["status"]);
        Ok(Some(object))
    })?;
    let found = (kstatus(&object)?, argo(SCRIPT, &object)?);
    ensure!(
        found == (verdicts.0.to_owned(), verdicts.1.to_owned()),
        "{reason}: {found:?}\n{}",
        object["status"]
    );
    seen(format!("ConsumerGroup, {reason}: kstatus {}, Argo CD {}", found.0, found.1))?;
    Ok(object)
}

/// A name that no other pod has.
fn unique(what: &str) -> String {
    format!("{what}-{}", &uuid::Uuid::new_v4().simple().to_string()[..6])
}

/// How many lines the group gets that reads to the end.
fn read(ns: &str, group: &str) -> Result<usize> {
    let name = unique("read");
    let group = format!("--group={group}");
    let args = ["consume", "orders", group.as_str(), "--until-end"];
    let printed = Job::start(ns, &name, CLUSTER, &args, "")?.finish(LIMIT)?;
    Ok(printed.lines().filter(|l| l.parse::<u32>().is_ok()).count())
}

const DONE: (&str, &str) = ("Current", "Healthy");
const WORKING: (&str, &str) = ("InProgress", "Progressing");
const REJECTED: (&str, &str) = ("Failed", "Degraded");

#[test]
fn a_consumer_group_is_configured_judged_and_reset_once() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("groups")?;
    let ns = namespace.name();
    // Before its Cluster is there.
    apply(ns, &group("billing", &json!({})).to_string())?;
    judged(ns, "billing", "WaitingForCluster", WORKING)?;
    apply(ns, &cluster(Size::SMALL).to_string())?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT * 2)?;
    judged(ns, "billing", "Ready", DONE)?;
    namespace.add_topic("orders", 2)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=1000, LIMIT)?;
    ensure!(
        read(ns, "billing")? == 1000 && read(ns, "billing")? == 0,
        "the group does not read as configured"
    );

    // What this version lacks is a permanent condition.
    apply(ns, &group("jobs", &json!({ "mode": "Queue" })).to_string())?;
    let object = judged(ns, "jobs", "Unsupported", REJECTED)?;
    ensure!(condition(&object, "Stalled").is_some_and(|(s, _, m)| s == "True" && m.contains("spec.mode")));

    // One wins, the other says whom it lost to.
    apply(ns, &group("rival", &json!({ "groupName": "billing" })).to_string())?;
    let object = judged(ns, "rival", "Conflict", REJECTED)?;
    let says = condition(&object, "Ready").unwrap_or_default().2;
    ensure!(says.contains(&format!("ConsumerGroup {ns}/billing")), "{says}");

    // A reset, once: by the object, by the same object made anew, and after the operator's death.
    let reset = json!({ "reset": { "id": "r1", "to": "earliest" } });
    apply(ns, &group("billing", &reset).to_string())?;
    let done = |id: &str| {
        until("the reset", LIMIT, || {
            let object = get(ns, "consumergroup", "billing")?.unwrap_or_default();
            ensure!(ready(&object) && object["status"]["lastReset"]["id"] == id, "{}", object["status"]);
            Ok(Some(()))
        })
    };
    done("r1")?;
    ensure!(read(ns, "billing")? == 1000, "it was not reset");
    kubectl(&["delete", "pods", "--all", "-n", Operator::namespace(), "--grace-period=0", "--force"])?
        .ok()?;
    delete(ns, "consumergroup", "billing", LIMIT)?;
    // The rival takes over by itself: the holder's object is gone without a word.
    judged(ns, "rival", "Ready", DONE)?;
    delete(ns, "consumergroup", "rival", LIMIT)?;
    apply(ns, &group("billing", &reset).to_string())?;
    done("r1")?;
    ensure!(read(ns, "billing")? == 0, "a reset that was done happened again");

    // Paused, then another reset that waits for a member to go.
    patch(ns, "consumergroup", "billing", &json!({ "spec": { "paused": true } }))?;
    judged(ns, "billing", "Paused", ("Current", "Suspended"))?;
    let args = ["consume", "orders", "--group=billing"];
    let member = Job::start(ns, "member", CLUSTER, &args, "")?;
    until("the member", LIMIT, || {
        let args = ["group", "describe", "billing", "-o", "json"];
        let shown = Job::start(ns, &unique("look"), CLUSTER, &args, "")?.finish(LIMIT)?;
        ensure!(shown.contains("\"stable\""), "{shown}");
        Ok(Some(()))
    })?;
    let waits = json!({ "paused": false, "reset": { "id": "r2", "to": "latest" } });
    apply(ns, &group("billing", &waits).to_string())?;
    judged(ns, "billing", "WaitingForEmptyGroup", WORKING)?;
    until("state and members in the status", LIMIT, || {
        let object = get(ns, "consumergroup", "billing")?.unwrap_or_default();
        ensure!(
            object["status"]["members"] == 1 && object["status"]["state"] == "Stable",
            "{}",
            object["status"]
        );
        Ok(Some(()))
    })?;
    kubectl(&["delete", "pod", "member", "-n", ns, "--grace-period=1"])?.ok()?;
    drop(member);
    done("r2")?;

    // It goes with its offsets when it says so; the claim of a retained one is no obstacle.
    patch(ns, "consumergroup", "billing", &json!({ "spec": { "deletionPolicy": "Delete" } }))?;
    until("the finalizer", LIMIT, || {
        let object = get(ns, "consumergroup", "billing")?.unwrap_or_default();
        Ok(object["metadata"]["finalizers"].is_array().then_some(()))
    })?;
    delete(ns, "consumergroup", "billing", LIMIT)?;
    let printed = Job::start(ns, "list", CLUSTER, &["group", "list", "-o", "name"], "")?.finish(LIMIT)?;
    ensure!(!printed.lines().any(|l| l == "billing"), "{printed}");
    seen(
        "a group reset once across an operator's death and its object's re-creation; deleted with its offsets",
    )
}

#[test]
fn consumer_groups_are_quiet_under_traffic() -> Result<()> {
    let namespace = Namespace::with_cluster("quiet", Size::SMALL)?;
    let ns = namespace.name();
    namespace.add_topic("orders", 4)?;
    let many = 20;
    let items: Vec<Value> = (0..many).map(|n| group(&format!("g{n}"), &json!({}))).collect();
    apply(ns, &json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string())?;
    for n in 0..many {
        namespace.wait_ready("consumergroup", &format!("g{n}"), LIMIT)?;
    }
    // One has a member that keeps up: its lag comes and goes all the time.
    let _member = Job::start(ns, "member", CLUSTER, &["consume", "orders", "--group=g0"], "")?;
    let version = || -> Result<(String, u64)> {
        let object = get(ns, "consumergroup", "g0")?.context("it is gone")?;
        ensure!(object["status"]["members"] == 1, "{}", object["status"]);
        ensure!(object["status"]["assignments"][0]["partitions"].as_array().is_some_and(|p| p.len() == 4));
        Ok((object["metadata"]["resourceVersion"].to_string(), Operator::passes()?))
    };
    let looks = 2 * many;
    let (before, _) = until("the member's group to settle", LIMIT, || {
        let (first, passes) = version()?;
        until("two looks at each", LIMIT, || Ok((Operator::passes()? >= passes + looks).then_some(())))?;
        let second = version()?;
        ensure!(first == second.0, "it still moves");
        Ok(Some(second))
    })?;
    let passes = Operator::passes()?;
    let mut sent = 0;
    until("traffic during two looks at each", LIMIT * 2, || {
        produce_numbers(ns, CLUSTER, "orders", sent + 1..=sent + 300, LIMIT)?;
        sent += 300;
        Ok((Operator::passes()? >= passes + looks).then_some(()))
    })?;
    let (after, _) = version()?;
    ensure!(before == after, "the group was written while its member kept up with {sent} records");
    // One that nobody reads is behind by all of it, steadily: that is told, once.
    until("the lag of a group without members", LIMIT, || {
        let object = get(ns, "consumergroup", "g1")?.unwrap_or_default();
        ensure!(object["status"]["lagBucket"] != "0", "{}", object["status"]);
        Ok(Some(()))
    })?;
    seen(format!(
        "{many} groups, {sent} records: the one whose member kept up was not written, the others tell their lag"
    ))
}
