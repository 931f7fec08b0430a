//! `WatchTopics`: the quorum's own change feed of topics, joined with claims and tombstones.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
    time::Duration,
};

use tidemill_meta_client::TopicsEvent;
use tidemill_proto::v1::{self, topic_event::Event};
use tidemill_types::{ErrorCode, Revision, TopicId, meta::Change};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{Events, topic};
use crate::{core::Core, fault::Fault};

/// Streams of this process at once: there are few operators.
const MAX_STREAMS: usize = 256;
/// Events under way to one watcher.
const IN_FLIGHT: usize = 64;
/// Topics looked up at once while the table is held.
const STEP: usize = 256;
/// Pause before another member of the quorum is asked.
const PAUSE: Duration = Duration::from_millis(200);

static STREAMS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_STREAMS)));

/// The watcher is gone, or this broker stops.
struct Over;

pub(super) fn watch(core: &Arc<Core>, r: &v1::WatchTopicsRequest) -> Result<Events, Fault> {
    let Ok(permit) = STREAMS.clone().try_acquire_owned() else {
        return Err(Fault::new(ErrorCode::Overloaded, format!("{MAX_STREAMS} watches of topics are served")));
    };
    let (tx, rx) = mpsc::channel(IN_FLIGHT);
    let (core, from) = (core.clone(), Revision(r.from_revision));
    tokio::spawn(async move {
        tokio::select! {
            Over = Watcher { core: &core, tx: &tx, at: from }.run() => {}
            () = core.stopping.cancelled() => {}
            () = tx.closed() => {}
        }
        drop(permit);
    });
    Ok(Box::pin(ReceiverStream::new(rx)))
}

struct Watcher<'a> {
    core: &'a Arc<Core>,
    tx: &'a mpsc::Sender<Result<v1::TopicEvent, Status>>,
    at: Revision,
}

impl Watcher<'_> {
    /// Follows one member of the quorum after the other.
    async fn run(mut self) -> Over {
        loop {
            match self.core.client.watch_topics(self.at).await {
                Ok(mut events) => loop {
                    match events.next().await {
                        Ok(event) => {
                            if self.take(event).await.is_err() {
                                return Over;
                            }
                        }
                        Err(e) => {
                            tracing::debug!(error = %e, "a watch of topics broke off");
                            break;
                        }
                    }
                },
                Err(e) => tracing::debug!(error = %e, "a watch of topics did not begin"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn send(&self, event: Event, revision: Revision) -> Result<(), Over> {
        let event = v1::TopicEvent { event: Some(event), revision: revision.0 };
        self.tx.send(Ok(event)).await.map_err(|_| Over)
    }

    async fn take(&mut self, event: TopicsEvent) -> Result<(), Over> {
        match event {
            // What follows is told from the own view, which joins topics with claims and tombstones.
            TopicsEvent::Reload | TopicsEvent::Piece { .. } => Ok(()),
            TopicsEvent::Synced(revision) => {
                self.reload(revision).await?;
                self.at = revision;
                Ok(())
            }
            TopicsEvent::Changes(watched) => {
                let mut changed = BTreeSet::new();
                for change in &watched.changes {
                    match change {
                        Change::Topic(t) => drop(changed.insert(t.id)),
                        Change::TopicControl(c) => drop(changed.insert(c.topic)),
                        Change::TopicRemoved(id) => {
                            changed.remove(id);
                            self.send(Event::RemovedId(id.0), watched.revision).await?;
                        }
                        _ => {}
                    }
                }
                self.tell(changed.into_iter().collect(), watched.revision).await?;
                self.at = watched.revision;
                Ok(())
            }
            TopicsEvent::At(revision) => {
                self.at = revision;
                self.send(Event::KeepAlive(true), revision).await
            }
        }
    }

    async fn reload(&self, revision: Revision) -> Result<(), Over> {
        self.send(Event::Reload(true), Revision(0)).await?;
        self.core.mirror.at_least(revision).await;
        let all: Vec<TopicId> = self.core.mirror.table().topics().map(|t| t.id).collect();
        self.tell(all, revision).await?;
        self.send(Event::Synced(true), revision).await
    }

    /// Tells topics as the own view has them, which is at least at this revision; one that it no longer has is told as removed by
    /// a later event.
    async fn tell(&self, topics: Vec<TopicId>, revision: Revision) -> Result<(), Over> {
        self.core.mirror.at_least(revision).await;
        for some in topics.chunks(STEP) {
            let states: Vec<v1::TopicState> = {
                let table = self.core.mirror.table();
                some.iter()
                    .filter_map(|id| table.topic(*id))
                    .filter(|t| !t.name.is_internal())
                    .map(|t| {
                        let control = table.topic_control(t.id).map(AsRef::as_ref);
                        topic::state(t, control, None, &self.core.config)
                    })
                    .collect()
            };
            for state in states {
                self.send(Event::Changed(state), revision).await?;
            }
        }
        Ok(())
    }
}
