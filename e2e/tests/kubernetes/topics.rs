//! A Topic from its creation to its purge, and what it says on the way.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Forward, Namespace, Size, apply, cluster, condition, consume_numbers, delete, get, patch,
    produce_numbers, ready, refused, seen, topic, until,
};
use tidemill_e2e::tidemill;

use crate::merge::merged;

const LIMIT: Duration = Duration::from_secs(120);

/// A Cluster that purges soon.
fn hasty() -> Value {
    let config = json!({ "meta.tick-ms": "1000", "meta.purge-wait-ms": "1000" });
    merged(&cluster(Size::SMALL), &json!({ "spec": { "config": config } }))
}

/// A namespace with a Cluster, and a way to ask the Cluster itself.
struct Place {
    namespace: Namespace,
    server: String,
    _forward: Forward,
}

impl Place {
    fn new(prefix: &str) -> Result<Self> {
        let namespace = Namespace::with(prefix, &hasty())?;
        let forward = Forward::start(namespace.name(), &format!("service/{CLUSTER}"))?;
        Ok(Self { server: format!("--server={}", forward.url()), _forward: forward, namespace })
    }

    fn ns(&self) -> &str {
        self.namespace.name()
    }

    /// What the data plane says about a topic: the topic, or why there is none.
    fn describe(&self, name: &str) -> Result<Result<Value, String>> {
        let done = tidemill(&["topic", "describe", name, "--output=json", &self.server], b"", LIMIT)?;
        if done.code == Some(0) { Ok(Ok(serde_json::from_str(&done.stdout)?)) } else { Ok(Err(done.stderr)) }
    }

    fn partitions(&self, name: &str) -> Result<usize> {
        let topic = self.describe(name)?.map_err(anyhow::Error::msg)?;
        Ok(topic["partitions"].as_array().context("no partitions")?.len())
    }

    /// Waits until the topic is a tombstone: not listed any more, and still there for who looks at it by its name.
    fn tombstone(&self, name: &str) -> Result<()> {
        until(&format!("the tombstone of {name}"), LIMIT, || {
            let listed =
                tidemill(&["topic", "list", "--output=name", &self.server], b"", LIMIT)?.ok()?.stdout;
            ensure!(!listed.lines().any(|line| line == name), "it is still listed");
            Ok(Some(()))
        })?;
        self.describe(name)?.map_err(anyhow::Error::msg).context("it is gone for good").map(drop)
    }

    /// Waits until the data plane knows no such topic.
    fn purged(&self, name: &str) -> Result<()> {
        until(&format!("the purge of {name}"), LIMIT, || match self.describe(name)? {
            Err(says) if says.contains("there is no such topic") => Ok(Some(())),
            other => bail!("{other:?}"),
        })
    }

    fn id(&self, name: &str) -> Result<String> {
        let object = get(self.ns(), "topic", name)?.context("the Topic is gone")?;
        Ok(object["status"]["topicId"].as_str().context("no topicId")?.to_owned())
    }

    fn ready(&self, name: &str) -> Result<Value> {
        self.namespace.wait_ready("topic", name, LIMIT)
    }

    /// Waits until the Topic's Ready is False for its newest generation, for this reason, and answers the message.
    fn says(&self, name: &str, reason: &str) -> Result<String> {
        until(&format!("Topic {name} to say {reason}"), LIMIT, || {
            let object = get(self.ns(), "topic", name)?.context("it is not there")?;
            let newest = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            let (status, is, message) = condition(&object, "Ready").context("no verdict")?;
            ensure!(newest && status == "False" && is == reason, "{is}: {message}");
            Ok(Some(message))
        })
    }

    fn records(&self, name: &str, wanted: std::ops::RangeInclusive<u32>) -> Result<()> {
        let found = consume_numbers(self.ns(), CLUSTER, name, LIMIT)?;
        let wanted: std::collections::BTreeSet<u32> = wanted.collect();
        ensure!(found == wanted, "{} records of {name}, not {}", found.len(), wanted.len());
        Ok(())
    }
}

