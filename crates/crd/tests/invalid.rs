//! Bad manifests and what a person reads, without an API server: the form first, then the rules. On an API server the same
//! objects are refused by the definition.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

use serde_json::{Value, json};
use tidemill_crd::{ConsumerGroup, Topic, group, structure, topic};

fn merged(base: Value, patch: &Value) -> Value {
    let mut out = base;
    for (k, v) in patch.as_object().unwrap() {
        out[k] = v.clone();
    }
    out
}

fn object(kind: &str, patch: &Value) -> Value {
    let base = match kind {
        "Topic" => json!({"clusterRef": {"name": "c"}, "partitions": 3}),
        _ => json!({"clusterRef": {"name": "c"}, "topics": ["orders"]}),
    };
    let metadata = json!({"name": "orders"});
    json!({"apiVersion": "tidemill.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": merged(base, patch)})
}

/// Everything that is said, as `field: message`.
fn said(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = structure::schema_of(kind).unwrap().unwrap();
    let form = structure::check(&schema, new);
    if !form.is_empty() {
        return form.into_iter().map(|p| format!("{}: {}", p.field, p.message)).collect();
    }
    let rules = if kind == "Topic" {
        let read = |v: &Value| serde_json::from_value::<Topic>(v.clone()).unwrap();
        topic::validate(&read(new), old.map(read).as_ref())
    } else {
        let read = |v: &Value| serde_json::from_value::<ConsumerGroup>(v.clone()).unwrap();
        group::validate(&read(new), old.map(read).as_ref())
    };
    rules.into_iter().map(|v| format!("{}: {}", v.field, v.message)).collect()
}

const NAME: &str =
    "spec.topicName: 1 to 249 of a-z A-Z 0-9 . _ -, not '.' or '..', not beginning with two underscores";
const TOPIC: &str = "spec.topics: a topic's name has 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', and is not '.' or '..'";
const STATIC: &str = "spec.assignment.static: each is TOPIC/PARTITION with one of spec.topics";
const START: &str = "spec.startAt: earliest, latest, or a time such as 2026-01-31T00:00:00Z";
const RESET: &str = "spec.reset.to: earliest, latest, or a time such as 2026-01-31T00:00:00Z";

