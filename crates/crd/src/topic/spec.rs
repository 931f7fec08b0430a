//! What a user asks for.

use std::{borrow::Cow, collections::BTreeMap};

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::TopicStatus;
use crate::{ClusterRef, Duration, Quantity};

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "tidemill.dev",
    version = "v1alpha1",
    kind = "Topic",
    namespaced,
    doc = "A topic of a Tidemill cluster.",
    status = "TopicStatus",
    derive = "PartialEq",
    shortname = "tmt",
    category = "tidemill",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].reason"),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterRef.name"),
    printcolumn(name = "Topic", type_ = "string", json_path = ".status.topicName"),
    printcolumn(name = "Partitions", type_ = "integer", json_path = ".status.partitions"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].message",
        priority = 1
    ),
    validation = Rule::new("has(self.spec.topicName) || self.metadata.name.size() <= 249")
        .message("the name of a topic has at most 249 characters: give a shorter one in spec.topicName")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.topicName) == has(oldSelf.topicName) && (!has(self.topicName) || self.topicName == oldSelf.topicName)")
    .message("topicName is immutable, set and unset included: make another Topic instead"))]
pub struct TopicSpec {
    /// The Cluster that holds it.
    #[x_kube(validation = Rule::new("self == oldSelf").message("clusterRef is immutable: make another Topic instead"))]
    pub cluster_ref: ClusterRef,
    /// Name of the topic; absent = the object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 249))]
    #[x_kube(validation = Rule::new("self != '.' && self != '..' && !self.startsWith('__')")
        .message("a topic's name is not '.' or '..' and does not begin with two underscores: those belong to the system"))]
    pub topic_name: Option<String>,
    /// Partitions; they only grow.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    #[x_kube(validation = Rule::new("self >= oldSelf").message("partitions only grow: records stay where they are"))]
    pub partitions: i32,
    /// Copies of each record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<Replication>,
    /// How long records stay; absent = the Cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// What becomes of old records.
    #[serde(default)]
    pub cleanup_policy: CleanupPolicy,
    /// Whether closed ledgers go to the Cluster's bucket; absent = as the Cluster says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<TopicOffload>,
    /// Largest record batch, such as 1Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_message_bytes: Option<Quantity>,
    /// Further configuration keys, such as `roll.bytes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// What happens when the topic is there already and nobody claims it.
    #[serde(default)]
    pub adoption: Adoption,
    /// What becomes of the topic when this object is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// How long a deleted topic's records stay, so that applying it again brings them back.
    #[serde(default = "purge_after")]
    pub purge_after: Duration,
    /// Changes nothing while true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

fn one() -> i32 {
    1
}

fn purge_after() -> Duration {
    Duration::new("72h")
}

/// Copies of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.copies >= self.ackQuorum")
    .message("ackQuorum is at most copies: no more copies can be waited for than there are"))]
pub struct Replication {
    /// Bookies that get each record.
    #[serde(default = "copies")]
    #[schemars(range(min = 1, max = 7))]
    pub copies: i32,
    /// Bookies that must have it on disk before it is acknowledged.
    #[serde(default = "ack_quorum")]
    #[schemars(range(min = 1, max = 7))]
    pub ack_quorum: i32,
}

fn copies() -> i32 {
    3
}

fn ack_quorum() -> i32 {
    2
}

/// Bucket of closed ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicOffload {
    /// Whether they go there.
    pub enabled: bool,
}

/// How long records stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retention {
    /// Such as 7d, or Unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<RetentionTime>,
    /// Bytes of a partition, such as 10Gi, or Unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<RetentionBytes>,
}

macro_rules! or_unlimited {
    ($(#[$doc:meta])* $name:ident($inner:ident), $pattern:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// `None` = Unlimited.
            #[must_use]
            pub fn limit(&self) -> Option<$inner> {
                (self.0 != "Unlimited").then(|| $inner(self.0.clone()))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "maxLength": 32, "pattern": $pattern})
            }
        }
    };
}

or_unlimited!(
    /// A duration or Unlimited.
    RetentionTime(Duration),
    r"^(Unlimited|([0-9]{1,12}(ms|s|m|h|d|w))+)$"
);
or_unlimited!(
    /// A size or Unlimited.
    RetentionBytes(Quantity),
    r"^(Unlimited|[0-9]{1,18}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?)$"
);

/// What becomes of old records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CleanupPolicy {
    /// They go by retention.
    #[default]
    Delete,
    /// The newest record of each key stays.
    Compact,
    /// Both.
    CompactAndDelete,
}

/// What happens when the topic is there already and nobody claims it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Adoption {
    /// A conflict.
    #[default]
    Fail,
    /// It is claimed when it is as the spec says, else a conflict.
    IfMatches,
    /// It is claimed and changed.
    Take,
}

/// What becomes of the topic when its object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It goes; its records stay for `purgeAfter`.
    #[default]
    Delete,
    /// It stays.
    Retain,
    /// It goes when it has no records; else the deletion waits and says so.
    DeleteIfEmpty,
}

impl Topic {
    /// Name of the topic in the cluster.
    #[must_use]
    pub fn topic_name(&self) -> &str {
        let object = self.metadata.name.as_deref().unwrap_or_default();
        self.spec.topic_name.as_deref().unwrap_or(object)
    }
}
