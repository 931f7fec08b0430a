//! The children of a Cluster, as objects for server-side apply. Pure, and byte-identical for equal input: every map is
//! sorted, nothing is drawn or read from a clock.
//!
//! Partial objects are built by hand: what the operator does not care about is not named, so others may own it.

mod budget;
mod claims;
mod pod;
mod policy;
mod service;
mod set;

use serde_json::{Value, json};
use tidemill_crd::{Cluster, cluster::BookiePool};

use crate::names::{Names, Role};

pub use claims::{CLAIM, claim_name, claim_of};

/// Newest form of the pod templates. A Cluster keeps the one it was made with until its image changes (rule 16).
pub const TEMPLATE_REVISION: i32 = 1;

/// What decides the children besides the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// Image of all pods.
    pub image: String,
    /// Form of the pod templates.
    pub template_revision: i32,
    /// Pods of the quorum.
    pub metas: i32,
    /// Pools with their pods, also those that are being removed.
    pub pools: Vec<(BookiePool, i32)>,
    /// Whether a bookie may be evicted now (rule 12).
    pub bookies_evictable: bool,
}

/// Why a Cluster cannot be rendered: the field and what is allowed. Checked by the CRD too (rule 13).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct RenderError {
    /// Path in the spec.
    pub field: String,
    /// What is allowed.
    pub why: String,
}

/// All children in the order in which they are applied.
///
/// # Errors
/// [`RenderError`].
pub fn children(cluster: &Cluster, names: &Names, wishes: &Wishes) -> Result<Vec<Value>, RenderError> {
    let spec = &cluster.spec;
    let mut out = Vec::new();
    for role in Role::ALL {
        out.push(account(names, role));
        out.push(service::headless(names, role));
        out.push(policy::network(names, role));
    }
    out.push(service::client(spec, names));
    out.push(client_config(spec, names));
    out.push(set::meta(spec, names, wishes)?);
    for (pool, replicas) in &wishes.pools {
        out.push(set::bookies(spec, pool, *replicas, names, wishes)?);
    }
    out.push(set::brokers(spec, names, wishes)?);
    out.extend(budget::budgets(spec, names, wishes));
    let owner = owner(cluster);
    for child in &mut out {
        if let Some(metadata) = child.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), json!(names.namespace));
            metadata.insert("ownerReferences".to_owned(), json!([owner]));
        }
    }
    Ok(out)
}

/// Controller reference to the Cluster.
fn owner(cluster: &Cluster) -> Value {
    json!({
        "apiVersion": format!("{}/{}", tidemill_crd::GROUP, tidemill_crd::VERSION),
        "kind": "Cluster",
        "name": cluster.metadata.name,
        "uid": cluster.metadata.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Pods talk to nobody's API: an account of their own, without a token.
fn account(names: &Names, role: Role) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": names.headless(role), "labels": names.labels(Some(role), None)},
        "automountServiceAccountToken": false,
    })
}

/// What a client needs, for `envFrom`.
fn client_config(spec: &tidemill_crd::ClusterSpec, names: &Names) -> Value {
    let port = spec.listeners.first().map_or(crate::names::PORT_GRPC, |l| l.port);
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("{}-client", names.cluster), "labels": names.labels(None, None)},
        "data": {"TIDEMILL_SERVER": format!("http://{}:{port}", names.client_host())},
    })
}
