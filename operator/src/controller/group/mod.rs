//! The controller of ConsumerGroups.
//!
//! Members come and go without the quorum's knowledge, so a group is looked at now and then; what a status says of it moves
//! seldom ([`GroupMemory`], rule 3). Claims and resets stand at the group's coordinator.

mod calls;
mod finalize;
mod observe;
mod pass;
mod say;

use std::{collections::HashMap, sync::Arc, time::Duration};

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
use parking_lot::Mutex;
use tidemill_crd::{Cluster, ConsumerGroup, group::GroupMemory};
use tidemill_runtime::Supervisor;
use tokio::time::Instant;

use super::{DENIED, PassError, cluster::scoped, echo::Echoes, parent::Parents};
use crate::context::Context;

pub use calls::GroupCalls;

const KIND: &str = "consumergroup";
/// Passes at once.
const CONCURRENCY: u16 = 128;

/// What a pass needs.
struct Shared {
    context: Arc<Context>,
    parents: Parents,
    /// All objects that are watched.
    groups: Store<ConsumerGroup>,
    echoes: Echoes,
    /// By uid.
    memories: Mutex<HashMap<String, Memory>>,
    began: Instant,
}

/// What is remembered of an object between two passes.
struct Memory {
    group: GroupMemory,
    /// Since when its Cluster did not answer.
    silent: Option<Instant>,
}

/// Runs until `supervisor` stops.
pub async fn run(context: Arc<Context>, supervisor: Supervisor) {
    // A store of its own, as for Topics: a Cluster's change must be in it before its groups get a pass.
    let (clusters, writer) = reflector::store::<Cluster>();
    let changed = reflector(writer, watcher(scoped::<Cluster>(&context), watcher::Config::default()))
        .default_backoff()
        .touched_objects();
    let controller = Controller::new(scoped::<ConsumerGroup>(&context), watcher::Config::default());
    let groups = controller.store();
    let shared = Arc::new(Shared {
        context,
        parents: Parents(clusters),
        groups: groups.clone(),
        echoes: Echoes::default(),
        memories: Mutex::default(),
        began: Instant::now(),
    });
    let token = supervisor.token().clone();
    controller
        .with_config(Config::default().concurrency(CONCURRENCY))
        .watches_stream(changed, move |cluster| waiting(&groups, &cluster))
        .graceful_shutdown_on(async move { token.cancelled().await })
        .run(pass::reconcile, failed, shared)
        .for_each(|result| async move {
            if let Err(e) = result {
                tracing::debug!(error = %e, "controller of consumer groups");
            }
        })
        .await;
}

/// Groups of this Cluster that are not as they should be, or that go: the others have nothing to gain.
fn waiting(groups: &Store<ConsumerGroup>, cluster: &Cluster) -> Vec<ObjectRef<ConsumerGroup>> {
    let (name, namespace) = (cluster.name_any(), cluster.namespace());
    let of = |g: &ConsumerGroup| {
        g.spec.cluster_ref.name == name
            && g.spec.cluster_ref.namespace.clone().or_else(|| g.namespace()) == namespace
    };
    let open = |g: &ConsumerGroup| {
        g.metadata.deletion_timestamp.is_some()
            || !g.status.as_ref().is_some_and(|s| tidemill_crd::is_true(&s.conditions, "Ready"))
    };
    groups.state().iter().filter(|g| of(g) && open(g)).map(|g| ObjectRef::from_obj(&**g)).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
fn failed(group: Arc<ConsumerGroup>, error: &PassError, shared: Arc<Shared>) -> Action {
    tracing::warn!(group = group.name_any(), namespace = group.namespace(), error = %error, "a pass failed");
    if error.forbidden() {
        shared.context.metrics.forbidden.inc();
        return Action::requeue(DENIED);
    }
    Action::requeue(Duration::from_secs(5))
}
