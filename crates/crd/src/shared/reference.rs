//! References to other objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Cluster that an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// Name of the Cluster.
    #[schemars(length(min = 1, max = 24))]
    pub name: String,
    /// Namespace of the Cluster; absent = the object's own. Another one must be allowed by the Cluster's
    /// `access.topicNamespaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// An object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
