//! What is refused, and what the refusal says.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tidemill_e2e::kube::{CLUSTER, Namespace, Operator, Size, apply, cluster, refused, seen, topic};

use crate::merge::merged;

/// What is wrong, as a difference from a good manifest, and a part of the message that says so.
type Case = (&'static str, Value, &'static str);

fn check(namespace: &str, good: &Value, cases: &[Case]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (what, change, says) in cases {
        let manifest = merged(good, change).to_string();
        match refused(namespace, &manifest) {
            Ok(message) if message.contains(says) => {}
            Ok(message) => wrong.push(format!("{what}: says\n  {}\nand not\n  {says}", message.trim())),
            Err(error) => wrong.push(format!("{what}: {error:#}")),
        }
    }
    Ok(wrong)
}

#[expect(clippy::needless_pass_by_value, reason = "tables read better without borrows")]
fn spec(change: Value) -> Value {
    json!({ "spec": change })
}

#[expect(clippy::needless_pass_by_value, reason = "tables read better without borrows")]
fn pool(change: Value) -> Value {
    let good = json!({ "name": "main", "replicas": 3, "storage": { "size": "1Gi" } });
    spec(json!({ "bookiePools": [merged(&good, &change)] }))
}

fn new_clusters() -> Vec<Case> {
    let named = |name: &str| json!({ "metadata": { "name": name } });
    vec![
        (
            "a name that is too long",
            named(&"c".repeat(25)),
            "the name of a Cluster has at most 24 characters",
        ),
        ("a name that begins with a digit", named("1c"), "a letter first"),
        ("a name with a dot", named("a.b"), "the name of a Cluster has at most 24 characters"),
        ("version and image", spec(json!({ "version": "1", "image": "i" })), "give either version or image"),
        ("a version with a slash", spec(json!({ "version": "a/b" })), "spec.version"),
        ("an empty image", spec(json!({ "image": "" })), "spec.image"),
        (
            "a pull policy that is none",
            spec(json!({ "imagePullPolicy": "Sometimes" })),
            "spec.imagePullPolicy",
        ),
        ("an unknown field", spec(json!({ "brokerz": {} })), "unknown field \"spec.brokerz\""),
        (
            "an unknown field below",
            spec(json!({ "meta": { "size": 3 } })),
            "unknown field \"spec.meta.size\"",
        ),
        ("no pools", spec(json!({ "bookiePools": [] })), "spec.bookiePools"),
        ("pools left out", spec(json!({ "bookiePools": null })), "spec.bookiePools: Required value"),
        ("a pool without storage", pool(json!({ "storage": null })), "storage: Required value"),
        ("a pool without a name", pool(json!({ "name": null })), "name: Required value"),
        ("a pool with capitals", pool(json!({ "name": "Main" })), "spec.bookiePools[0].name"),
        ("a pool with a long name", pool(json!({ "name": "p".repeat(21) })), "spec.bookiePools[0].name"),
        ("a pool without bookies", pool(json!({ "replicas": 0 })), "greater than or equal to 1"),
        ("a pool with too many bookies", pool(json!({ "replicas": 1001 })), "less than or equal to 1000"),
        ("bookies as text", pool(json!({ "replicas": "3" })), "must be of type integer"),
        ("a size without a number", pool(json!({ "storage": { "size": "Gi" } })), "storage.size"),
        ("a size with a blank", pool(json!({ "storage": { "size": "1 Gi" } })), "storage.size"),
        ("a size that is negative", pool(json!({ "storage": { "size": "-1Gi" } })), "storage.size"),
        ("a class without a name", pool(json!({ "storage": { "class": "" } })), "storage.class"),
        ("two members", spec(json!({ "meta": { "replicas": 2 } })), "the quorum has 1, 3 or 5 members"),
        ("no member", spec(json!({ "meta": { "replicas": 0 } })), "spec.meta.replicas"),
        ("seven members", spec(json!({ "meta": { "replicas": 7 } })), "spec.meta.replicas"),
        ("fewer than no brokers", spec(json!({ "brokers": { "replicas": -1 } })), "spec.brokers.replicas"),
        ("too many brokers", spec(json!({ "brokers": { "replicas": 1001 } })), "spec.brokers.replicas"),
        ("a bucket with a short name", spec(json!({ "offload": { "bucket": "ab" } })), "spec.offload.bucket"),
        (
            "an endpoint without a scheme",
            spec(json!({ "offload": { "bucket": "abc", "endpoint": "minio:9000" } })),
            "spec.offload.endpoint",
        ),
        (
            "a listener without a port",
            spec(json!({ "listeners": [{ "name": "a" }] })),
            "port: Required value",
        ),
        ("a port of 0", spec(json!({ "listeners": [{ "name": "a", "port": 0 }] })), "spec.listeners[0].port"),
        (
            "a port past the last",
            spec(json!({ "listeners": [{ "name": "a", "port": 65536 }] })),
            "spec.listeners[0].port",
        ),
        (
            "encryption of two origins",
            spec(
                json!({ "listeners": [{ "name": "a", "port": 1, "tls": { "secretName": "s", "issuerRef": { "name": "i" } } }] }),
            ),
            "tls needs exactly one of secretName and issuerRef",
        ),
        (
            "encryption of no origin",
            spec(json!({ "listeners": [{ "name": "a", "port": 1, "tls": {} }] })),
            "tls needs exactly one of secretName and issuerRef",
        ),
        (
            "a strategy that is none",
            spec(json!({ "updates": { "strategy": "Never" } })),
            "spec.updates.strategy",
        ),
        ("a policy that is none", spec(json!({ "storagePolicy": { "whenDeleted": "Keep" } })), "whenDeleted"),
        (
            "an unknown role in the configuration",
            spec(json!({ "config": { "proxy.x": "1" } })),
            "keys are ROLE.KEY",
        ),
        (
            "a number in the configuration",
            spec(json!({ "config": { "broker.roll-bytes": 1 } })),
            "must be of type string",
        ),
        (
            "more acknowledgements than copies",
            spec(json!({ "topicDefaults": { "copies": 2, "ackQuorum": 3 } })),
            "ackQuorum is at most copies",
        ),
        ("no copies", spec(json!({ "topicDefaults": { "copies": 0 } })), "spec.topicDefaults.copies"),
        (
            "a retention without a unit",
            spec(json!({ "topicDefaults": { "retentionTime": "7" } })),
            "retentionTime",
        ),
        ("paused by a word", spec(json!({ "paused": "yes" })), "must be of type boolean"),
    ]
}

