//! One pass over a Topic.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::{ResourceExt, runtime::controller::Action};
use tidemill_client::v1;
use tidemill_crd::{
    Cluster, ConditionChange, Outcome, Topic, Verdict, is_true,
    plan::{self, ClusterGate, TopicObject, TopicObserved, TopicPlan, plan_topic},
    wire::{self, topic::Request},
};

use super::{Batches, Shared, finalize, say};
use crate::{
    controller::{DENIED, PassError, jittered, parent},
    metrics::KindLabel,
};

pub(super) const KIND: &str = "topic";
const RESYNC: Duration = Duration::from_secs(600);

/// A verdict, further conditions, and what the data plane has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) conditions: Vec<ConditionChange>,
    pub(super) state: Option<v1::TopicState>,
}

impl Judged {
    pub(super) fn only(verdict: Verdict) -> Self {
        Self { verdict, conditions: Vec::new(), state: None }
    }

    fn of(plan: TopicPlan, state: Option<v1::TopicState>) -> Self {
        Self { verdict: plan.verdict, conditions: plan.conditions, state }
    }
}

pub(super) async fn reconcile(topic: Arc<Topic>, shared: Arc<Shared>) -> Result<Action, PassError> {
    let started = Instant::now();
    let metrics = &shared.context.metrics;
    let depth = metrics.queue.get_or_create(&KindLabel { kind: KIND }).clone();
    depth.inc();
    let result = pass(&topic, &shared).await;
    depth.dec();
    metrics.passed(KIND, started.elapsed(), result.is_err());
    // A denied verb is a condition, not a loop (rule 18).
    if let Err(Some(verdict)) = result.as_ref().map_err(PassError::denied) {
        metrics.forbidden.inc();
        say::status(&shared.context, &topic, None, Judged::only(verdict)).await?;
        return Ok(Action::requeue(DENIED));
    }
    result
}

async fn pass(topic: &Topic, shared: &Shared) -> Result<Action, PassError> {
    if !shared.parents.known() {
        return Ok(Action::requeue(Duration::from_millis(500)));
    }
    // Deletion first (rule 1).
    if topic.metadata.deletion_timestamp.is_some() {
        return finalize::delete(topic, shared).await;
    }
    if let Some(again) = shared.echoes.heard(topic) {
        return Ok(Action::requeue(again));
    }
    // Before anything is made: what is made without it would outlive the object.
    if !topic.spec.paused && finalize::align(topic, shared).await? {
        return Ok(Action::await_change());
    }
    let cluster = shared.parents.get(&topic.spec.cluster_ref, &topic.namespace().unwrap_or_default());
    let judged = decide(topic, shared, cluster.as_deref()).await;
    let again = match judged.verdict.outcome {
        Outcome::Done => jittered(RESYNC),
        // The Cluster's change wakes it.
        Outcome::Working if judged.verdict.reason == "WaitingForCluster" => jittered(RESYNC),
        Outcome::Working => Duration::from_secs(2),
        Outcome::Retrying => jittered(Duration::from_secs(5)),
        // A conflict ends when the other one goes; the feed tells, this is the safety net.
        Outcome::Rejected => jittered(Duration::from_secs(30)),
        Outcome::Paused => {
            return say::status(&shared.context, topic, None, judged).await.map(|_| Action::await_change());
        }
    };
    let version = say::status(&shared.context, topic, cluster.as_deref(), judged).await?;
    shared.echoes.wrote(topic, version, again);
    Ok(Action::requeue(again))
}

async fn decide(topic: &Topic, shared: &Shared, cluster: Option<&Cluster>) -> Judged {
    let claim = claim(topic);
    let was_ready = topic.status.as_ref().is_some_and(|s| {
        is_true(&s.conditions, "Ready") && s.observed_generation == topic.metadata.generation
    });
    let object = TopicObject {
        topic,
        uid: &claim.uid,
        owner: &claim.owner,
        deleted: false,
        was_ready,
        defaults: cluster.and_then(|c| c.spec.topic_defaults.as_ref()),
    };
    let namespace = topic.namespace().unwrap_or_default();
    let gate = parent::gate(&topic.spec.cluster_ref, &namespace, cluster);
    // Nobody is asked for what cannot be.
    let blind = plan_topic(
        object,
        &TopicObserved { gate, ..wire::topic::observed(None, &v1::ListTopicsResponse::default()) },
    );
    let Some(cluster) = cluster.filter(|_| !blind.actions.is_empty()) else { return Judged::of(blind, None) };
    let batches = shared.context.connection(cluster).batches;
    match work(object, &batches).await {
        Ok(judged) => judged,
        Err(why) => Judged::only(Verdict::new(Outcome::Retrying, "ClusterUnavailable", why)),
    }
}