#[test]
fn a_topic_lives_from_its_creation_to_its_purge() -> Result<()> {
    let place = Place::new("topics")?;
    let all = created_and_grown(&place)
        .and_then(|()| deleted_and_undeleted(&place))
        .and_then(|()| only_when_empty(&place))
        .and_then(|()| purged(&place));
    all.with_context(|| place.namespace.describe())
}

fn created_and_grown(place: &Place) -> Result<()> {
    let ns = place.ns();
    apply(ns, &topic("orders", 2).to_string())?;
    let object = place.ready("orders")?;
    ensure!(object["status"]["partitions"] == 2, "{}", object["status"]);
    ensure!(object["status"]["effective"].is_object(), "no effective configuration: {}", object["status"]);
    ensure!(place.partitions("orders")? == 2, "the data plane has other partitions");
    produce_numbers(ns, CLUSTER, "orders", 1..=500, LIMIT)?;
    let says = refused(ns, &topic("orders", 1).to_string())?;
    ensure!(says.contains("partitions only grow"), "{says}");
    apply(ns, &topic("orders", 4).to_string())?;
    let object = place.ready("orders")?;
    ensure!(object["status"]["partitions"] == 4, "{}", object["status"]);
    ensure!(place.partitions("orders")? == 4, "the data plane has other partitions");
    place.records("orders", 1..=500)?;
    seen("created with 2 partitions, grown to 4, shrinking refused by the definition: 500 of 500 records")
}

fn deleted_and_undeleted(place: &Place) -> Result<()> {
    let ns = place.ns();
    let id = place.id("orders")?;
    delete(ns, "topic", "orders", LIMIT)?;
    place.tombstone("orders")?;
    apply(ns, &topic("orders", 4).to_string())?;
    place.ready("orders")?;
    ensure!(place.id("orders")? == id, "another topic came back");
    place.records("orders", 1..=500)?;
    seen("deleted: a tombstone; applied again: the same topic with its 500 records")
}

fn only_when_empty(place: &Place) -> Result<()> {
    let ns = place.ns();
    patch(ns, "topic", "orders", &json!({ "spec": { "deletionPolicy": "DeleteIfEmpty" } }))?;
    place.ready("orders")?;
    let gone = delete(ns, "topic", "orders", Duration::from_secs(1));
    ensure!(gone.is_err(), "a topic with records went");
    let says = place.says("orders", "NotEmpty")?;
    ensure!(place.partitions("orders")? == 4, "it went all the same");
    // What a person does who means it.
    patch(ns, "topic", "orders", &json!({ "spec": { "deletionPolicy": "Delete" } }))?;
    until("the Topic to go", LIMIT, || Ok(get(ns, "topic", "orders")?.is_none().then_some(())))?;
    apply(ns, &topic("orders", 4).to_string())?;
    place.ready("orders")?;
    place.records("orders", 1..=500)?;
    seen(format!("DeleteIfEmpty waits: {says}"))
}

fn purged(place: &Place) -> Result<()> {
    let ns = place.ns();
    let id = place.id("orders")?;
    patch(ns, "topic", "orders", &json!({ "spec": { "purgeAfter": "1s" } }))?;
    place.ready("orders")?;
    delete(ns, "topic", "orders", LIMIT)?;
    place.purged("orders")?;
    apply(ns, &topic("orders", 1).to_string())?;
    place.ready("orders")?;
    ensure!(place.id("orders")? != id, "a purged topic came back");
    ensure!(place.partitions("orders")? == 1, "a purged topic's partitions came back");
    let found = consume_numbers(ns, CLUSTER, "orders", LIMIT)?;
    ensure!(found.is_empty(), "{} records outlived the purge", found.len());
    seen("deleted with purgeAfter 1s: purged; the same name again is a new, empty topic")
}

