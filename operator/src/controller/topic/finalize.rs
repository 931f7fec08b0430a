//! Finalizer and deletion of a Topic.

use std::time::Duration;

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    runtime::controller::Action,
};
use serde_json::json;
use tidemill_client::v1;
use tidemill_crd::{
    Cluster, Outcome, Topic, Verdict,
    topic::{self, DeletionPolicy},
};

use super::{
    Shared,
    judge::{Deleted, Judged, deleted},
    say,
};
use crate::controller::{PassError, jittered};

/// Finalizer of a Topic whose records go with it.
const FINALIZER: &str = "tidemill.dev/topic";

/// There only when something is to be done at the deletion (rule 1). True when it was changed: that comes back as an event.
pub(super) async fn align(topic: &Topic, shared: &Shared) -> Result<bool, PassError> {
    let wished = topic.spec.deletion_policy != DeletionPolicy::Retain;
    if wished == topic.finalizers().iter().any(|f| f == FINALIZER) {
        return Ok(false);
    }
    set(topic, shared, wished).await?;
    Ok(true)
}

/// The delete branch: before any question about the Cluster's health.
pub(super) async fn delete(topic: &Topic, shared: &Shared) -> Result<Action, PassError> {
    if !topic.finalizers().iter().any(|f| f == FINALIZER) {
        return Ok(Action::await_change());
    }
    match work(topic, shared).await? {
        Deleted::Done => {
            set(topic, shared, false).await?;
            Ok(Action::await_change())
        }
        Deleted::Waits(verdict) => {
            let judged = Judged { verdict, conditions: Vec::new(), state: None };
            say::status(&shared.context, topic, None, judged).await?;
            Ok(Action::requeue(jittered(Duration::from_secs(5))))
        }
    }
}

async fn work(topic: &Topic, shared: &Shared) -> Result<Deleted, PassError> {
    if topic.spec.deletion_policy == DeletionPolicy::Retain {
        return Ok(Deleted::Done);
    }
    let Some(cluster) = parent(topic, shared).await? else { return Ok(Deleted::Done) };
    // A spec that was never accepted made nothing.
    let Ok(wish) = topic::wish(&topic.name_any(), &topic.spec, cluster.spec.topic_defaults.as_ref()) else {
        return Ok(Deleted::Done);
    };
    let Ok(purge_after_ms) = topic.spec.purge_after.millis() else {
        return Ok(Deleted::Waits(Verdict::new(
            Outcome::Rejected,
            "InvalidSpec",
            format!("spec.purgeAfter: {:?} is not a duration", topic.spec.purge_after.0),
        )));
    };
    let deletion = v1::TopicDeletion {
        name: wish.name,
        claim_uid: topic.uid().unwrap_or_default(),
        purge_after_ms: i64::try_from(purge_after_ms).unwrap_or(i64::MAX),
        policy: match topic.spec.deletion_policy {
            DeletionPolicy::DeleteIfEmpty => v1::DeletePolicy::IfEmpty,
            DeletionPolicy::Delete | DeletionPolicy::Retain => v1::DeletePolicy::Tombstone,
        }
        .into(),
    };
    Ok(match shared.context.connection(&cluster).batches.delete(deletion).await {
        Ok(result) => deleted(&result),
        Err(e) => Deleted::Waits(Verdict::new(
            Outcome::Retrying,
            "ClusterUnavailable",
            format!("the deletion is tried again: {e}"),
        )),
    })
}

/// The Cluster, when there is one to tell: one that is gone, that goes, or that never had a quorum has no topics.
async fn parent(topic: &Topic, shared: &Shared) -> Result<Option<Cluster>, PassError> {
    let reference = &topic.spec.cluster_ref;
    let namespace = reference.namespace.clone().or_else(|| topic.namespace()).unwrap_or_default();
    let cluster = match shared.cluster(topic) {
        Some(cluster) => Some((*cluster).clone()),
        // The store may be behind; "not there" has to be true.
        None => Api::<Cluster>::namespaced(shared.context.client.clone(), &namespace)
            .get_opt(&reference.name)
            .await
            .map_err(PassError::kube("reading the Cluster"))?,
    };
    Ok(cluster.filter(|c| {
        c.metadata.deletion_timestamp.is_none() && c.status.as_ref().is_some_and(|s| s.cluster_id.is_some())
    }))
}

/// By resourceVersion, so that finalizers of others are never lost.
async fn set(topic: &Topic, shared: &Shared, wished: bool) -> Result<(), PassError> {
    let mut finalizers: Vec<String> =
        topic.finalizers().iter().filter(|f| *f != FINALIZER).cloned().collect();
    if wished {
        finalizers.push(FINALIZER.to_owned());
    }
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": topic.resource_version()}});
    let api: Api<Topic> =
        Api::namespaced(shared.context.client.clone(), &topic.namespace().unwrap_or_default());
    match api.patch(&topic.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(s)) if s.code == 404 => Ok(()),
        // Changed meanwhile: the newer object comes as an event.
        Err(kube::Error::Api(s)) if s.code == 409 && wished => Ok(()),
        Err(e) => Err(PassError::kube("changing the finalizer")(e)),
    }
}