/// Looks, plans, and carries out what there is to do; what the quorum makes of it is planned once more.
async fn work(object: TopicObject<'_>, batches: &Batches) -> Result<Judged, String> {
    let look = batches.look(object.topic.topic_name().to_owned()).await.map_err(|e| e.to_string())?;
    let planned = plan_topic(object, &wire::topic::observed(look.topic.as_ref(), &look.page));
    let Some(Request::Apply(wish)) = planned.actions.first().cloned().map(wire::topic::request) else {
        return Ok(Judged::of(planned, look.topic));
    };
    let result = batches.apply(wish).await.map_err(|e| e.to_string())?;
    Ok(match wire::topic::applied(&result) {
        Ok(state) => {
            let after = plan_topic(object, &wire::topic::observed(Some(state), &look.page));
            Judged::of(after, Some(state.clone()))
        }
        Err(refusal) => {
            Judged { verdict: plan::refused(&refusal), conditions: planned.conditions, state: None }
        }
    })
}

/// Who claims the topic: this very object (rule 8).
pub(super) fn claim(topic: &Topic) -> plan::Claim {
    plan::Claim {
        uid: topic.uid().unwrap_or_default(),
        owner: plan::owner("Topic", &topic.namespace().unwrap_or_default(), &topic.name_any()),
    }
}

/// The delete branch's plan, from what the Cluster has.
pub(super) async fn deletion(topic: &Topic, shared: &Shared) -> Result<Verdict, PassError> {
    let claim = claim(topic);
    let (uid, owner) = (claim.uid.as_str(), claim.owner.as_str());
    let object = TopicObject { topic, uid, owner, deleted: true, was_ready: false, defaults: None };
    let none =
        |gate| TopicObserved { gate, ..wire::topic::observed(None, &v1::ListTopicsResponse::default()) };
    let reference = &topic.spec.cluster_ref;
    let namespace = topic.namespace().unwrap_or_default();
    let Some(cluster) = shared.parents.to_tell(&shared.context, reference, &namespace).await? else {
        let gone = ClusterGate::Missing { cluster: reference.name.clone() };
        return Ok(plan_topic(object, &none(gone)).verdict);
    };
    // A spec that was never accepted made nothing, and its name may be one that nobody may ask for.
    if tidemill_types::TopicName::new(topic.topic_name()).is_err() {
        return Ok(Verdict::new(Outcome::Done, "Deleted", "there never was such a topic"));
    }
    let batches = shared.context.connection(&cluster).batches;
    let look = match batches.look(topic.topic_name().to_owned()).await {
        Ok(look) => look,
        Err(e) => {
            let gate = ClusterGate::NotReady { why: e.to_string() };
            return Ok(plan_topic(object, &none(gate)).verdict);
        }
    };
    let planned = plan_topic(object, &wire::topic::observed(look.topic.as_ref(), &look.page));
    let done = |why: &str| Verdict::new(Outcome::Done, "Deleted", why);
    match planned.actions.into_iter().next().map(wire::topic::request) {
        Some(Request::Delete(deletion)) => Ok(match batches.delete(deletion).await {
            Ok(result) => match wire::topic::deleted(&result) {
                Ok(()) => done("the topic is let go"),
                Err(refusal) => plan::refused(&refusal),
            },
            Err(e) => {
                let why = format!("the deletion is tried again: {e}");
                Verdict::new(Outcome::Retrying, "ClusterUnavailable", why)
            }
        }),
        // Its claim is freed by the sweep (rule 8): nothing waits for that.
        Some(Request::Release(_)) => Ok(done("the topic stays (deletionPolicy Retain)")),
        Some(Request::Apply(_)) | None => Ok(planned.verdict),
    }
}
