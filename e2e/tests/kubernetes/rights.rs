//! Rule 18: the operator has the chart's rights and no others, and a verb that is denied is a condition.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Operator, Size, apply, condition, get, kubectl, patch, seen, topic, until,
};

const LIMIT: Duration = Duration::from_secs(180);
const ROLE: &str = "tidemill-operator";

fn may(verb: &str, what: &str, namespace: &str) -> Result<bool> {
    let who = format!("--as=system:serviceaccount:{}:tidemill-operator", Operator::namespace());
    // Behind a slash kubectl expects the name of an object.
    let (resource, part) = what.split_once('/').unwrap_or((what, ""));
    let part = format!("--subresource={part}");
    let done = kubectl(&["auth", "can-i", verb, resource, &part, "-n", namespace, &who])?;
    match done.stdout.split_whitespace().next() {
        Some("yes") => Ok(true),
        Some("no") => Ok(false),
        other => anyhow::bail!("can-i {verb} {what}: {other:?}{}", done.stderr),
    }
}

#[test]
fn rule_18_the_operator_may_do_what_it_does_and_no_more() -> Result<()> {
    Operator::installed()?;
    let everywhere = [
        ("patch", "clusters.tidemill.dev"),
        ("patch", "topics.tidemill.dev/status"),
        ("create", "statefulsets.apps"),
        ("delete", "persistentvolumeclaims"),
    ];
    for (verb, what) in everywhere {
        ensure!(may(verb, what, "default")?, "it may not {verb} {what}");
    }
    let never = [
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "pods"),
        ("create", "pods/exec"),
        ("create", "clusters.tidemill.dev"),
        ("delete", "clusters.tidemill.dev"),
        ("delete", "topics.tidemill.dev"),
        ("create", "persistentvolumeclaims"),
        ("delete", "persistentvolumes"),
        ("delete", "nodes"),
        ("update", "nodes"),
        ("create", "clusterroles.rbac.authorization.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
        ("escalate", "clusterroles.rbac.authorization.k8s.io"),
        ("create", "serviceaccounts/token"),
        ("impersonate", "users"),
        ("delete", "customresourcedefinitions.apiextensions.k8s.io"),
        ("delete", "namespaces"),
    ];
    for (verb, what) in never {
        ensure!(!may(verb, what, "default")?, "it may {verb} {what}");
    }
    seen(format!(
        "the operator's account: {} rights that it needs, {} that it has not",
        everywhere.len(),
        never.len()
    ))
}

/// The role without some verbs of a resource, until this value is dropped.
struct Without {
    rules: Value,
}

impl Without {
    fn new(resource: &str, verbs: &[&str]) -> Result<Self> {
        let shown = kubectl(&["get", "clusterrole", ROLE, "-o", "json"])?.ok()?.stdout;
        let rules = serde_json::from_str::<Value>(&shown)?["rules"].clone();
        let mut fewer = rules.clone();
        let mut found = false;
        let mut rest = Vec::new();
        for rule in fewer.as_array_mut().context("no rules")? {
            let named = rule["resources"].as_array().cloned().unwrap_or_default();
            if !named.iter().any(|r| r == resource) {
                continue;
            }
            found = true;
            // The others of the rule keep their verbs.
            let mut others = rule.clone();
            others["resources"] = named.into_iter().filter(|r| r != resource).collect();
            rest.push(others);
            rule["resources"] = json!([resource]);
            let kept = rule["verbs"].as_array().cloned().unwrap_or_default();
            rule["verbs"] = kept.into_iter().filter(|v| !verbs.iter().any(|w| v == w)).collect();
        }
        ensure!(found, "no rule names {resource}");
        let all = fewer.as_array_mut().context("no rules")?;
        all.extend(rest.into_iter().filter(|r| r["resources"].as_array().is_some_and(|r| !r.is_empty())));
        put(&fewer)?;
        Ok(Self { rules })
    }
}

impl Drop for Without {
    fn drop(&mut self) {
        drop(put(&self.rules));
    }
}

fn put(rules: &Value) -> Result<()> {
    let change = json!({ "rules": rules }).to_string();
    kubectl(&["patch", "clusterrole", ROLE, "--type=merge", "-p", &change])?.ok().map(drop)
}

/// Waits for Forbidden on an object, with the verb in the message; then that the operator does not go in circles.
fn denied(ns: &str, kind: &str, name: &str, words: &[&str]) -> Result<()> {
    let object = until(&format!("{kind} {name} to be told that a verb is denied"), LIMIT, || {
        let object = get(ns, kind, name)?.context("it is not there")?;
        let (_, reason, message) = condition(&object, "Stalled").context("not stalled")?;
        ensure!(reason == "Forbidden" && words.iter().all(|w| message.contains(w)), "{reason}: {message}");
        Ok(Some(object))
    })?;
    let (version, passes) = (object["metadata"]["resourceVersion"].clone(), Operator::passes()?);
    // Others may be looked at meanwhile; this one is not written again.
    until("some time of the operator", LIMIT, || {
        kubectl(&["annotate", kind, name, "-n", ns, "--overwrite", &format!("example.org/n={passes}")])?
            .ok()?;
        Ok((Operator::passes()? > passes).then_some(()))
    })?;
    let after = get(ns, kind, name)?.context("it is gone")?;
    ensure!(after["status"] == object["status"], "{version}: written again: {}", after["status"]);
    Ok(())
}

#[test]
fn rule_18_a_denied_verb_is_a_clear_condition_and_not_a_loop() -> Result<()> {
    let namespace = Namespace::with_cluster("rights", Size::SMALL)?;
    let ns = namespace.name();
    {
        // What the Cluster needs to change.
        let _without = Without::new("statefulsets", &["patch"])?;
        patch(ns, "cluster", CLUSTER, &json!({ "spec": { "brokers": { "replicas": 2 } } }))?;
        denied(ns, "cluster", CLUSTER, &["statefulsets", "patch"])?;
    }
    // Rights come back by a person; the operator looks once a minute.
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    {
        // What it needs to look at all.
        let _without = Without::new("pods", &["list"])?;
        patch(ns, "cluster", CLUSTER, &json!({ "spec": { "brokers": { "replicas": 1 } } }))?;
        denied(ns, "cluster", CLUSTER, &["pods", "list"])?;
    }
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    {
        // A finalizer: without it nothing is made that would outlive the object.
        let _without = Without::new("topics", &["patch"])?;
        apply(ns, &topic("orders", 1).to_string())?;
        denied(ns, "topic", "orders", &["topics", "patch"])?;
    }
    namespace.wait_ready("topic", "orders", LIMIT)?;
    seen(
        "statefulsets without patch, pods without list, topics without patch: Stalled with the verb's name, and quiet",
    )
}
