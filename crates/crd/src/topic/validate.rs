//! The rules of the definition once more (rule 13), for the operator and for clusters without Kubernetes.

use super::{Topic, wish};

/// 10 years.
const MAX_PURGE_MS: u64 = 10 * 366 * 24 * 3_600_000;

/// A rule that an object breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field, such as `spec.partitions`.
    pub field: String,
    /// What is allowed.
    pub message: String,
}

impl Violation {
    pub(crate) fn new(field: &str, message: impl Into<String>) -> Self {
        Self { field: field.to_owned(), message: message.into() }
    }
}

/// Everything that is wrong with a Topic, `old` being what it was before, if it was there. What this version does not do is
/// not wrong.
#[must_use]
pub fn validate(topic: &Topic, old: Option<&Topic>) -> Vec<Violation> {
    let mut out = Vec::new();
    let s = &topic.spec;
    let name = topic.metadata.name.as_deref().unwrap_or_default();
    if let Err(refused) = wish(name, s, None).map_err(|r| (!r.unsupported).then_some(r))
        && let Some(refused) = refused
    {
        out.push(Violation::new(&refused.field, refused.why));
    }
    let mut check = |good: bool, field, message: &str| {
        if !good {
            out.push(Violation::new(field, message));
        }
    };
    let purge = s.purge_after.millis().is_ok_and(|ms| ms <= MAX_PURGE_MS);
    check(purge, "spec.purgeAfter", "purgeAfter is a duration of at most 10 years, such as 72h");
    if let Some(r) = s.replication {
        let in_range = |n: i32| (1..=7).contains(&n);
        check(
            in_range(r.copies) && in_range(r.ack_quorum),
            "spec.replication",
            "copies and ackQuorum are 1 to 7",
        );
    }
    if let Some(old) = old.map(|o| &o.spec) {
        let cluster = "clusterRef is immutable: make another Topic instead";
        check(s.cluster_ref == old.cluster_ref, "spec.clusterRef", cluster);
        let name = "topicName is immutable, set and unset included: make another Topic instead";
        check(s.topic_name == old.topic_name, "spec.topicName", name);
        let partitions = "partitions only grow: records stay where they are";
        check(s.partitions >= old.partitions, "spec.partitions", partitions);
    }
    out
}
