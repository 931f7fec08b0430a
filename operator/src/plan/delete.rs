//! The delete branch (rule 1): it comes before every question about the cluster's health, and asks nobody.

use tidemill_crd::{Cluster, cluster::WhenDeleted};

use super::Action;
use crate::{names::FINALIZER_VOLUMES, observe::Observed};

/// What a Cluster that is being deleted still needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// Sets first, then their volumes; the rest goes by owner references.
    pub actions: Vec<Action>,
    /// The finalizer may go once they succeeded.
    pub release: bool,
}

/// The plan for a Cluster that is being deleted. With Retain there is no finalizer and nothing to do.
#[must_use]
pub fn deletion(cluster: &Cluster, observed: &Observed) -> Deletion {
    let mut actions = Vec::new();
    let finalizer = cluster.metadata.finalizers.as_deref().unwrap_or_default();
    let release = finalizer.iter().any(|f| f == FINALIZER_VOLUMES);
    if release && cluster.spec.storage_policy.when_deleted == WhenDeleted::Delete {
        for set in observed.sets.values().filter(|s| !s.deleting) {
            actions.push(Action::DeleteSet {
                name: set.name.clone(),
                uid: set.uid.clone(),
                version: set.version.clone(),
            });
        }
        for claim in observed.claims.values().filter(|c| !c.deleting) {
            actions.push(Action::DeleteClaim {
                name: claim.name.clone(),
                uid: claim.uid.clone(),
                version: claim.version.clone(),
                uuid: claim.uuid.clone().unwrap_or_default(),
            });
        }
    }
    Deletion { actions, release }
}