#[test]
fn of_all_who_want_a_topic_one_has_it() -> Result<()> {
    let place = Place::new("claims")?;
    let all = two_objects(&place).and_then(|()| adopted(&place));
    all.with_context(|| place.namespace.describe())
}

/// Two Topics for one topic: one wins, the loser says whom it lost to, and takes over when it is free.
fn two_objects(place: &Place) -> Result<()> {
    let ns = place.ns();
    place.namespace.add_topic("first", 2)?;
    let id = place.id("first")?;
    produce_numbers(ns, CLUSTER, "first", 1..=200, LIMIT)?;
    let rival = json!({ "spec": { "topicName": "first", "adoption": "Take" } });
    apply(ns, &merged(&topic("second", 2), &rival).to_string())?;
    let says = place.says("second", "Conflict")?;
    ensure!(says.contains(&format!("Topic {ns}/first")), "it does not say whom it lost to: {says}");
    ensure!(get(ns, "topic", "first")?.is_some_and(|object| ready(&object)), "the winner lost its Ready");
    delete(ns, "topic", "first", LIMIT)?;
    place.ready("second")?;
    ensure!(place.id("second")? == id, "another topic was made");
    place.records("first", 1..=200)?;
    seen(format!(
        "two Topics for one topic: the second says {says:?}, and has it with its 200 records when the first is gone"
    ))
}

/// A topic that was made by hand.
fn adopted(place: &Place) -> Result<()> {
    let ns = place.ns();
    place.namespace.create_topic(CLUSTER, "legacy", 2)?;
    produce_numbers(ns, CLUSTER, "legacy", 1..=100, LIMIT)?;
    apply(ns, &topic("legacy", 3).to_string())?;
    let refused = place.says("legacy", "Exists")?;
    ensure!(place.partitions("legacy")? == 2, "it was changed without being adopted");
    patch(ns, "topic", "legacy", &json!({ "spec": { "adoption": "IfMatches" } }))?;
    until("the difference to be named", LIMIT, || {
        let says = place.says("legacy", "Exists")?;
        ensure!(says.contains("2 partitions, 3 wished"), "{says}");
        Ok(Some(()))
    })?;
    patch(ns, "topic", "legacy", &json!({ "spec": { "adoption": "Take" } }))?;
    place.ready("legacy")?;
    ensure!(place.partitions("legacy")? == 3, "it was adopted and not grown");
    place.records("legacy", 1..=100)?;

    place.namespace.create_topic(CLUSTER, "alike", 2)?;
    apply(ns, &merged(&topic("alike", 2), &json!({ "spec": { "adoption": "IfMatches" } })).to_string())?;
    place.ready("alike")?;
    seen(format!(
        "a topic made by hand: {refused:?}; IfMatches names the difference, Take adopts and grows it with its records"
    ))
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn a_topic_that_is_retained_stays_and_its_claim_is_freed() -> Result<()> {
    let place = Place::new("retain")?;
    let ns = place.ns();
    apply(ns, &merged(&topic("kept", 2), &json!({ "spec": { "deletionPolicy": "Retain" } })).to_string())?;
    let object = place.ready("kept")?;
    ensure!(object["metadata"]["finalizers"].is_null(), "Retain needs no finalizer: {}", object["metadata"]);
    produce_numbers(ns, CLUSTER, "kept", 1..=100, LIMIT)?;
    delete(ns, "topic", "kept", LIMIT)?;
    ensure!(place.partitions("kept")? == 2, "it went with its object");
    let heir = json!({ "spec": { "topicName": "kept", "adoption": "IfMatches" } });
    apply(ns, &merged(&topic("heir", 2), &heir).to_string())?;
    let says = place.says("heir", "Conflict")?;
    // Two complete lists without the former owner.
    place.namespace.wait_ready("topic", "heir", LIMIT * 5)?;
    place.records("kept", 1..=100)?;
    seen(format!(
        "Retain: no finalizer, the topic stays; the next owner waits ({says}) and has it when the claim is freed"
    ))
}