fn changed_clusters() -> Vec<Case> {
    vec![
        (
            "a smaller quorum",
            spec(json!({ "meta": { "replicas": 1 } })),
            "the quorum can grow but not shrink",
        ),
        (
            "a smaller volume",
            pool(json!({ "storage": { "size": "512Mi" } })),
            "a volume can grow but not shrink",
        ),
        ("another class", pool(json!({ "storage": { "class": "other" } })), "class is immutable"),
        (
            "a smaller volume of the quorum",
            spec(json!({ "meta": { "storage": { "size": "1Mi" } } })),
            "a volume can grow but not shrink",
        ),
        (
            "another bucket",
            spec(json!({ "offload": { "bucket": "another" } })),
            "bucket and prefix are immutable",
        ),
    ]
}

#[test]
fn bad_clusters_are_refused_with_a_reason() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("bad-clusters")?;
    let ns = namespace.name();
    let good = merged(&cluster(Size { metas: 3, ..Size::SMALL }), &spec(json!({ "paused": true })));
    let (new, changed) = (new_clusters(), changed_clusters());
    let mut wrong = check(ns, &good, &new)?;
    let there = merged(&good, &spec(json!({ "offload": { "bucket": "bucket" } })));
    apply(ns, &there.to_string()).context("the good one")?;
    wrong.extend(check(ns, &there, &changed)?);
    verdict("Clusters", new.len() + changed.len(), &wrong)
}

fn verdict(of: &str, all: usize, wrong: &[String]) -> Result<()> {
    if !wrong.is_empty() {
        bail!("{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
    }
    seen(format!("{all} bad {of} refused, each with the message that names what is wrong"))
}

#[test]
fn bad_topics_are_refused_with_a_reason() -> Result<()> {
    bad("bad-topics", "Topics", &topic("orders", 2), &new_topics(), &changed_topics())
}

#[test]
fn bad_consumer_groups_are_refused_with_a_reason() -> Result<()> {
    let good = json!({
        "apiVersion": "tidemill.dev/v1alpha1",
        "kind": "ConsumerGroup",
        "metadata": { "name": "billing" },
        "spec": { "clusterRef": { "name": CLUSTER }, "topics": ["orders"] },
    });
    bad("bad-groups", "ConsumerGroups", &good, &new_groups(), &changed_groups())
}

/// Objects that name a Cluster which is not there: the definition judges them all the same.
fn bad(prefix: &str, of: &str, good: &Value, new: &[Case], changed: &[Case]) -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create(prefix)?;
    let ns = namespace.name();
    let mut wrong = check(ns, good, new)?;
    apply(ns, &good.to_string()).context("the good one")?;
    wrong.extend(check(ns, good, changed)?);
    verdict(of, new.len() + changed.len(), &wrong)
}

