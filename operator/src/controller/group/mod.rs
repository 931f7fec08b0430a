//! The controller of ConsumerGroups.
//!
//! This version's data plane has no administration of groups that an operator could use, so a ConsumerGroup says so with a
//! typed condition and is never Ready. Nothing is made for it, so nothing has to be undone when it goes.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        Controller,
        controller::{Action, Config},
        watcher,
    },
};
use serde_json::json;
use tidemill_crd::{ConsumerGroup, Outcome, Verdict, apply_conditions};
use tidemill_runtime::Supervisor;

use super::{PassError, cluster::scoped};
use crate::{context::Context, metrics::KindLabel};

const KIND: &str = "consumergroup";
const MANAGER: &str = "tidemill-operator-status";
/// Passes at once.
const CONCURRENCY: u16 = 16;

/// Runs until `supervisor` stops.
pub async fn run(context: Arc<Context>, supervisor: Supervisor) {
    let token = supervisor.token().clone();
    Controller::new(scoped::<ConsumerGroup>(&context), watcher::Config::default())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .graceful_shutdown_on(async move { token.cancelled().await })
        .run(reconcile, failed, context)
        .for_each(|result| async move {
            if let Err(e) = result {
                tracing::debug!(error = %e, "controller of consumer groups");
            }
        })
        .await;
}

async fn reconcile(group: Arc<ConsumerGroup>, context: Arc<Context>) -> Result<Action, PassError> {
    let started = std::time::Instant::now();
    let result = pass(&group, &context).await;
    context.metrics.passed(KIND, started.elapsed(), result.is_err());
    result
}

async fn pass(group: &ConsumerGroup, context: &Context) -> Result<Action, PassError> {
    if group.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let verdict = if group.spec.paused {
        Verdict::new(Outcome::Paused, "Paused", "spec.paused is true: nothing is changed")
    } else {
        Verdict::new(
            Outcome::Rejected,
            "Unsupported",
            "this version of the operator does not configure consumer groups yet: members configure them when they join",
        )
    };
    let old = group.status.clone().unwrap_or_default();
    let generation = group.metadata.generation.unwrap_or(0);
    let mut new = old.clone();
    new.conditions.retain(|c| c.reason != "NotReconciled");
    apply_conditions(&mut new.conditions, &verdict.conditions(), generation, &Time(Timestamp::now()));
    new.observed_generation = Some(generation);
    new.group_name = Some(group.spec.group_name.clone().unwrap_or_else(|| group.name_any()));
    if new == old {
        return Ok(Action::await_change());
    }
    let (name, namespace) = (group.name_any(), group.namespace().unwrap_or_default());
    let body = json!({
        "apiVersion": ConsumerGroup::api_version(&()),
        "kind": ConsumerGroup::kind(&()),
        "metadata": {"name": name, "namespace": namespace, "uid": group.uid()},
        "status": new,
    });
    let api: Api<ConsumerGroup> = Api::namespaced(context.client.clone(), &namespace);
    match api.patch_status(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&body)).await {
        Ok(_) => {
            context.metrics.status_writes.get_or_create(&KindLabel { kind: KIND }).inc();
            Ok(Action::await_change())
        }
        Err(kube::Error::Api(s)) if s.code == 404 || s.code == 409 => Ok(Action::await_change()),
        Err(e) => Err(PassError::kube("writing the status")(e)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
fn failed(group: Arc<ConsumerGroup>, error: &PassError, context: Arc<Context>) -> Action {
    tracing::warn!(group = group.name_any(), namespace = group.namespace(), error = %error, "a pass failed");
    if error.forbidden() {
        context.metrics.forbidden.inc();
        return Action::requeue(Duration::from_secs(60));
    }
    Action::requeue(Duration::from_secs(5))
}
