//! What a user asks for.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClusterStatus, Storage, StoragePolicy, Updates, defaults};
use crate::{Duration, LocalRef, PodTemplate, Quantity, Resources};

/// A Tidemill cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "tidemill.dev",
    version = "v1alpha1",
    kind = "Cluster",
    namespaced,
    doc = "A Tidemill cluster: metadata quorum, bookies and brokers.",
    status = "ClusterStatus",
    derive = "PartialEq",
    shortname = "tmc",
    category = "tidemill",
    scale(
        spec_replicas_path = ".spec.brokers.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].reason"),
    printcolumn(name = "Brokers", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Cluster-Id", type_ = "string", json_path = ".status.clusterId", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].message",
        priority = 1
    ),
    validation = Rule::new("self.metadata.name.size() <= 24 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name of a Cluster has at most 24 characters: lower-case letters, digits and '-', a letter first: pods and volumes are named after it")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.image) && has(self.version))")
    .message("give either version or image: image names a whole image, version only the tag of the default one"))]
pub struct ClusterSpec {
    /// Version of Tidemill, such as 0.1.0; absent = the operator's own when the Cluster is made, pinned from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$"), length(min = 1, max = 128))]
    pub version: Option<String>,
    /// Whole name of the image instead of `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Always, IfNotPresent or Never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^(Always|IfNotPresent|Never)$"), length(max = 12))]
    pub image_pull_policy: Option<String>,
    /// Secrets for the registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub image_pull_secrets: Vec<LocalRef>,
    /// The metadata quorum.
    #[serde(default)]
    pub meta: Meta,
    /// Pools of bookies. A pool that is taken out is drained and then removed.
    #[schemars(length(min = 1, max = 16))]
    pub bookie_pools: Vec<BookiePool>,
    /// The brokers.
    #[serde(default)]
    pub brokers: Brokers,
    /// Object storage for closed ledgers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<Offload>,
    /// Where pods may lie.
    #[serde(default)]
    pub placement: Placement,
    /// Ports of the client Service; none = one port 7450 named grpc.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub listeners: Vec<Listener>,
    /// Rolling updates.
    #[serde(default)]
    pub updates: Updates,
    /// Fate of the volumes.
    #[serde(default)]
    pub storage_policy: StoragePolicy,
    /// Who may use the Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// For Topics that do not say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic_defaults: Option<TopicDefaults>,
    /// Configuration keys of the roles, such as `broker.roll-bytes` or `bookie.gc-pass-ms`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = Rule::new("self.all(k, k.matches('^(meta|bookie|broker)[.][a-z][a-z0-9-]*$'))")
        .message("keys are ROLE.KEY with the role meta, bookie or broker, such as broker.roll-bytes"))]
    pub config: BTreeMap<String, String>,
    /// Changes nothing while true; pods go on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// The metadata quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.replicas >= oldSelf.replicas")
    .message("the quorum can grow but not shrink: 1 to 3 to 5"))]
pub struct Meta {
    /// Members: 1, 3 or 5.
    #[serde(default = "defaults::default_meta")]
    #[schemars(range(min = 1, max = 5))]
    #[x_kube(validation = Rule::new("self in [1, 3, 5]").message("the quorum has 1, 3 or 5 members"))]
    pub replicas: i32,
    /// Volume of each member.
    #[serde(default = "meta_storage")]
    pub storage: Storage,
    /// Processor and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Additions to the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,
}

fn meta_storage() -> Storage {
    Storage { size: Quantity::new("10Gi"), class: None }
}

impl Default for Meta {
    fn default() -> Self {
        Self { replicas: defaults::default_meta(), storage: meta_storage(), resources: None, template: None }
    }
}

/// Bookies with one kind of disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BookiePool {
    /// Name; pods are CLUSTER-bookie-NAME-N.
    #[schemars(regex(pattern = "^[a-z]([-a-z0-9]*[a-z0-9])?$"), length(min = 1, max = 20))]
    pub name: String,
    /// Bookies. Fewer than now: those with the highest numbers are drained first.
    #[serde(default = "defaults::bookies")]
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: i32,
    /// Volume of each bookie.
    pub storage: Storage,
    /// Zones in which its pods may lie; none = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub zones: Vec<String>,
    /// Processor and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Additions to the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,
}

/// The brokers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Brokers {
    /// Brokers. Leave it out when an autoscaler owns it.
    #[serde(default = "defaults::default_brokers")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: i32,
    /// Processor and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Additions to the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,
}

impl Default for Brokers {
    fn default() -> Self {
        Self { replicas: defaults::default_brokers(), resources: None, template: None }
    }
}

/// A bucket for closed ledgers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.bucket == oldSelf.bucket && has(self.prefix) == has(oldSelf.prefix) && (!has(self.prefix) || self.prefix == oldSelf.prefix)")
    .message("bucket and prefix are immutable: what was offloaded lies there"))]
pub struct Offload {
    /// Bucket.
    #[schemars(length(min = 3, max = 63))]
    pub bucket: String,
    /// Prefix of all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub prefix: Option<String>,
    /// Region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub region: Option<String>,
    /// Address of an S3-compatible service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https?://"), length(max = 512))]
    pub endpoint: Option<String>,
    /// Keys; absent = the pod's own identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<OffloadCredentials>,
}

/// Keys for the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OffloadCredentials {
    /// Secret with `accesskey` and `secretkey`.
    pub secret_ref: LocalRef,
}

/// Where pods may lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Label of nodes that tells their failure zone.
    #[serde(default = "defaults::topology_key")]
    #[schemars(length(min = 1, max = 316))]
    pub topology_key: String,
}

impl Default for Placement {
    fn default() -> Self {
        Self { topology_key: defaults::topology_key() }
    }
}

/// A port of the client Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// Name of the port.
    #[schemars(regex(pattern = "^[a-z]([-a-z0-9]*[a-z0-9])?$"), length(min = 1, max = 15))]
    pub name: String,
    /// Number of the port.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: i32,
    /// Encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
}

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.secretName) != has(self.issuerRef)")
    .message("tls needs exactly one of secretName and issuerRef"))]
pub struct ListenerTls {
    /// Secret of type kubernetes.io/tls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: Option<String>,
    /// An issuer of cert-manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_ref: Option<LocalRef>,
}

/// Who may use the Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Access {
    /// Namespaces besides the Cluster's own whose Topics and ConsumerGroups may name it; `*` = all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    pub topic_namespaces: Vec<String>,
}

/// For Topics that do not say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.copies) || !has(self.ackQuorum) || self.copies >= self.ackQuorum")
    .message("ackQuorum is at most copies"))]
pub struct TopicDefaults {
    /// Copies of each record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    pub copies: Option<i32>,
    /// Copies that must be on disk before a record is acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    pub ack_quorum: Option<i32>,
    /// Retention by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_time: Option<Duration>,
    /// Retention by size of a partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_bytes: Option<Quantity>,
}
