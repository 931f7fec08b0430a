//! One pass over a Cluster.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::{ResourceExt, runtime::controller::Action};
use tidemill_crd::{Cluster, Outcome, Verdict};

use super::{finalize, say};
use crate::{
    apply::{ApplyError, Site},
    context::Context,
    controller::{DENIED, PassError, jittered},
    metrics::KindLabel,
    names::Names,
    observe::{observe_kubernetes, observe_quorum},
    plan::{self, Input, Plan},
};

const KIND: &str = "cluster";
/// Safety net: the watch does the work.
const RESYNC: Duration = Duration::from_secs(600);
/// While something may change without an event from the API server: copies are made, a voter catches up.
const SOON: Duration = Duration::from_secs(3);

pub(super) async fn reconcile(cluster: Arc<Cluster>, context: Arc<Context>) -> Result<Action, PassError> {
    let started = Instant::now();
    let depth = context.metrics.queue.get_or_create(&KindLabel { kind: KIND }).clone();
    depth.inc();
    let result = pass(&cluster, &context).await;
    depth.dec();
    context.metrics.passed(KIND, started.elapsed(), result.is_err());
    // A denied verb is a condition, not a loop (rule 18).
    if let Err(Some(verdict)) = result.as_ref().map_err(PassError::denied) {
        context.metrics.forbidden.inc();
        let names = context.names(&cluster.namespace().unwrap_or_default(), &cluster.name_any());
        say::status(&context, &cluster, &names, Plan::only(verdict)).await?;
        return Ok(Action::requeue(DENIED));
    }
    result
}

async fn pass(cluster: &Cluster, context: &Arc<Context>) -> Result<Action, PassError> {
    let names = context.names(&cluster.namespace().unwrap_or_default(), &cluster.name_any());
    // Deletion first (rule 1).
    if cluster.metadata.deletion_timestamp.is_some() {
        return finalize::delete(context, cluster, &names).await;
    }
    if !cluster.spec.paused && finalize::align(context, cluster, &names).await? {
        // The change comes back as an event, with the new resourceVersion.
        return Ok(Action::requeue(SOON));
    }
    let (mut plan, link, observed) = decide(cluster, context, &names).await?;
    let actions = std::mem::take(&mut plan.actions);
    let site = Site { client: &context.client, names: &names, link: &link, observed: &observed };
    let outcome = site.run(actions).await;
    for (action, what) in &outcome.done {
        context.metrics.writes.get_or_create(&crate::metrics::ActionLabel { action }).inc();
        say::event(context, cluster, action, what).await;
    }
    let denied = outcome.errors.iter().any(|e| matches!(e, ApplyError::Forbidden { .. }));
    if denied {
        context.metrics.forbidden.inc();
    }
    if let Some(verdict) = verdict_of(&outcome.errors).or_else(|| too_early(&plan.verdict, &outcome.done)) {
        plan.verdict = verdict;
    }
    if let (Some(id), Some(status)) = (outcome.initialized, plan.status.as_mut()) {
        status.cluster_id = Some(id);
    }
    let changed = !outcome.done.is_empty();
    let look_again = plan.look_again_s.map(Duration::from_secs);
    say::status(context, cluster, &names, plan).await?;
    if denied {
        return Ok(Action::requeue(DENIED));
    }
    if let Some(error) = outcome.errors.first() {
        return Err(PassError::Actions(error.to_string()));
    }
    let soon = changed.then_some(SOON).or(look_again);
    Ok(Action::requeue(soon.unwrap_or_else(|| jittered(RESYNC))))
}

/// Observes and plans.
async fn decide(
    cluster: &Cluster,
    context: &Arc<Context>,
    names: &Names,
) -> Result<(Plan, Arc<crate::link::Link>, crate::observe::Observed), PassError> {
    let mut observed = observe_kubernetes(&context.client, &names.namespace, &names.cluster)
        .await
        .map_err(PassError::kube("reading children"))?;
    let link = context.connection(cluster).link;
    observe_quorum(link.peers(), names, &mut observed).await;
    link.complete(&mut observed).await;
    let fresh_id = uuid::Uuid::new_v4().to_string();
    let (image, minute) = (context.settings.default_image(), minute_of_week());
    let planned = |observed: &crate::observe::Observed| {
        plan::plan(&Input {
            cluster,
            names,
            default_image: &image,
            repository: &context.settings.repository,
            observed,
            fresh_id: &fresh_id,
            minute,
        })
    };
    let mut plan = planned(&observed);
    if !plan.asks.is_empty() {
        link.consents(std::mem::take(&mut plan.asks), &mut observed).await;
        plan = planned(&observed);
    }
    Ok((plan, link, observed))
}

/// How failed actions show: a denied verb or a refused object needs a person, the rest is tried again.
fn verdict_of(errors: &[ApplyError]) -> Option<Verdict> {
    let worst = errors.iter().max_by_key(|e| match e {
        ApplyError::Forbidden { .. } => 2,
        ApplyError::Invalid { .. } => 1,
        ApplyError::Transient { .. } => 0,
    })?;
    Some(match worst {
        ApplyError::Forbidden { .. } => Verdict::new(Outcome::Rejected, "Forbidden", worst.to_string()),
        ApplyError::Invalid { .. } => Verdict::new(Outcome::Rejected, "RefusedByServer", worst.to_string()),
        ApplyError::Transient { .. } => Verdict::new(Outcome::Retrying, "Retrying", worst.to_string()),
    })
}

/// A set was changed just now: what comes of it for its pods is seen in the next pass, and nothing is done before (rule 4).
fn too_early(verdict: &Verdict, done: &[(&'static str, String)]) -> Option<Verdict> {
    let (_, set) =
        done.iter().find(|(action, what)| *action == "Apply" && what.starts_with("StatefulSet "))?;
    (verdict.outcome == Outcome::Done).then(|| {
        Verdict::new(
            Outcome::Working,
            "RollingUpdate",
            format!("{set} was changed, its pods have not followed yet"),
        )
    })
}

/// Minutes since Monday 00:00 UTC.
fn minute_of_week() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // 1 January 1970 was a Thursday.
    let minutes = now.as_secs() / 60 + 3 * 24 * 60;
    u32::try_from(minutes % (7 * 24 * 60)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_4_what_was_changed_just_now_is_not_done() {
        let done = Verdict::new(Outcome::Done, "Ready", "");
        let waits = Verdict::new(Outcome::Working, "WaitingForPods", "");
        let set = [("Apply", "Service a".to_owned()), ("Apply", "StatefulSet a-broker".to_owned())];
        assert_eq!(too_early(&done, &set).map(|v| v.outcome), Some(Outcome::Working));
        assert!(too_early(&done, &set[..1]).is_none(), "a Service has no pods");
        assert!(too_early(&waits, &set).is_none(), "the better reason stays");
    }
}
