//! The quorum's change feed: a topic that somebody else changed gets a pass at once, nothing is polled.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::channel::mpsc::Sender;
use kube::{
    ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use tidemill_client::v1::{self, topic_event::Event};
use tidemill_crd::{Cluster, Topic};
use tokio::task::JoinHandle;

use super::{Shared, heirs};

/// Between two looks for Clusters without a feed.
const LOOK: Duration = Duration::from_secs(5);

/// One feed per Cluster that serves.
pub(super) async fn run(shared: Arc<Shared>, topics: Store<Topic>, notices: Sender<ObjectRef<Topic>>) {
    let mut feeds: HashMap<String, JoinHandle<()>> = HashMap::new();
    loop {
        let serving: HashMap<String, Arc<Cluster>> = shared
            .parents
            .0
            .state()
            .into_iter()
            .filter(|c| {
                c.metadata.deletion_timestamp.is_none()
                    && c.status.as_ref().is_some_and(|s| s.cluster_id.is_some())
            })
            .filter_map(|c| Some((c.uid()?, c)))
            .collect();
        feeds.retain(|uid, feed| {
            let keep = serving.contains_key(uid) && !feed.is_finished();
            if !keep {
                feed.abort();
            }
            keep
        });
        for (uid, cluster) in &serving {
            if !feeds.contains_key(uid) {
                let follow = follow(shared.clone(), topics.clone(), cluster.clone(), notices.clone());
                feeds.insert(uid.clone(), tokio::spawn(follow));
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Follows until it breaks.
async fn follow(
    shared: Arc<Shared>,
    topics: Store<Topic>,
    cluster: Arc<Cluster>,
    mut notices: Sender<ObjectRef<Topic>>,
) {
    let Ok(control) = shared.context.connection(&cluster).link.control().await else { return };
    let mut events = match control.watch_topics(0).await {
        Ok(events) => events,
        Err(e) => {
            tracing::debug!(error = %e, "no feed of topics");
            return;
        }
    };
    // What comes before `synced` is how things are, not news.
    let mut synced = false;
    while let Ok(Some(event)) = events.next().await {
        match event.event {
            Some(Event::Reload(_)) => synced = false,
            Some(Event::Synced(_)) => synced = true,
            Some(Event::Changed(state)) if synced => {
                let mut told = Vec::new();
                if state.claim.is_none() {
                    told = heirs(&topics, &cluster, &state.name);
                }
                // A tombstone's former owner may want it back.
                let former = state.tombstone.and_then(|t| t.former);
                if let Some((namespace, name)) = state.claim.or(former).as_ref().and_then(object) {
                    told.push(ObjectRef::new(name).within(namespace));
                }
                for topic in told {
                    shared.echoes.news(topic.namespace.as_deref().unwrap_or_default(), &topic.name);
                    if notices.try_send(topic).is_err() {
                        tracing::debug!("a notice of the feed was dropped: the resync finds it");
                    }
                }
            }
            _ => {}
        }
    }
}

/// The object that a claim names.
fn object(claim: &v1::TopicClaim) -> Option<(&str, &str)> {
    claim.owner.strip_prefix("Topic ")?.split_once('/')
}
