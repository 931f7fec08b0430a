//! What a user asks for.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConsumerGroupStatus;
use crate::{ClusterRef, Duration};

/// A consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "tidemill.dev",
    version = "v1alpha1",
    kind = "ConsumerGroup",
    namespaced,
    doc = "A consumer group of a Tidemill cluster.",
    status = "ConsumerGroupStatus",
    derive = "PartialEq",
    shortname = "tmcg",
    category = "tidemill",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Lag", type_ = "string", json_path = ".status.lagBucket"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.groupName) == has(oldSelf.groupName) && (!has(self.groupName) || self.groupName == oldSelf.groupName)")
    .message("groupName is immutable, set and unset included: make another ConsumerGroup instead"))]
#[x_kube(validation = Rule::new("self.mode != 'Stream' || !has(self.delivery)")
    .message("delivery belongs to the modes Queue and FifoQueue: a stream has offsets, not deliveries"))]
pub struct ConsumerGroupSpec {
    /// The Cluster that holds it.
    #[x_kube(validation = Rule::new("self == oldSelf").message("clusterRef is immutable: make another ConsumerGroup instead"))]
    pub cluster_ref: ClusterRef,
    /// Name of the group; absent = the object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 249))]
    pub group_name: Option<String>,
    /// Topics that it reads, by their names in the Cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 249)))]
    pub topics: Vec<String>,
    /// How records are handed out.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("mode is immutable: offsets and deliveries do not turn into each other"))]
    pub mode: GroupMode,
    /// Who reads which partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
    /// Where a group without offsets begins: earliest, latest, or a time such as 2026-01-31T00:00:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = "^(earliest|latest|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2}))$"),
        length(max = 40)
    )]
    pub start_at: Option<String>,
    /// Queues: leases and dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// When the group counts as behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<GroupLimits>,
    /// Moves the committed offsets, once for each new id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// What becomes of the group when this object is deleted.
    #[serde(default)]
    pub deletion_policy: GroupDeletionPolicy,
    /// Changes nothing while true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// How records are handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GroupMode {
    /// Each partition to one member, in order.
    #[default]
    Stream,
    /// Each message to any member, with a lease.
    Queue,
    /// As Queue, in order within a message group.
    FifoQueue,
}

/// Who reads which partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Assignment {
    /// How partitions are spread over members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Partitions of members by their instance id, as TOPIC/PARTITION; the others are read by nobody.
    #[serde(rename = "static", skip_serializing_if = "BTreeMap::is_empty")]
    pub fixed: BTreeMap<String, MemberPartitions>,
}

/// Partitions of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MemberPartitions(
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 260)))] pub Vec<String>,
);

/// How partitions are spread over members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Evenly, moving as few as possible while the others go on.
    CooperativeSticky,
    /// Neighbours together.
    Range,
    /// Evenly.
    Uniform,
}

/// Leases and dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Delivery {
    /// How long a member has for a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration: Option<Duration>,
    /// Deliveries before a message goes to the dead-letter topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_deliveries: Option<i32>,
    /// Wait before a released message is delivered again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Duration>,
    /// Topic for messages that nobody could handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 249))]
    pub dead_letter_topic: Option<String>,
    /// Within this time a dedup id counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_window: Option<Duration>,
}

/// When the group counts as behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupLimits {
    /// Records.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991i64))]
    pub max_lag: Option<i64>,
}

/// Moves the committed offsets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reset {
    /// A new id is a new reset; the same again does nothing.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// earliest, latest, or a time.
    #[schemars(
        regex(pattern = "^(earliest|latest|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2}))$"),
        length(max = 40)
    )]
    pub to: String,
    /// Waits until the group has no members. When false, members are removed first; they join again by themselves.
    #[serde(default = "yes")]
    pub require_empty: bool,
}

fn yes() -> bool {
    true
}

/// What becomes of the group when its object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GroupDeletionPolicy {
    /// Offsets and configuration stay.
    #[default]
    Retain,
    /// They go, once the group has no members.
    Delete,
}

impl ConsumerGroup {
    /// Name of the group in the cluster.
    #[must_use]
    pub fn group_name(&self) -> &str {
        let object = self.metadata.name.as_deref().unwrap_or_default();
        self.spec.group_name.as_deref().unwrap_or(object)
    }
}
