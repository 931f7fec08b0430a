//! From a spec to what the data plane is asked for. Pure; the same for the operator and for `tidemill apply`.

use std::collections::BTreeMap;

use super::{CleanupPolicy, TopicSpec};
use crate::cluster::TopicDefaults;

/// What the data plane is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfigWish {
    /// Name of the topic.
    pub name: String,
    /// Partitions.
    pub partitions: u32,
    /// Configuration keys of `CreateTopic`.
    pub config: BTreeMap<String, String>,
    /// What is allowed and still worth a warning.
    pub warnings: Vec<String>,
}

/// A spec that cannot be: the field and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub(crate) struct Refused {
    /// Path in the spec.
    pub(crate) field: String,
    /// What is allowed.
    pub(crate) why: String,
    /// This version cannot do it, as opposed to nobody ever could.
    pub(crate) unsupported: bool,
}

fn invalid(field: &str, why: impl Into<String>) -> Refused {
    Refused { field: field.to_owned(), why: why.into(), unsupported: false }
}

fn unsupported(field: &str, why: &str) -> Refused {
    Refused { field: field.to_owned(), why: why.to_owned(), unsupported: true }
}

/// Keys that have a field of their own.
const FIELDS: [(&str, &str); 6] = [
    ("cleanup.policy", "spec.cleanupPolicy"),
    ("copies", "spec.replication.copies"),
    ("ackQuorum", "spec.replication.ackQuorum"),
    ("retention.ms", "spec.retention.time"),
    ("retention.bytes", "spec.retention.bytes"),
    ("max.message.bytes", "spec.maxMessageBytes"),
];
/// Longest name.
const MAX_NAME: usize = 249;

/// Judges what the schema judges once more (rule 13), fills in the Cluster's defaults, and refuses what this version lacks.
///
/// # Errors
/// [`Refused`].
pub(crate) fn wish(
    object_name: &str,
    spec: &TopicSpec,
    defaults: Option<&TopicDefaults>,
) -> Result<TopicConfigWish, Refused> {
    let name = name_of(object_name, spec)?;
    let partitions = u32::try_from(spec.partitions)
        .ok()
        .filter(|p| (1..=100_000).contains(p))
        .ok_or_else(|| invalid("spec.partitions", "1 to 100000"))?;
    if spec.offload.is_some_and(|o| o.enabled) {
        return Err(unsupported("spec.offload", "this version does not offload to object storage yet"));
    }
    let mut config = BTreeMap::new();
    let mut warnings = Vec::new();
    for (key, value) in &spec.config {
        if let Some((_, field)) = FIELDS.iter().find(|(k, _)| k == key) {
            return Err(invalid(
                &format!("spec.config[{key}]"),
                format!("it has a field of its own: {field}"),
            ));
        }
        config.insert(key.clone(), value.clone());
    }
    let empty = TopicDefaults::default();
    let defaults = defaults.unwrap_or(&empty);
    let copies = spec.replication.map(|r| r.copies).or(defaults.copies);
    let acks = spec.replication.map(|r| r.ack_quorum).or(defaults.ack_quorum);
    if let (Some(copies), Some(acks)) = (copies, acks)
        && copies < acks
    {
        return Err(invalid("spec.replication", "ackQuorum is at most copies"));
    }
    let (shown_copies, shown_acks) = (copies.unwrap_or(3), acks.unwrap_or(2));
    if shown_acks < 2 {
        warnings.push("ackQuorum below 2: one lost disk can lose acknowledged records".to_owned());
    } else if shown_copies == shown_acks {
        warnings.push(
            "copies equals ackQuorum: one bookie that is away stops writes until it is replaced".to_owned(),
        );
    }
    let policy = match spec.cleanup_policy {
        CleanupPolicy::Delete => None,
        CleanupPolicy::Compact => Some("compact".to_owned()),
        CleanupPolicy::CompactAndDelete => Some("compact,delete".to_owned()),
    };
    let mut number = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            config.insert(key.to_owned(), value);
        }
    };
    number("cleanup.policy", policy);
    number("copies", copies.map(|c| c.to_string()));
    number("ackQuorum", acks.map(|a| a.to_string()));
    number("retention.ms", time(spec, defaults)?);
    number("retention.bytes", bytes(spec, defaults)?);
    let largest = spec
        .max_message_bytes
        .as_ref()
        .map(|q| q.bytes().map_err(|e| invalid("spec.maxMessageBytes", e.to_string())));
    number("max.message.bytes", largest.transpose()?.map(|b| b.to_string()));
    Ok(TopicConfigWish { name, partitions, config, warnings })
}