fn new_topics() -> Vec<Case> {
    vec![
        ("no Cluster", spec(json!({ "clusterRef": null })), "spec.clusterRef: Required value"),
        (
            "a Cluster with a long name",
            spec(json!({ "clusterRef": { "name": "c".repeat(25) } })),
            "spec.clusterRef.name",
        ),
        ("no partitions", spec(json!({ "partitions": 0 })), "spec.partitions"),
        ("too many partitions", spec(json!({ "partitions": 100_001 })), "spec.partitions"),
        ("partitions as text", spec(json!({ "partitions": "2" })), "must be of type integer"),
        ("a name with a slash", spec(json!({ "topicName": "a/b" })), "spec.topicName"),
        ("a name that is too long", spec(json!({ "topicName": "a".repeat(250) })), "spec.topicName"),
        ("a name of the system", spec(json!({ "topicName": "__groups" })), "those belong to the system"),
        ("a name of dots", spec(json!({ "topicName": ".." })), "a topic's name is not '.' or '..'"),
        (
            "more acknowledgements than copies",
            spec(json!({ "replication": { "copies": 2, "ackQuorum": 3 } })),
            "ackQuorum is at most copies",
        ),
        ("no copies", spec(json!({ "replication": { "copies": 0 } })), "spec.replication.copies"),
        ("a retention without a unit", spec(json!({ "retention": { "time": "7" } })), "spec.retention.time"),
        ("a size with a word", spec(json!({ "retention": { "bytes": "much" } })), "spec.retention.bytes"),
        ("an unknown field", spec(json!({ "partition": 3 })), "unknown field \"spec.partition\""),
        ("an unknown policy", spec(json!({ "deletionPolicy": "Forget" })), "spec.deletionPolicy"),
        ("an adoption that is none", spec(json!({ "adoption": "Steal" })), "spec.adoption"),
        ("a delay without a unit", spec(json!({ "purgeAfter": "72" })), "spec.purgeAfter"),
    ]
}

fn changed_topics() -> Vec<Case> {
    vec![
        ("another Cluster", spec(json!({ "clusterRef": { "name": "other" } })), "clusterRef is immutable"),
        ("a name afterwards", spec(json!({ "topicName": "other" })), "topicName is immutable"),
        ("fewer partitions", spec(json!({ "partitions": 1 })), "partitions only grow"),
    ]
}

fn new_groups() -> Vec<Case> {
    vec![
        ("no Cluster", spec(json!({ "clusterRef": null })), "spec.clusterRef: Required value"),
        ("a name with a blank", spec(json!({ "groupName": "a b" })), "spec.groupName"),
        ("a mode that is none", spec(json!({ "mode": "Stack" })), "spec.mode"),
        (
            "deliveries of a stream",
            spec(json!({ "delivery": { "maxDeliveries": 3 } })),
            "delivery belongs to the modes Queue and FifoQueue",
        ),
        (
            "too many deliveries",
            spec(json!({ "mode": "Queue", "delivery": { "maxDeliveries": 1001 } })),
            "spec.delivery.maxDeliveries",
        ),
        (
            "a lease without a unit",
            spec(json!({ "mode": "Queue", "delivery": { "leaseDuration": "30" } })),
            "spec.delivery.leaseDuration",
        ),
        ("a start that is none", spec(json!({ "startAt": "yesterday" })), "spec.startAt"),
        (
            "a reset without an id",
            spec(json!({ "reset": { "to": "earliest" } })),
            "spec.reset.id: Required value",
        ),
        ("a reset to nowhere", spec(json!({ "reset": { "id": "1", "to": "middle" } })), "spec.reset.to"),
        ("a lag below nothing", spec(json!({ "limits": { "maxLag": -1 } })), "spec.limits.maxLag"),
        (
            "an unknown strategy",
            spec(json!({ "assignment": { "strategy": "random" } })),
            "spec.assignment.strategy",
        ),
        ("an unknown field", spec(json!({ "topic": "a" })), "unknown field \"spec.topic\""),
    ]
}

fn changed_groups() -> Vec<Case> {
    vec![
        ("another Cluster", spec(json!({ "clusterRef": { "name": "other" } })), "clusterRef is immutable"),
        ("a name afterwards", spec(json!({ "groupName": "other" })), "groupName is immutable"),
        ("another mode", spec(json!({ "mode": "Queue" })), "mode is immutable"),
    ]
}
