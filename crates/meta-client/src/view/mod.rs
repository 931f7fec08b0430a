//! A mirror of members, topics and partitions, kept by a watch.

mod events;
mod follow;
mod table;
mod topics;

use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use tidemill_types::Revision;
use tokio::sync::{broadcast, watch};

pub(crate) use self::follow::follow;
pub use self::{
    events::{MetaEvents, ViewEvent},
    table::MetaTable,
    topics::{TopicsEvent, TopicsWatch},
};

/// The mirror. Cheap to clone. It is behind the quorum by one network trip and may be behind by more when the quorum
/// cannot be reached: a hint, never a proof.
#[derive(Clone, Debug)]
pub struct MetaMirror {
    inner: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    table: RwLock<MetaTable>,
    /// Revision of the table, `None` before the first view.
    revision: watch::Sender<Option<Revision>>,
    events: broadcast::Sender<ViewEvent>,
}

/// Events that a slow receiver may be behind before it is told to read the table again.
const EVENTS_KEPT: usize = 4_096;

impl MetaMirror {
    fn new() -> Self {
        Self {
            inner: Arc::new(Shared {
                table: RwLock::new(MetaTable::default()),
                revision: watch::Sender::new(None),
                events: broadcast::Sender::new(EVENTS_KEPT),
            }),
        }
    }

    /// The table; hold the guard shortly and never across an await: the watch waits for it.
    pub fn table(&self) -> RwLockReadGuard<'_, MetaTable> {
        self.inner.table.read()
    }

    /// Revision of the table; `None` before the first view came.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        *self.inner.revision.borrow()
    }

    /// A receiver that wakes at each change of the table.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<Option<Revision>> {
        self.inner.revision.subscribe()
    }

    /// Waits until the table is at least at this revision, such as that of a command just applied. With
    /// `Revision(0)`: until there is a table.
    pub async fn at_least(&self, revision: Revision) {
        let mut rx = self.inner.revision.subscribe();
        // The sender lives in `self`.
        let _closed = rx.wait_for(|r| r.is_some_and(|r| r >= revision)).await;
    }

    /// Every later change, in order. Take it before reading the table, then nothing is missed.
    #[must_use]
    pub fn events(&self) -> MetaEvents {
        MetaEvents::new(self.inner.events.subscribe())
    }
}
