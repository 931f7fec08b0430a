//! Status and Events of a Cluster.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::events::EventType,
};
use serde_json::json;
use tidemill_crd::{Cluster, Outcome, apply_conditions, find, is_true};

use crate::{
    context::Context,
    controller::{PassError, events},
    metrics::KindLabel,
    names::Names,
    plan::{self, Plan},
};

/// Field manager of status.
const MANAGER: &str = "tidemill-operator-status";

/// Writes the status, when it changed (rule 3). observedGeneration is set for failures too (rule 4).
pub(super) async fn status(
    context: &Context,
    cluster: &Cluster,
    names: &Names,
    plan: Plan,
) -> Result<(), PassError> {
    let old = cluster.status.clone().unwrap_or_default();
    let generation = cluster.metadata.generation.unwrap_or(0);
    let mut new = old.clone();
    // The default of the schema was written by nobody.
    new.conditions.retain(|c| c.reason != "NotReconciled");
    let now = Time(Timestamp::now());
    apply_conditions(&mut new.conditions, &plan.verdict.conditions(), generation, &now);
    apply_conditions(&mut new.conditions, &plan.conditions, generation, &now);
    new.observed_generation = Some(generation);
    if let Some(fields) = plan.status {
        plan::fill(&mut new, fields);
    }
    if new == old {
        return Ok(());
    }
    let body = json!({
        "apiVersion": Cluster::api_version(&()),
        "kind": Cluster::kind(&()),
        "metadata": {"name": names.cluster, "namespace": names.namespace, "uid": cluster.uid()},
        "status": new,
    });
    let api: Api<Cluster> = Api::namespaced(context.client.clone(), &names.namespace);
    match api.patch_status(&names.cluster, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&body)).await {
        Ok(_) => {}
        // Deleted meanwhile, or another object of the same name.
        Err(kube::Error::Api(s)) if s.code == 404 || s.code == 409 => return Ok(()),
        Err(e) => return Err(PassError::kube("writing the status")(e)),
    }
    context.metrics.status_writes.get_or_create(&KindLabel { kind: "cluster" }).inc();
    if is_true(&new.conditions, "Ready") && !is_true(&old.conditions, "Ready") {
        first_ready(context, cluster);
    }
    let reason = |list: &[tidemill_crd::Condition]| find(list, "Ready").map(|c| c.reason.clone());
    if reason(&new.conditions) != reason(&old.conditions) && plan.verdict.outcome != Outcome::Working {
        let type_ = match plan.verdict.outcome {
            Outcome::Rejected | Outcome::Retrying => EventType::Warning,
            _ => EventType::Normal,
        };
        let about = cluster.object_ref(&());
        events::publish(context, &about, type_, &plan.verdict.reason, "Reconcile", &plan.verdict.message)
            .await;
    }
    Ok(())
}

fn first_ready(context: &Context, cluster: &Cluster) {
    let Some(created) = &cluster.metadata.creation_timestamp else { return };
    let seconds = Timestamp::now().duration_since(created.0).as_secs_f64();
    context.metrics.time_to_ready.get_or_create(&KindLabel { kind: "cluster" }).observe(seconds.max(0.0));
}

/// An Event for an action that changed something a person may ask about; applied children are too many.
pub(super) async fn event(context: &Context, cluster: &Cluster, action: &str, what: &str) {
    if action == "Apply" || action == "NoteUuid" {
        return;
    }
    events::publish(context, &cluster.object_ref(&()), EventType::Normal, action, action, what).await;
}
