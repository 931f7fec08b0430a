//! One pass over a Topic.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::{
    ResourceExt,
    runtime::{controller::Action, reflector::ObjectRef},
};
use tidemill_client::v1;
use tidemill_crd::{Cluster, Outcome, Topic, topic};

use super::{
    Shared, finalize,
    judge::{self, Judged},
    say,
};
use crate::{
    controller::{PassError, jittered},
    metrics::KindLabel,
};

pub(super) const KIND: &str = "topic";
const RESYNC: Duration = Duration::from_secs(600);

pub(super) async fn reconcile(topic: Arc<Topic>, shared: Arc<Shared>) -> Result<Action, PassError> {
    let started = Instant::now();
    let metrics = &shared.context.metrics;
    let depth = metrics.queue.get_or_create(&KindLabel { kind: KIND }).clone();
    depth.inc();
    let result = pass(&topic, &shared).await;
    depth.dec();
    metrics.passed(KIND, started.elapsed(), result.is_err());
    result
}

async fn pass(topic: &Topic, shared: &Shared) -> Result<Action, PassError> {
    if !shared.clusters_known() {
        return Ok(Action::requeue(Duration::from_millis(500)));
    }
    // Deletion first (rule 1).
    if topic.metadata.deletion_timestamp.is_some() {
        return finalize::delete(topic, shared).await;
    }
    if let Some(again) = shared.echo(topic) {
        return Ok(Action::requeue(again));
    }
    if topic.spec.paused {
        let paused = Judged::only(Outcome::Paused, "Paused", "spec.paused is true: nothing is changed");
        say::status(&shared.context, topic, None, paused).await?;
        return Ok(Action::await_change());
    }
    // Before anything is made: what is made without it would outlive the object.
    if finalize::align(topic, shared).await? {
        return Ok(Action::await_change());
    }
    let cluster = shared.cluster(topic);
    let judged = decide(topic, shared, cluster.as_deref()).await;
    let again = match judged.verdict.outcome {
        Outcome::Done => jittered(RESYNC),
        Outcome::Working => Duration::from_secs(2),
        Outcome::Retrying => jittered(Duration::from_secs(5)),
        // A conflict ends when the other one goes; the feed tells, this is the safety net.
        Outcome::Rejected | Outcome::Paused => jittered(Duration::from_secs(30)),
    };
    let waits = judged.verdict.reason == "WaitingForCluster";
    // The Cluster's change wakes it.
    let again = if waits { jittered(RESYNC) } else { again };
    let version = say::status(&shared.context, topic, cluster.as_deref(), judged).await?;
    shared.wrote(topic, version, again);
    Ok(Action::requeue(again))
}

async fn decide(topic: &Topic, shared: &Shared, cluster: Option<&Cluster>) -> Judged {
    let reference = &topic.spec.cluster_ref;
    let waiting = |why: String| Judged::only(Outcome::Working, "WaitingForCluster", why);
    let Some(cluster) = cluster else {
        return waiting(format!("Cluster {} is not there", reference.name));
    };
    if !allowed(topic, cluster) {
        return Judged::only(
            Outcome::Rejected,
            "NotAllowed",
            format!(
                "Cluster {} does not allow Topics of namespace {}: add it to its spec.access.topicNamespaces",
                reference.name,
                topic.namespace().unwrap_or_default()
            ),
        );
    }
    let wish = match topic::wish(&topic.name_any(), &topic.spec, cluster.spec.topic_defaults.as_ref()) {
        Ok(wish) => wish,
        Err(e) => {
            let reason = if e.unsupported { "Unsupported" } else { "InvalidSpec" };
            return Judged::only(Outcome::Rejected, reason, e.to_string());
        }
    };
    if cluster.metadata.deletion_timestamp.is_some() {
        return waiting(format!("Cluster {} is being deleted", reference.name));
    }
    if cluster.status.as_ref().and_then(|s| s.cluster_id.as_ref()).is_none() {
        return waiting(format!("Cluster {} does not serve yet", reference.name));
    }
    let question = v1::TopicWish {
        name: wish.name.clone(),
        partitions: wish.partitions,
        config: wish.config.clone().into_iter().collect(),
        claim: Some(claim(topic)),
        adoption: match topic.spec.adoption {
            topic::Adoption::Fail => v1::Adoption::Fail,
            topic::Adoption::IfMatches => v1::Adoption::IfMatches,
            topic::Adoption::Take => v1::Adoption::Take,
        }
        .into(),
    };
    match shared.context.connection(cluster).batches.apply(question).await {
        Ok(result) => judge::judge(topic, &wish, result),
        Err(e) => Judged::only(Outcome::Retrying, "ClusterUnavailable", e.to_string()),
    }
}

/// Who claims the topic: this very object (rule 8).
pub(super) fn claim(topic: &Topic) -> v1::TopicClaim {
    v1::TopicClaim {
        uid: topic.uid().unwrap_or_default(),
        owner: format!("Topic {}/{}", topic.namespace().unwrap_or_default(), topic.name_any()),
    }
}

/// The Cluster's own namespace always may; others by its list.
fn allowed(topic: &Topic, cluster: &Cluster) -> bool {
    let namespace = topic.namespace();
    namespace == cluster.namespace()
        || cluster
            .spec
            .access
            .as_ref()
            .is_some_and(|a| a.topic_namespaces.iter().any(|n| n == "*" || Some(n) == namespace.as_ref()))
}

impl Shared {
    /// The Cluster that a Topic names, as last seen.
    pub(super) fn cluster(&self, topic: &Topic) -> Option<Arc<Cluster>> {
        let reference = &topic.spec.cluster_ref;
        let namespace = reference.namespace.clone().or_else(|| topic.namespace())?;
        self.clusters.get(&ObjectRef::new(&reference.name).within(&namespace))
    }
}
