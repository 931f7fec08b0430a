//! What the operator says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;

/// State of a ConsumerGroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerGroupStatus {
    /// The generation of the spec that this status judges; -1 = nobody has looked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,
    /// Conditions, one per type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Name of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    /// Empty, Rebalancing, Stable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Members.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub members: Option<i32>,
    /// Who reads what: at most 100 members and 1000 partitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<AssignmentStatus>,
    /// 0, <1k, <100k or >=100k records behind, steadily for a minute; the numbers are metrics and `tidemill group describe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_bucket: Option<String>,
    /// The last reset that was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reset: Option<LastReset>,
}

/// Partitions of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignmentStatus {
    /// The member.
    pub member: String,
    /// Partitions, as TOPIC/PARTITION.
    pub partitions: Vec<String>,
}

/// A reset that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastReset {
    /// Its id.
    pub id: String,
    /// Where the offsets went.
    pub to: String,
}
