//! The rules of the definition once more (rule 13), for the operator and for clusters without Kubernetes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tidemill_types::{GroupName, StartAt, TopicName};

use super::{ConsumerGroup, GroupMode};
use crate::topic::Violation;

const HOUR_MS: u64 = 3_600_000;

/// `earliest`, `latest` or a time; `None` for anything else.
#[must_use]
pub fn parse_position(text: &str) -> Option<StartAt> {
    match text {
        "earliest" => Some(StartAt::Earliest),
        "latest" => Some(StartAt::Latest),
        time => {
            let time: Time = serde_json::from_value(serde_json::Value::String(time.to_owned())).ok()?;
            Some(StartAt::Timestamp(time.0.as_millisecond()))
        }
    }
}

/// `TOPIC/PARTITION`.
pub(crate) fn parse_partition(text: &str) -> Option<(&str, u32)> {
    let (topic, index) = text.rsplit_once('/')?;
    Some((topic, index.parse().ok().filter(|n| *n < 100_000)?))
}

/// Everything that is wrong with a ConsumerGroup, `old` being what it was before, if it was there.
#[must_use]
pub fn validate(group: &ConsumerGroup, old: Option<&ConsumerGroup>) -> Vec<Violation> {
    let mut out = Vec::new();
    let s = &group.spec;
    let mut check = |good: bool, field: &str, message: &str| {
        if !good {
            out.push(Violation::new(field, message));
        }
    };
    let name = GroupName::new(group.group_name()).is_ok();
    check(name, "spec.groupName", "a group's name has 1 to 249 printable characters without a space");
    let topics = s.topics.iter().all(|t| TopicName::new(t).is_ok());
    let rule =
        "a topic's name has 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', and is not '.' or '..'";
    check(topics, "spec.topics", rule);
    let stream = s.mode == GroupMode::Stream;
    let queues = "delivery belongs to the modes Queue and FifoQueue: a stream has offsets, not deliveries";
    check(!stream || s.delivery.is_none(), "spec.delivery", queues);
    if let Some(a) = &s.assignment {
        let rule = "assignment belongs to mode Stream: a queue gives each message to whoever asks";
        check(stream, "spec.assignment", rule);
        check(
            a.strategy.is_none() || a.fixed.is_empty(),
            "spec.assignment",
            "it has either strategy or static",
        );
        let rule = "a member is named by its instance id, 1 to 249 printable characters without a space, and has a partition";
        let printable = |m: &String| (1..=249).contains(&m.len()) && m.bytes().all(|b| b.is_ascii_graphic());
        check(a.fixed.iter().all(|(m, p)| printable(m) && !p.0.is_empty()), "spec.assignment.static", rule);
        let all = || a.fixed.values().flat_map(|p| &p.0);
        let good =
            all().all(|p| parse_partition(p).is_some_and(|(topic, _)| s.topics.iter().any(|t| t == topic)));
        check(good, "spec.assignment.static", "each is TOPIC/PARTITION with one of spec.topics");
        let mut named: Vec<_> = all().collect();
        named.sort_unstable();
        named.dedup();
        check(
            named.len() == all().count(),
            "spec.assignment.static",
            "each partition is given to one member",
        );
    }
    let position = "earliest, latest, or a time such as 2026-01-31T00:00:00Z";
    let start = s.start_at.as_ref().is_none_or(|at| parse_position(at).is_some());
    check(start, "spec.startAt", position);
    if let Some(d) = &s.delivery {
        let within = |v: &Option<crate::Duration>, min: u64, max: u64| {
            v.as_ref().is_none_or(|v| v.millis().is_ok_and(|ms| (min..=max).contains(&ms)))
        };
        let lease = within(&d.lease_duration, 1_000, 12 * HOUR_MS);
        check(lease, "spec.delivery.leaseDuration", "a duration from 1s to 12h, such as 30s");
        check(within(&d.backoff, 0, 12 * HOUR_MS), "spec.delivery.backoff", "a duration of at most 12h");
        let window = within(&d.dedup_window, 0, 24 * HOUR_MS);
        check(window, "spec.delivery.dedupWindow", "a duration of at most 24h, such as 5m");
        let other = d.dead_letter_topic.as_ref().is_none_or(|t| !s.topics.contains(t));
        check(other, "spec.delivery.deadLetterTopic", "another topic than those that the group reads");
    }
    let reset = s.reset.as_ref().is_none_or(|r| parse_position(&r.to).is_some());
    check(reset, "spec.reset.to", position);
    if let Some(old) = old.map(|o| &o.spec) {
        let cluster = "clusterRef is immutable: make another ConsumerGroup instead";
        check(s.cluster_ref == old.cluster_ref, "spec.clusterRef", cluster);
        let name = "groupName is immutable, set and unset included: make another ConsumerGroup instead";
        check(s.group_name == old.group_name, "spec.groupName", name);
        let mode = "mode is immutable: offsets and deliveries do not turn into each other";
        check(s.mode == old.mode, "spec.mode", mode);
    }
    out
}