fn name_of(object_name: &str, spec: &TopicSpec) -> Result<String, Refused> {
    let name = spec.topic_name.as_deref().unwrap_or(object_name);
    let characters = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if name.is_empty()
        || name.len() > MAX_NAME
        || !characters
        || name == "."
        || name == ".."
        || name.starts_with("__")
    {
        let why = "1 to 249 of a-z A-Z 0-9 . _ -, not '.' or '..', not beginning with two underscores";
        return Err(invalid("spec.topicName", why));
    }
    Ok(name.to_owned())
}

/// As the data plane writes it: -1 = unlimited.
fn time(spec: &TopicSpec, defaults: &TopicDefaults) -> Result<Option<String>, Refused> {
    let bad = |e: crate::ParseError| invalid("spec.retention.time", e.to_string());
    match spec.retention.as_ref().and_then(|r| r.time.as_ref()) {
        Some(time) => match time.limit() {
            None => Ok(Some("-1".to_owned())),
            Some(d) => Ok(Some(d.millis().map_err(bad)?.to_string())),
        },
        None => defaults
            .retention_time
            .as_ref()
            .map(|d| d.millis().map_err(bad).map(|ms| ms.to_string()))
            .transpose(),
    }
}

fn bytes(spec: &TopicSpec, defaults: &TopicDefaults) -> Result<Option<String>, Refused> {
    let bad = |e: crate::ParseError| invalid("spec.retention.bytes", e.to_string());
    match spec.retention.as_ref().and_then(|r| r.bytes.as_ref()) {
        Some(size) => match size.limit() {
            None => Ok(Some("-1".to_owned())),
            Some(q) => Ok(Some(q.bytes().map_err(bad)?.to_string())),
        },
        None => defaults
            .retention_bytes
            .as_ref()
            .map(|q| q.bytes().map_err(bad).map(|b| b.to_string()))
            .transpose(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duration, topic::*};

    fn spec(yaml: &str) -> TopicSpec {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_spec_becomes_configuration() {
        let s = spec(
            "clusterRef: {name: demo}\npartitions: 8\nretention: {time: 7d, bytes: Unlimited}\nmaxMessageBytes: 2Mi\nconfig: {roll.ms: '5'}",
        );
        let w = wish("orders", &s, None).unwrap();
        assert_eq!((w.name.as_str(), w.partitions, w.warnings.len()), ("orders", 8, 0));
        let pairs: Vec<_> = w.config.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            pairs,
            ["max.message.bytes=2097152", "retention.bytes=-1", "retention.ms=604800000", "roll.ms=5"]
        );
    }

    #[test]
    fn the_policy_becomes_a_key() {
        let policy = |p: &str| {
            let s = spec(&format!("clusterRef: {{name: demo}}\ncleanupPolicy: {p}"));
            wish("a", &s, None).unwrap().config.get("cleanup.policy").cloned()
        };
        assert_eq!(policy("Delete"), None, "the default of every version");
        assert_eq!(policy("Compact").as_deref(), Some("compact"));
        assert_eq!(policy("CompactAndDelete").as_deref(), Some("compact,delete"));
    }

    #[test]
    fn defaults_of_the_cluster_fill_in() {
        let d = TopicDefaults {
            copies: Some(2),
            retention_time: Some(Duration::new("1d")),
            ..TopicDefaults::default()
        };
        let w = wish("a", &spec("clusterRef: {name: demo}"), Some(&d)).unwrap();
        assert_eq!(w.config["copies"], "2");
        assert_eq!(w.config["retention.ms"], "86400000");
        assert_eq!(w.warnings.len(), 1, "2 copies, 2 acknowledgements");
        let own = spec("clusterRef: {name: demo}\nreplication: {copies: 3, ackQuorum: 2}");
        assert_eq!(wish("a", &own, Some(&d)).unwrap().config["copies"], "3");
    }

    #[test]
    fn rule_13_what_cannot_be_is_refused_with_its_field() {
        let field = |yaml: &str| wish("a", &spec(yaml), None).unwrap_err();
        let c = "clusterRef: {name: demo}\n";
        assert_eq!(field(&format!("{c}partitions: 0")).field, "spec.partitions");
        assert_eq!(field(&format!("{c}topicName: __x")).field, "spec.topicName");
        assert_eq!(field(&format!("{c}replication: {{copies: 2, ackQuorum: 3}}")).field, "spec.replication");
        assert_eq!(field(&format!("{c}retention: {{time: 5 days}}")).field, "spec.retention.time");
        assert!(field(&format!("{c}config: {{copies: '3'}}")).why.contains("spec.replication.copies"));
        assert!(field(&format!("{c}config: {{cleanup.policy: compact}}")).why.contains("spec.cleanupPolicy"));
        assert!(field(&format!("{c}offload: {{enabled: true}}")).unsupported);
    }
}