#[test]
fn forty_and_more_bad_manifests_say_what_is_allowed() {
    let fixed = |partitions: &[&str]| json!({"assignment": {"static": {"a": partitions}}});
    let queue = |delivery: Value| json!({"mode": "Queue", "delivery": delivery});
    let cases = [
        ("Topic", json!({"partitions": 0}), "spec.partitions: has 0, allowed: 1 to 100000"),
        ("Topic", json!({"partitions": -1}), "spec.partitions: has -1, allowed: 1 to 100000"),
        ("Topic", json!({"partitions": 100_001}), "spec.partitions: has 100001, allowed: 1 to 100000"),
        ("Topic", json!({"partitions": "3"}), "spec.partitions: is string, integer is needed"),
        ("Topic", json!({"partitions": 1.5}), "spec.partitions: is number, integer is needed"),
        ("Topic", json!({"partitions": null}), "spec.partitions: is null, integer is needed"),
        ("Topic", json!({"replicas": 3}), "spec.replicas: is not known"),
        ("Topic", json!({"clusterRef": {}}), "spec.clusterRef.name: is missing"),
        ("Topic", json!({"clusterRef": "c"}), "spec.clusterRef: is string, object is needed"),
        ("Topic", json!({"clusterRef": {"name": "c", "colour": 1}}), "spec.clusterRef.colour: is not known"),
        ("Topic", json!({"topicName": ""}), "spec.topicName: has 0 characters, allowed: 1 to 249"),
        (
            "Topic",
            json!({"topicName": "x".repeat(250)}),
            "spec.topicName: has 250 characters, allowed: 1 to 249",
        ),
        ("Topic", json!({"topicName": "a b"}), NAME),
        ("Topic", json!({"topicName": "ü"}), NAME),
        ("Topic", json!({"topicName": ".."}), NAME),
        ("Topic", json!({"topicName": "a/b"}), NAME),
        ("Topic", json!({"topicName": "__offsets"}), NAME),
        (
            "Topic",
            json!({"replication": {"copies": 8, "ackQuorum": 2}}),
            "spec.replication.copies: has 8, allowed: 1 to 7",
        ),
        (
            "Topic",
            json!({"replication": {"copies": 2, "ackQuorum": 0}}),
            "spec.replication.ackQuorum: has 0, allowed: 1 to 7",
        ),
        (
            "Topic",
            json!({"replication": {"copies": 2, "ackQuorum": 3}}),
            "spec.replication: ackQuorum is at most copies",
        ),
        ("Topic", json!({"replication": {"copies": 1}}), "spec.replication: ackQuorum is at most copies"),
        ("Topic", json!({"retention": {"time": 7}}), "spec.retention.time: is integer, string is needed"),
        (
            "Topic",
            json!({"retention": {"time": "7 days"}}),
            "spec.retention.time: \"7 days\" is not a duration such as 72h, 7d or 1h30m",
        ),
        (
            "Topic",
            json!({"retention": {"bytes": "10 GB"}}),
            "spec.retention.bytes: \"10 GB\" is not a quantity such as 10Gi, 500M or 250m",
        ),
        ("Topic", json!({"retention": {"days": "7"}}), "spec.retention.days: is not known"),
        (
            "Topic",
            json!({"cleanupPolicy": "Burn"}),
            "spec.cleanupPolicy: is Burn, allowed: Delete, Compact, CompactAndDelete",
        ),
        ("Topic", json!({"adoption": "Maybe"}), "spec.adoption: is Maybe, allowed: Fail, IfMatches, Take"),
        (
            "Topic",
            json!({"deletionPolicy": "Burn"}),
            "spec.deletionPolicy: is Burn, allowed: Delete, Retain, DeleteIfEmpty",
        ),
        ("Topic", json!({"maxMessageBytes": 5}), "spec.maxMessageBytes: is integer, string is needed"),
        (
            "Topic",
            json!({"maxMessageBytes": "much"}),
            "spec.maxMessageBytes: \"much\" is not a quantity such as 10Gi, 500M or 250m",
        ),
        (
            "Topic",
            json!({"config": {"copies": "3"}}),
            "spec.config[copies]: it has a field of its own: spec.replication.copies",
        ),
        (
            "Topic",
            json!({"config": {"roll.bytes": 3}}),
            "spec.config.roll.bytes: is integer, string is needed",
        ),
        (
            "Topic",
            json!({"purgeAfter": "soon"}),
            "spec.purgeAfter: purgeAfter is a duration of at most 10 years, such as 72h",
        ),
        (
            "Topic",
            json!({"purgeAfter": "11000d"}),
            "spec.purgeAfter: purgeAfter is a duration of at most 10 years, such as 72h",
        ),
        ("Topic", json!({"paused": "yes"}), "spec.paused: is string, boolean is needed"),
        (
            "ConsumerGroup",
            json!({"groupName": "a b"}),
            "spec.groupName: a group's name has 1 to 249 printable characters without a space",
        ),
        ("ConsumerGroup", json!({"groupName": ""}), "spec.groupName: has 0 characters, allowed: 1 to 249"),
        ("ConsumerGroup", json!({"topics": "orders"}), "spec.topics: is string, array is needed"),
        ("ConsumerGroup", json!({"topics": ["a b"]}), TOPIC),
        (
            "ConsumerGroup",
            json!({"topics": ["orders", ""]}),
            "spec.topics[1]: has 0 characters, allowed: 1 to 249",
        ),
        ("ConsumerGroup", json!({"mode": "Stack"}), "spec.mode: is Stack, allowed: Stream, Queue, FifoQueue"),
        (
            "ConsumerGroup",
            json!({"delivery": {"maxDeliveries": 3}}),
            "spec.delivery: delivery belongs to the modes Queue and FifoQueue: a stream has offsets, not deliveries",
        ),
        (
            "ConsumerGroup",
            json!({"mode": "Queue", "assignment": {"strategy": "range"}}),
            "spec.assignment: assignment belongs to mode Stream: a queue gives each message to whoever asks",
        ),
        (
            "ConsumerGroup",
            json!({"assignment": {"strategy": "random"}}),
            "spec.assignment.strategy: is random, allowed: cooperative-sticky, range, uniform",
        ),
        ("ConsumerGroup", fixed(&["other/0"]), STATIC),
        ("ConsumerGroup", fixed(&["orders"]), STATIC),
        ("ConsumerGroup", fixed(&["orders/x"]), STATIC),
        (
            "ConsumerGroup",
            fixed(&["orders/1", "orders/1"]),
            "spec.assignment.static: each partition is given to one member",
        ),
        ("ConsumerGroup", json!({"startAt": "yesterday"}), START),
        ("ConsumerGroup", json!({"startAt": "2026-01-31"}), START),
        (
            "ConsumerGroup",
            json!({"limits": {"maxLag": -1}}),
            "spec.limits.maxLag: has -1, allowed: 0 to 9007199254740991",
        ),
        (
            "ConsumerGroup",
            json!({"reset": {"id": "", "to": "latest"}}),
            "spec.reset.id: has 0 characters, allowed: 1 to 64",
        ),
        ("ConsumerGroup", json!({"reset": {"to": "latest"}}), "spec.reset.id: is missing"),
        ("ConsumerGroup", json!({"reset": {"id": "a", "to": "Latest"}}), RESET),
        (
            "ConsumerGroup",
            queue(json!({"maxDeliveries": 0})),
            "spec.delivery.maxDeliveries: has 0, allowed: 1 to 1000",
        ),
        (
            "ConsumerGroup",
            queue(json!({"leaseDuration": "5ms"})),
            "spec.delivery.leaseDuration: a duration from 1s to 12h, such as 30s",
        ),
        (
            "ConsumerGroup",
            queue(json!({"dedupWindow": "25h"})),
            "spec.delivery.dedupWindow: a duration of at most 24h, such as 5m",
        ),
        (
            "ConsumerGroup",
            queue(json!({"deadLetterTopic": "orders"})),
            "spec.delivery.deadLetterTopic: another topic than those that the group reads",
        ),
    ];
    assert!(cases.len() >= 50, "{}", cases.len());
    for (kind, patch, want) in cases {
        assert_eq!(said(kind, &object(kind, &patch), None), [want], "{kind} {patch}");
    }
}

