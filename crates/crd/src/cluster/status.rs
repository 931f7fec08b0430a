//! What the operator says. Nothing here moves by itself (rule 3): live numbers are metrics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;

/// State of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// The generation of the spec that this status judges; -1 = nobody has looked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,
    /// Conditions, one per type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Identity of the quorum, made once in the Cluster's life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Version that all pods run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Image that all pods shall run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Revision of the pod templates: a newer operator keeps it until the image changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub template_revision: Option<i32>,
    /// Members of the quorum and bookies, as the quorum knows them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberStatus>,
    /// Pools of bookies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolStatus>,
    /// Where clients connect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// What is about to happen and what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// Broker pods, for `/scale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub replicas: Option<i32>,
    /// Selector of broker pods, for `/scale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// Identity of its volume.
    pub uuid: String,
    /// Pod that carries it.
    pub name: String,
    /// meta, bookie or broker.
    pub role: String,
    /// Bookies: rw, ro, limbo, draining, lost or retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// A pool of bookies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// Name.
    pub name: String,
    /// Pods.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub replicas: i32,
    /// Pods that are ready.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub ready: i32,
    /// Bookies that are being drained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draining: Vec<String>,
}

/// An address for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Name of the listener.
    pub name: String,
    /// host:port.
    pub address: String,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// Names this plan in `updates.approvedPlan`.
    pub hash: String,
    /// Steps in order.
    pub steps: Vec<PlanStep>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// What is done, such as ReplacePod.
    pub action: String,
    /// To what, such as a pod's name.
    pub target: String,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}
