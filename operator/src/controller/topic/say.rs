//! Status and Events of a Topic.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use tidemill_crd::{Cluster, Topic, apply_conditions, topic::EffectiveConfig};

use super::pass::{Judged, KIND};
use crate::{
    context::Context,
    controller::{PassError, status as common},
};

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
    let written = common::write(context, KIND, topic, &new).await?;
    if written.is_some() {
        let conditions = (&old.conditions[..], &new.conditions[..]);
        common::tell(context, KIND, topic, conditions, &judged.verdict).await;
    }
    Ok(written)
}
