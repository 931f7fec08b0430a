//! What the operator says.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;

/// State of a Topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicStatus {
    /// The generation of the spec that this status judges; -1 = nobody has looked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,
    /// Conditions, one per type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Id of the topic in its Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_id: Option<String>,
    /// Id of the Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Name of the topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_name: Option<String>,
    /// Partitions that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub partitions: Option<i32>,
    /// Configuration in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<EffectiveConfig>,
    /// Deleted: when its records go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_purge_at: Option<String>,
}

/// Configuration in effect: all keys with their values, as the data plane writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EffectiveConfig(pub BTreeMap<String, String>);
