//! Finalizer and deletion of a Topic.

use std::time::Duration;

use kube::runtime::controller::Action;
use tidemill_crd::{Outcome, Topic, topic::DeletionPolicy};

use super::{
    Shared,
    pass::{Judged, deletion},
    say,
};
use crate::controller::{PassError, finalizer, jittered};

/// Finalizer of a Topic whose records go with it.
const FINALIZER: &str = "tidemill.dev/topic";

/// There only when something is to be done at the deletion (rule 1). True when it was changed: that comes back as an event.
pub(super) async fn align(topic: &Topic, shared: &Shared) -> Result<bool, PassError> {
    let wished = topic.spec.deletion_policy != DeletionPolicy::Retain;
    if wished == finalizer::has(topic, FINALIZER) {
        return Ok(false);
    }
    finalizer::set(&shared.context, topic, FINALIZER, wished).await?;
    Ok(true)
}

/// The delete branch: before any question about the Cluster's health.
pub(super) async fn delete(topic: &Topic, shared: &Shared) -> Result<Action, PassError> {
    if !finalizer::has(topic, FINALIZER) {
        return Ok(Action::await_change());
    }
    let verdict = deletion(topic, shared).await?;
    if verdict.outcome == Outcome::Done {
        finalizer::set(&shared.context, topic, FINALIZER, false).await?;
        return Ok(Action::await_change());
    }
    say::status(&shared.context, topic, None, Judged::only(verdict)).await?;
    Ok(Action::requeue(jittered(Duration::from_secs(5))))
}