#[test]
fn what_cannot_change_says_so() {
    let fixed = |what: &str, kind: &str| format!("spec.{what}: {what} is immutable{kind}");
    let topic = ", set and unset included: make another Topic instead";
    let group = ", set and unset included: make another ConsumerGroup instead";
    for (kind, old, new, want) in [
        (
            "Topic",
            json!({"partitions": 4}),
            json!({}),
            "spec.partitions: partitions only grow: records stay where they are".to_owned(),
        ),
        ("Topic", json!({"topicName": "a"}), json!({}), fixed("topicName", topic)),
        ("Topic", json!({}), json!({"topicName": "a"}), fixed("topicName", topic)),
        ("Topic", json!({"topicName": "a"}), json!({"topicName": "b"}), fixed("topicName", topic)),
        (
            "Topic",
            json!({"clusterRef": {"name": "d"}}),
            json!({}),
            fixed("clusterRef", ": make another Topic instead"),
        ),
        (
            "Topic",
            json!({"clusterRef": {"name": "c", "namespace": "n"}}),
            json!({}),
            fixed("clusterRef", ": make another Topic instead"),
        ),
        ("ConsumerGroup", json!({"groupName": "a"}), json!({}), fixed("groupName", group)),
        (
            "ConsumerGroup",
            json!({"mode": "Queue"}),
            json!({}),
            fixed("mode", ": offsets and deliveries do not turn into each other"),
        ),
        (
            "ConsumerGroup",
            json!({"clusterRef": {"name": "d"}}),
            json!({}),
            fixed("clusterRef", ": make another ConsumerGroup instead"),
        ),
    ] {
        let (old, new) = (object(kind, &old), object(kind, &new));
        assert_eq!(said(kind, &new, Some(&old)), [want]);
    }
}
