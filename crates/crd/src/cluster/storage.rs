//! Volumes.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;

/// A volume per pod. It may grow; its class never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
    .message("a volume can grow but not shrink: to get smaller volumes add a bookie pool and remove this one"))]
#[x_kube(validation = Rule::new("has(self.class) == has(oldSelf.class) && (!has(self.class) || self.class == oldSelf.class)")
    .message("class is immutable: to change it add a bookie pool with the other class and remove this one"))]
pub struct Storage {
    /// Size of each volume, such as 100Gi.
    pub size: Quantity,
    /// Storage class; absent = the default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub class: Option<String>,
}

/// What becomes of volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StoragePolicy {
    /// Retain keeps all volumes when the Cluster is deleted, so that a prune loses nothing. Delete deletes them with it.
    pub when_deleted: WhenDeleted,
}

/// Fate of the volumes of a deleted Cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenDeleted {
    /// They stay.
    #[default]
    Retain,
    /// They go.
    Delete,
}
