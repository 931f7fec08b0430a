//! The controller of Topics: by the thousand (rule 17).

mod batch;
mod feed;
mod finalize;
mod pass;
mod say;
mod sweep;

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    ResourceExt,
    runtime::{
        Controller, WatchStreamExt,
        controller::{Action, Config},
        reflector,
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use tidemill_crd::{Cluster, Topic};
use tidemill_runtime::Supervisor;

use super::{DENIED, PassError, cluster::scoped, echo::Echoes, parent::Parents};
use crate::context::Context;

pub use batch::{Batches, Look, NoAnswer};

/// Passes at once: nearly all of them wait for a shared call.
const CONCURRENCY: u16 = 512;
/// Notices of the change feed that wait for a pass.
const NOTICES: usize = 10_000;

/// What a pass over a Topic needs.
pub(super) struct Shared {
    pub(super) context: Arc<Context>,
    pub(super) parents: Parents,
    echoes: Echoes,
}

/// Runs until `supervisor` stops.
pub async fn run(context: Arc<Context>, supervisor: Supervisor) {
    // A store of its own: one store wakes only one of those who wait for it, and a Cluster's change must be in it before its
    // Topics get a pass.
    let (clusters, writer) = reflector::store::<Cluster>();
    let changed = reflector(writer, watcher(scoped::<Cluster>(&context), watcher::Config::default()))
        .default_backoff()
        .touched_objects();
    let (notices, noticed) = futures::channel::mpsc::channel(NOTICES);
    let controller = Controller::new(scoped::<Topic>(&context), watcher::Config::default());
    let parents = controller.store();
    let shared = Arc::new(Shared {
        context: context.clone(),
        parents: Parents(clusters.clone()),
        echoes: Echoes::default(),
    });
    supervisor.spawn_until_stop("topic feeds", feed::run(shared.clone(), parents.clone(), notices));
    supervisor.spawn_until_stop("topic claims", sweep::run(context.clone(), clusters));
    let token = supervisor.token().clone();
    controller
        .with_config(Config::default().concurrency(CONCURRENCY))
        // A Topic that waits for its Cluster hears when it changes.
        .watches_stream(changed, move |cluster| waiting(&parents, &cluster))
        .reconcile_on(noticed)
        .graceful_shutdown_on(async move { token.cancelled().await })
        .run(pass::reconcile, failed, shared)
        .for_each(|result| async move {
            if let Err(e) = result {
                tracing::debug!(error = %e, "controller of topics");
            }
        })
        .await;
}

/// Topics of this Cluster that are not as they should be, or that go: the others have nothing to gain.
fn waiting(topics: &Store<Topic>, cluster: &Cluster) -> Vec<ObjectRef<Topic>> {
    chosen_of(topics, cluster, |t| t.metadata.deletion_timestamp.is_some() || !is_ready(t))
}

/// Topics of this Cluster that want the topic of this name and have it not: it may be theirs now (rule 8).
pub(super) fn heirs(topics: &Store<Topic>, cluster: &Cluster, topic: &str) -> Vec<ObjectRef<Topic>> {
    chosen_of(topics, cluster, |t| t.topic_name() == topic && !is_ready(t))
}

fn is_ready(topic: &Topic) -> bool {
    topic.status.as_ref().is_some_and(|s| tidemill_crd::is_true(&s.conditions, "Ready"))
}

/// Topics of this Cluster that are chosen.
fn chosen_of(
    topics: &Store<Topic>,
    cluster: &Cluster,
    chosen: impl Fn(&Topic) -> bool,
) -> Vec<ObjectRef<Topic>> {
    let (name, namespace) = (cluster.name_any(), cluster.namespace());
    let of = |t: &Topic| {
        t.spec.cluster_ref.name == name
            && t.spec.cluster_ref.namespace.clone().or_else(|| t.namespace()) == namespace
    };
    topics.state().iter().filter(|t| of(t) && chosen(t)).map(|t| ObjectRef::from_obj(&**t)).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
fn failed(topic: Arc<Topic>, error: &PassError, shared: Arc<Shared>) -> Action {
    tracing::warn!(topic = topic.name_any(), namespace = topic.namespace(), error = %error, "a pass failed");
    if error.forbidden() {
        shared.context.metrics.forbidden.inc();
        return Action::requeue(DENIED);
    }
    Action::requeue(Duration::from_secs(5))
}
