//! Status and Events of a Topic.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::events::EventType,
};
use serde_json::json;
use tidemill_crd::{Cluster, Outcome, Topic, apply_conditions, find, is_true, topic::EffectiveConfig};

use super::{judge::Judged, pass::KIND};
use crate::{
    context::Context,
    controller::{PassError, events},
    metrics::KindLabel,
};

const MANAGER: &str = "tidemill-operator-status";

/// Writes the status, when it changed (rule 3), and returns the resourceVersion of what was written. observedGeneration is
/// set for failures too (rule 4).
pub(super) async fn status(
    context: &Context,
    topic: &Topic,
    cluster: Option<&Cluster>,
    judged: Judged,
) -> Result<Option<String>, PassError> {
    let old = topic.status.clone().unwrap_or_default();
    let generation = topic.metadata.generation.unwrap_or(0);
    let mut new = old.clone();
    new.conditions.retain(|c| c.reason != "NotReconciled");
    let now = Time(Timestamp::now());
    apply_conditions(&mut new.conditions, &judged.verdict.conditions(), generation, &now);
    apply_conditions(&mut new.conditions, &judged.conditions, generation, &now);
    new.observed_generation = Some(generation);
    if let Some(state) = judged.state {
        new.topic_id = Some(state.id.to_string());
        new.topic_name = Some(state.name);
        new.partitions = i32::try_from(state.partitions).ok();
        new.effective = Some(EffectiveConfig(state.config.into_iter().collect()));
        new.cluster_id = cluster.and_then(|c| c.status.as_ref()?.cluster_id.clone());
    }
    if new == old {
        return Ok(None);
    }
    let (name, namespace) = (topic.name_any(), topic.namespace().unwrap_or_default());
    let body = json!({
        "apiVersion": Topic::api_version(&()),
        "kind": Topic::kind(&()),
        "metadata": {"name": name, "namespace": namespace, "uid": topic.uid()},
        "status": new,
    });
    let api: Api<Topic> = Api::namespaced(context.client.clone(), &namespace);
    let written =
        match api.patch_status(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&body)).await {
            Ok(written) => written.resource_version(),
            Err(kube::Error::Api(s)) if s.code == 404 || s.code == 409 => return Ok(None),
            Err(e) => return Err(PassError::kube("writing the status")(e)),
        };
    context.metrics.status_writes.get_or_create(&KindLabel { kind: KIND }).inc();
    if is_true(&new.conditions, "Ready")
        && !is_true(&old.conditions, "Ready")
        && let Some(created) = &topic.metadata.creation_timestamp
    {
        let seconds = Timestamp::now().duration_since(created.0).as_secs_f64();
        context.metrics.time_to_ready.get_or_create(&KindLabel { kind: KIND }).observe(seconds.max(0.0));
    }
    let reason = |list: &[tidemill_crd::Condition]| find(list, "Ready").map(|c| c.reason.clone());
    if judged.verdict.outcome == Outcome::Rejected && reason(&new.conditions) != reason(&old.conditions) {
        let reference = topic.object_ref(&());
        events::publish(
            context,
            &reference,
            EventType::Warning,
            &judged.verdict.reason,
            "Reconcile",
            &judged.verdict.message,
        )
        .await;
    }
    Ok(written)
}
