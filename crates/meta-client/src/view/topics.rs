//! Changes of topics from a revision on, for those who keep their own table (operators).

use std::time::Duration;

use tidemill_proto::meta::{WatchEvent, WatchRequest, watch_event::Event};
use tidemill_types::{
    Revision, TopicControl, TopicRecord,
    meta::{Change, Watched},
};
use tonic::Streaming;

use crate::{MetaClient, MetaError, codec};

/// Silence of a member after which the stream counts as broken; it says something each second.
const SILENCE: Duration = Duration::from_secs(5);

/// One event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicsEvent {
    /// Forget what you knew: a view begins, in pieces.
    Reload,
    /// A part of the view.
    Piece {
        /// Topics.
        topics: Vec<TopicRecord>,
        /// Claims and tombstones.
        controls: Vec<TopicControl>,
    },
    /// The view is whole, as of this revision.
    Synced(Revision),
    /// The changes of one command; nothing in it is about anything but topics.
    Changes(Watched),
    /// Nothing else changed up to this revision.
    At(Revision),
}

/// A watch of topics at one member. It ends with an error when that member falls silent: begin another one from the last
/// revision.
#[derive(Debug)]
pub struct TopicsWatch {
    stream: Streaming<WatchEvent>,
    address: String,
    in_view: bool,
    ready: std::collections::VecDeque<TopicsEvent>,
}

impl MetaClient {
    /// Every change of topics after `from`; `Revision(0)` begins with a view.
    ///
    /// # Errors
    /// [`MetaError::Unavailable`] when the member that was asked does not answer: ask again, the next one is asked then.
    pub async fn watch_topics(&self, from: Revision) -> Result<TopicsWatch, MetaError> {
        let unavailable = |why: String| MetaError::Unavailable { why };
        let quorum = &self.inner.quorum;
        let address = quorum.next().ok_or_else(|| unavailable("no member's address is known".to_owned()))?;
        let mut stub = quorum.stub(&address).await.map_err(|e| unavailable(e.to_string()))?;
        let request =
            WatchRequest { cluster: self.inner.cluster_bytes(), from_revision: from.0, topics_only: true };
        let stream = match tokio::time::timeout(SILENCE, stub.watch(request)).await {
            Ok(Ok(stream)) => stream.into_inner(),
            Ok(Err(s)) => return Err(unavailable(format!("{address}: {}", s.message()))),
            Err(_) => {
                quorum.failed(&address);
                return Err(unavailable(format!("{address}: no answer in time")));
            }
        };
        Ok(TopicsWatch { stream, address, in_view: false, ready: std::collections::VecDeque::new() })
    }
}

impl TopicsWatch {
    /// The next event.
    ///
    /// # Errors
    /// [`MetaError::Unavailable`] when the stream broke or fell silent, [`MetaError::Malformed`].
    pub async fn next(&mut self) -> Result<TopicsEvent, MetaError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let broken = |why: &str| MetaError::Unavailable { why: format!("{}: {why}", self.address) };
            let message = match tokio::time::timeout(SILENCE, self.stream.message()).await {
                Err(_) => return Err(broken("silence")),
                Ok(Err(status)) => return Err(broken(status.message())),
                Ok(Ok(None)) => return Err(broken("the stream ended")),
                Ok(Ok(Some(message))) => message,
            };
            self.take(message)?;
        }
    }

    fn take(&mut self, message: WatchEvent) -> Result<(), MetaError> {
        match message.event {
            Some(Event::View(bytes)) => {
                self.begin_view();
                let view = codec::decode_view(&bytes)?;
                if !view.topics.is_empty() {
                    self.ready.push_back(TopicsEvent::Piece { topics: view.topics, controls: Vec::new() });
                }
                if !message.more {
                    self.in_view = false;
                    self.ready.push_back(TopicsEvent::Synced(view.revision));
                }
            }
            Some(Event::Controls(bytes)) => {
                self.begin_view();
                let controls = codec::decode_controls(&bytes)?;
                self.ready.push_back(TopicsEvent::Piece { topics: Vec::new(), controls });
            }
            Some(Event::Changes(bytes)) => {
                let mut watched = codec::decode_watched(&bytes)?;
                watched.changes.retain(|c| {
                    matches!(c, Change::Topic(_) | Change::TopicRemoved(_) | Change::TopicControl(_))
                });
                self.ready.push_back(TopicsEvent::Changes(watched));
            }
            Some(Event::AtRevision(revision)) => self.ready.push_back(TopicsEvent::At(Revision(revision))),
            None => {}
        }
        Ok(())
    }

    fn begin_view(&mut self) {
        if !self.in_view {
            self.in_view = true;
            self.ready.push_back(TopicsEvent::Reload);
        }
    }
}
