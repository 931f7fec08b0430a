//! Finalizer and deletion of a ConsumerGroup.

use std::time::Duration;

use kube::{ResourceExt, runtime::controller::Action};
use tidemill_crd::{
    ConsumerGroup, Outcome, Verdict,
    group::GroupDeletionPolicy,
    plan::{ClusterGate, GroupObject, GroupObserved, GroupPlan, owner, plan_group},
};

use super::{
    Shared,
    calls::Failed,
    observe::observe,
    pass::{Looked, carry_out},
    say,
};
use crate::controller::{PassError, finalizer, jittered};

/// Finalizer of a ConsumerGroup that takes its group along.
const FINALIZER: &str = "tidemill.dev/consumergroup";

/// There only when something is to be done at the deletion (rule 1). True when it was changed: that comes back as an event.
pub(super) async fn align(group: &ConsumerGroup, shared: &Shared) -> Result<bool, PassError> {
    let wished = group.spec.deletion_policy == GroupDeletionPolicy::Delete;
    if wished == finalizer::has(group, FINALIZER) {
        return Ok(false);
    }
    finalizer::set(&shared.context, group, FINALIZER, wished).await?;
    Ok(true)
}

/// The delete branch: before any question about the Cluster's health.
pub(super) async fn delete(group: &ConsumerGroup, shared: &Shared) -> Result<Action, PassError> {
    shared.memories.lock().remove(&group.uid().unwrap_or_default());
    if !finalizer::has(group, FINALIZER) {
        return Ok(Action::await_change());
    }
    let verdict = work(group, shared).await?;
    if verdict.outcome == Outcome::Done {
        finalizer::set(&shared.context, group, FINALIZER, false).await?;
        return Ok(Action::await_change());
    }
    let plan = GroupPlan { actions: Vec::new(), verdict, conditions: Vec::new(), differences: Vec::new() };
    say::status(shared, group, Looked { plan, seen: None }).await?;
    Ok(Action::requeue(jittered(Duration::from_secs(5))))
}

async fn work(group: &ConsumerGroup, shared: &Shared) -> Result<Verdict, PassError> {
    let (uid, namespace) = (group.uid().unwrap_or_default(), group.namespace().unwrap_or_default());
    let owner = owner("ConsumerGroup", &namespace, &group.name_any());
    let object = GroupObject { group, uid: &uid, owner: &owner, deleted: true };
    let observed = |gate, group| GroupObserved { gate, group, behind: None };
    let reference = &group.spec.cluster_ref;
    let Some(cluster) = shared.parents.to_tell(&shared.context, reference, &namespace).await? else {
        let gone = ClusterGate::Missing { cluster: reference.name.clone() };
        return Ok(plan_group(object, &observed(gone, None)).verdict);
    };
    let calls = shared.context.connection(&cluster).groups;
    let name = group.group_name().to_owned();
    let seen = match calls.run(|groups| observe(groups, name)).await {
        Ok(seen) => seen,
        Err(Failed::NoAnswer(why)) => {
            return Ok(plan_group(object, &observed(ClusterGate::NotReady { why }, None)).verdict);
        }
        Err(Failed::Refused(refusal)) => return Ok(tidemill_crd::plan::refused(&refusal)),
    };
    let plan = plan_group(object, &observed(ClusterGate::Open, seen));
    let Some(action) = plan.actions.into_iter().next() else { return Ok(plan.verdict) };
    Ok(match calls.run(|groups| carry_out(groups, action)).await {
        // What is gone or another's by now is done: the answer says so, nothing is left to do.
        Ok(_) => Verdict::new(Outcome::Done, "Deleted", "the group is let go"),
        Err(Failed::NoAnswer(why)) => {
            let why = format!("the deletion is tried again: {why}");
            Verdict::new(Outcome::Retrying, "ClusterUnavailable", why)
        }
        Err(Failed::Refused(refusal)) => tidemill_crd::plan::refused(&refusal),
    })
}
