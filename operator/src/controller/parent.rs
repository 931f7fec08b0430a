//! The Cluster of an object, as a gate of its plan.

use std::sync::Arc;

use futures::FutureExt;
use kube::{
    Api, ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use tidemill_crd::{Cluster, ClusterRef, plan::ClusterGate};

use super::PassError;
use crate::context::Context;

/// The Clusters as last seen.
#[derive(Clone)]
pub(super) struct Parents(pub(super) Store<Cluster>);

impl Parents {
    /// Whether they were listed: before, every object looks as if its Cluster were gone.
    pub(super) fn known(&self) -> bool {
        self.0.wait_until_ready().now_or_never().is_some_and(|known| known.is_ok())
    }

    /// The Cluster that an object of this namespace names.
    pub(super) fn get(&self, reference: &ClusterRef, namespace: &str) -> Option<Arc<Cluster>> {
        let of = reference.namespace.as_deref().unwrap_or(namespace);
        self.0.get(&ObjectRef::new(&reference.name).within(of))
    }

    /// For a deletion: a Cluster that is gone, that goes, or that never had a quorum has nothing to tell anything to. "Not
    /// there" has to be true, and the store may be behind.
    pub(super) async fn to_tell(
        &self,
        context: &Context,
        reference: &ClusterRef,
        namespace: &str,
    ) -> Result<Option<Cluster>, PassError> {
        let of = reference.namespace.as_deref().unwrap_or(namespace);
        let cluster = match self.get(reference, namespace) {
            Some(cluster) => Some((*cluster).clone()),
            None => Api::<Cluster>::namespaced(context.client.clone(), of)
                .get_opt(&reference.name)
                .await
                .map_err(PassError::kube("reading the Cluster"))?,
        };
        Ok(cluster.filter(|c| {
            c.metadata.deletion_timestamp.is_none()
                && c.status.as_ref().is_some_and(|s| s.cluster_id.is_some())
        }))
    }
}

/// Whether the Cluster of an object of this namespace can be worked on.
pub(super) fn gate(reference: &ClusterRef, namespace: &str, cluster: Option<&Cluster>) -> ClusterGate {
    let name = &reference.name;
    let Some(cluster) = cluster else { return ClusterGate::Missing { cluster: name.clone() } };
    if !allowed(namespace, cluster) {
        return ClusterGate::Forbidden { cluster: name.clone(), namespace: namespace.to_owned() };
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return ClusterGate::NotReady { why: format!("Cluster {name} is being deleted") };
    }
    if cluster.status.as_ref().and_then(|s| s.cluster_id.as_ref()).is_none() {
        return ClusterGate::NotReady { why: format!("Cluster {name} does not serve yet") };
    }
    ClusterGate::Open
}

/// The Cluster's own namespace always may; others by its list.
fn allowed(namespace: &str, cluster: &Cluster) -> bool {
    cluster.namespace().as_deref() == Some(namespace)
        || cluster
            .spec
            .access
            .as_ref()
            .is_some_and(|a| a.topic_namespaces.iter().any(|n| n == "*" || n == namespace))
}
