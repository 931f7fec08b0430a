//! The watch: begins with a view, resumes by revision at whatever member answers.

use std::{sync::Arc, sync::Weak, time::Duration};

use tidemill_proto::meta::{WatchEvent, WatchRequest, watch_event::Event};
use tidemill_types::{Revision, TopicControl, meta::MetaView};

use super::{MetaMirror, ViewEvent, table::MetaTable};
use crate::{MetaClient, MetaError, client::Inner, codec, retry::Backoff};

/// Silence of a member after which another one is asked; it says something each second.
const SILENCE: Duration = Duration::from_secs(5);
/// Pieces of one view.
const MAX_PIECES: usize = 100_000;

/// Starts following; the task ends with the client's supervisor.
pub(crate) fn follow(client: &MetaClient) -> MetaMirror {
    let mirror = MetaMirror::new();
    let task = keep(Arc::downgrade(&client.inner), mirror.clone());
    client.inner.supervisor.spawn_until_stop("metadata watch", task);
    mirror
}

async fn keep(client: Weak<Inner>, mirror: MetaMirror) {
    loop {
        // Pauses start short again after each stream that delivered something.
        let mut backoff = Backoff::new(Duration::from_secs(3600));
        loop {
            let Some(client) = client.upgrade() else { return };
            let before = mirror.revision();
            if let Err(e) = stream(&client, &mirror).await {
                tracing::debug!(error = %e, "the metadata watch broke off");
            }
            drop(client);
            if mirror.revision() != before {
                break;
            }
            backoff.pause().await;
        }
    }
}

/// One stream until it breaks.
async fn stream(client: &Inner, mirror: &MetaMirror) -> Result<(), MetaError> {
    let unavailable = |why: String| MetaError::Unavailable { why };
    let address =
        client.quorum.next().ok_or_else(|| unavailable("no member's address is known".to_owned()))?;
    let failed = |why: String| {
        client.quorum.failed(&address);
        unavailable(format!("{address}: {why}"))
    };
    let mut stub = client.quorum.stub(&address).await.map_err(|e| unavailable(e.to_string()))?;
    let from_revision = mirror.revision().unwrap_or_default().0;
    let request = WatchRequest { cluster: client.cluster_bytes(), from_revision, topics_only: false };
    let mut events = tokio::time::timeout(SILENCE, stub.watch(request))
        .await
        .map_err(|_| failed("no answer in time".to_owned()))?
        .map_err(|s| unavailable(format!("{address}: {}", s.message())))?
        .into_inner();
    let mut pieces = Pieces::default();
    loop {
        let next = tokio::time::timeout(SILENCE, events.message()).await;
        let event = match next {
            Err(_) => return Err(failed("silence".to_owned())),
            Ok(Err(status)) => return Err(failed(status.message().to_owned())),
            Ok(Ok(None)) => return Ok(()),
            Ok(Ok(Some(event))) => event,
        };
        take(mirror, &mut pieces, event)?;
    }
}

/// The pieces of a view as they come.
#[derive(Debug, Default)]
struct Pieces {
    views: Vec<MetaView>,
    controls: Vec<TopicControl>,
    count: usize,
}

impl Pieces {
    fn count(&mut self) -> Result<(), MetaError> {
        self.count += 1;
        if self.count > MAX_PIECES {
            return Err(MetaError::Malformed { why: "a view of too many pieces".to_owned() });
        }
        Ok(())
    }
}

/// Applies one message of the stream.
fn take(mirror: &MetaMirror, pieces: &mut Pieces, event: WatchEvent) -> Result<(), MetaError> {
    let shared = &mirror.inner;
    match event.event {
        Some(Event::View(bytes)) => {
            pieces.count()?;
            pieces.views.push(codec::decode_view(&bytes)?);
            if !event.more {
                let Pieces { views, controls, .. } = std::mem::take(pieces);
                let table = MetaTable::from_view(views, controls);
                let revision = table.revision();
                // Versions never regress: a view older than what is known comes from a member that is behind.
                if mirror.revision().is_some_and(|known| known > revision) {
                    return Err(MetaError::Unavailable { why: "a view of the past".to_owned() });
                }
                *shared.table.write() = table;
                shared.revision.send_replace(Some(revision));
                let _nobody = shared.events.send(ViewEvent::Reload);
            }
        }
        Some(Event::Controls(bytes)) => {
            pieces.count()?;
            pieces.controls.extend(codec::decode_controls(&bytes)?);
        }
        Some(Event::Changes(bytes)) => {
            let watched = codec::decode_watched(&bytes)?;
            if shared.table.write().apply(&watched) {
                shared.revision.send_replace(Some(watched.revision));
                let _nobody = shared.events.send(ViewEvent::Changes(Arc::new(watched)));
            }
        }
        Some(Event::AtRevision(revision)) => {
            let news = shared.table.write().advance(Revision(revision));
            if news {
                shared.revision.send_replace(Some(Revision(revision)));
            }
        }
        None => {}
    }
    Ok(())
}
