//! The controller of Clusters.

mod finalize;
mod pass;
mod say;

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{
        Controller,
        controller::{Action, Config},
        reflector::ObjectRef,
        watcher,
    },
};
use tidemill_crd::Cluster;
use tidemill_runtime::Supervisor;

use super::{DENIED, PassError};
use crate::{context::Context, names::LABEL_CLUSTER};

/// Passes at once.
const CONCURRENCY: u16 = 8;
/// Many events of one change make one pass.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Runs until `supervisor` stops.
pub async fn run(context: Arc<Context>, supervisor: Supervisor) {
    let mine = watcher::Config::default().labels(LABEL_CLUSTER);
    let clusters: Api<Cluster> = scoped(&context);
    let token = supervisor.token().clone();
    Controller::new(clusters, watcher::Config::default())
        .with_config(Config::default().concurrency(CONCURRENCY).debounce(DEBOUNCE))
        .owns(scoped::<StatefulSet>(&context), mine.clone())
        .owns(scoped::<Service>(&context), mine.clone())
        .owns(scoped::<ConfigMap>(&context), mine.clone())
        .owns(scoped::<PodDisruptionBudget>(&context), mine.clone())
        .owns(scoped::<ServiceAccount>(&context), mine.clone())
        .owns(scoped::<NetworkPolicy>(&context), mine.clone())
        .watches(scoped::<Pod>(&context), mine.clone(), |o| labelled(&o))
        .watches(scoped::<PersistentVolumeClaim>(&context), mine, |o| labelled(&o))
        .graceful_shutdown_on(async move { token.cancelled().await })
        .run(pass::reconcile, failed, context)
        .for_each(|result| async move {
            if let Err(e) = result {
                tracing::debug!(error = %e, "controller of clusters");
            }
        })
        .await;
}

/// Of the namespace that is watched, or of all.
pub(super) fn scoped<K>(context: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    match &context.settings.namespace {
        Some(namespace) => Api::namespaced(context.client.clone(), namespace),
        None => Api::all(context.client.clone()),
    }
}

fn labelled(object: &impl ResourceExt) -> Option<ObjectRef<Cluster>> {
    let cluster = object.labels().get(LABEL_CLUSTER)?;
    Some(ObjectRef::new(cluster).within(&object.namespace()?))
}

#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
fn failed(cluster: Arc<Cluster>, error: &PassError, context: Arc<Context>) -> Action {
    tracing::warn!(cluster = cluster.name_any(), namespace = cluster.namespace(), error = %error, "a pass failed");
    if error.forbidden() {
        context.metrics.forbidden.inc();
        // Not a loop: rights change by a person.
        return Action::requeue(DENIED);
    }
    Action::requeue(Duration::from_secs(5))
}
