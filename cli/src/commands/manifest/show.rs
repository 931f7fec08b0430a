//! Topics of a cluster as objects.

use serde_json::{Map, Value, json};
use tidemill_client::v1;
use tidemill_types::ErrorCode;

use super::Kind;
use crate::error::{CliError, Exit};

/// Namespace and name of the object that claims a topic: `Topic NAMESPACE/NAME`; without a claim the topic's own name.
pub(super) fn object_of(t: &v1::TopicState) -> (Option<String>, String) {
    let claim = t.claim.as_ref().or_else(|| t.tombstone.as_ref().and_then(|t| t.former.as_ref()));
    let named = claim.and_then(|c| c.owner.strip_prefix("Topic ")).and_then(|n| n.split_once('/'));
    match named {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, t.name.clone()),
    }
}

pub(super) fn object_name(t: &v1::TopicState) -> String {
    object_of(t).1
}

/// Whether a person means this topic: by its object, or by its own name.
pub(super) fn is_named(t: &v1::TopicState, namespace: &str, name: &str) -> bool {
    let (of, object) = object_of(t);
    t.name == name || (object == name && of.as_deref().is_none_or(|n| n == namespace))
}

pub(super) fn not_found(kind: Kind, name: &str) -> CliError {
    let (code, help) = match kind {
        Kind::ConsumerGroup => (ErrorCode::UnknownGroup, "`tidemill get consumergroups` shows what there is"),
        _ => (ErrorCode::UnknownTopic, "`tidemill get topics` shows what there is"),
    };
    CliError::new(format!("{}/{name}", kind.full()), "there is no such object", code)
        .exit(Exit::NotFound)
        .help(help)
}

/// A moment, as text.
pub(super) fn time(ms: i64) -> String {
    let since = std::time::Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since).to_string()
}

/// One word for the state of a topic.
pub(super) fn ready(t: &v1::TopicState) -> (&'static str, &'static str) {
    match (&t.tombstone, t.partitions_without_owner) {
        (Some(_), _) => ("False", "Deleted"),
        (None, 0) => ("True", "Ready"),
        (None, _) => ("False", "WaitingForOwners"),
    }
}

/// The object as a manifest with its status.
pub(super) fn manifest(t: &v1::TopicState) -> Value {
    let (namespace, name) = object_of(t);
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(name));
    if let Some(namespace) = namespace {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    let mut config: Vec<(&String, &String)> = t.config.iter().collect();
    config.sort();
    let number = |key: &str| t.config.get(key).and_then(|v| v.parse::<u64>().ok());
    let mut spec = Map::new();
    if name != t.name {
        spec.insert("topicName".to_owned(), json!(t.name));
    }
    spec.insert("partitions".to_owned(), json!(t.partitions));
    spec.insert(
        "replication".to_owned(),
        json!({"copies": number("copies"), "ackQuorum": number("ackQuorum")}),
    );
    let (status, reason) = ready(t);
    let mut of = Map::new();
    of.insert("topicId".to_owned(), json!(t.id));
    of.insert("topicName".to_owned(), json!(t.name));
    of.insert("partitions".to_owned(), json!(t.partitions));
    of.insert(
        "config".to_owned(),
        config.into_iter().map(|(k, v)| (k.clone(), json!(v))).collect::<Map<_, _>>().into(),
    );
    of.insert("claimedBy".to_owned(), json!(t.claim.as_ref().map(|c| c.owner.clone())));
    if let Some(tombstone) = &t.tombstone {
        of.insert("pendingPurgeAt".to_owned(), json!(time(tombstone.purge_at_ms)));
    }
    of.insert("conditions".to_owned(), json!([{"type": "Ready", "status": status, "reason": reason}]));
    json!({
        "apiVersion": format!("{}/{}", tidemill_crd::GROUP, tidemill_crd::VERSION),
        "kind": "Topic",
        "metadata": metadata,
        "spec": spec,
        "status": of,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_by_both_names() {
        let claim = v1::TopicClaim { uid: "manifest:team/a".into(), owner: "Topic team/a".into() };
        let t = v1::TopicState { name: "orders.v1".into(), claim: Some(claim), ..v1::TopicState::default() };
        assert!(is_named(&t, "team", "a") && is_named(&t, "x", "orders.v1") && !is_named(&t, "x", "a"));
        let m = manifest(&t);
        assert_eq!(
            (m["metadata"]["name"].as_str(), m["spec"]["topicName"].as_str()),
            (Some("a"), Some("orders.v1"))
        );
        let free = v1::TopicState { name: "b".into(), ..v1::TopicState::default() };
        assert!(is_named(&free, "any", "b"));
        assert_eq!(time(1_700_000_000_000), "2023-11-14T22:13:20Z");
    }
}
