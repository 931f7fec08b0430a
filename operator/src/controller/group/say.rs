//! Status and Events of a ConsumerGroup.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Resource, runtime::events::EventType};
use tidemill_crd::{ConsumerGroup, apply_conditions};

use super::{
    KIND, Shared,
    pass::{Looked, memory},
};
use crate::controller::{PassError, events, status as common};

/// Writes the status, when it changed (rule 3), and returns the resourceVersion of what was written. observedGeneration is
/// set for failures too (rule 4).
pub(super) async fn status(
    shared: &Shared,
    group: &ConsumerGroup,
    looked: Looked,
) -> Result<Option<String>, PassError> {
    let old = group.status.clone().unwrap_or_default();
    let generation = group.metadata.generation.unwrap_or(0);
    let mut new = old.clone();
    new.conditions.retain(|c| c.reason != "NotReconciled");
    let now = Time(Timestamp::now());
    apply_conditions(&mut new.conditions, &looked.plan.verdict.conditions(), generation, &now);
    apply_conditions(&mut new.conditions, &looked.plan.conditions, generation, &now);
    new.observed_generation = Some(generation);
    new.group_name = Some(group.group_name().to_owned());
    if let Some(seen) = &looked.seen {
        let mut memories = shared.memories.lock();
        // What has to wait is seen again by the next look.
        memory(&mut memories, group).group.report(shared.now_ms(), seen, &mut new);
    }
    if new == old {
        return Ok(None);
    }
    let written = common::write(&shared.context, KIND, group, &new).await?;
    if written.is_some() {
        let conditions = (&old.conditions[..], &new.conditions[..]);
        common::tell(&shared.context, KIND, group, conditions, &looked.plan.verdict).await;
    }
    Ok(written)
}

/// An Event for what a person may ask about.
pub(super) async fn event(shared: &Shared, group: &ConsumerGroup, action: &str, note: &str) {
    let about = group.object_ref(&());
    events::publish(&shared.context, &about, EventType::Normal, action, action, note).await;
}
