//! The last events of the watch, bounded in number and bytes. Pure.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tidemill_types::{
    Revision,
    meta::{Change, Watched},
};

/// Events that are kept.
const MAX_EVENTS: usize = 16_384;
/// Their encoded bytes.
const MAX_BYTES: usize = 64 << 20;

/// An event as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: Revision,
    /// Encoded once for all watchers.
    pub(crate) bytes: Bytes,
    /// Encoded without what is not about topics; `None` when nothing is.
    pub(crate) topics: Option<Bytes>,
}

/// What a watcher at a revision gets.
#[derive(Debug)]
pub(crate) enum Resume {
    /// The later events.
    Events(Vec<Arc<Event>>),
    /// Its revision is no longer known: a view.
    Reload,
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Events up to this revision are not known any more.
    floor: Revision,
}

impl Ring {
    /// Forgets everything: the state as of `revision` came from a snapshot.
    pub(crate) fn reset(&mut self, revision: Revision) {
        *self = Self { floor: revision, ..Self::default() };
    }

    /// Adds the changes of one command.
    pub(crate) fn push(&mut self, watched: &Watched) {
        let Ok(bytes) = tidemill_metadata::encode_watched(watched) else {
            // Above the codec's ceiling: watchers reload.
            self.reset(watched.revision);
            return;
        };
        let topics = only_topics(watched).and_then(|w| tidemill_metadata::encode_watched(&w).ok());
        let event =
            Event { revision: watched.revision, bytes: bytes.into(), topics: topics.map(Bytes::from) };
        self.bytes += event.bytes.len();
        self.events.push_back(Arc::new(event));
        while self.events.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            let Some(old) = self.events.pop_front() else { break };
            self.bytes -= old.bytes.len();
            self.floor = old.revision;
        }
    }

    /// At most `limit` events after `revision`.
    pub(crate) fn after(&self, revision: Revision, limit: usize) -> Resume {
        if revision < self.floor {
            return Resume::Reload;
        }
        let from = self.events.partition_point(|e| e.revision <= revision);
        Resume::Events(self.events.range(from..).take(limit).cloned().collect())
    }
}

fn only_topics(watched: &Watched) -> Option<Watched> {
    let changes: Vec<Change> = watched
        .changes
        .iter()
        .filter(|c| matches!(c, Change::Topic(_) | Change::TopicRemoved(_) | Change::TopicControl(_)))
        .cloned()
        .collect();
    (!changes.is_empty()).then_some(Watched { revision: watched.revision, changes })
}

#[cfg(test)]
mod tests {
    use tidemill_types::TopicId;

    use super::*;

    fn push(ring: &mut Ring, revision: u64, change: Change) {
        ring.push(&Watched { revision: Revision(revision), changes: vec![change] });
    }

    fn revisions(r: Resume) -> Option<Vec<u64>> {
        match r {
            Resume::Events(e) => Some(e.iter().map(|e| e.revision.0).collect()),
            Resume::Reload => None,
        }
    }

    #[test]
    fn resumes_from_what_is_kept_and_reloads_below() {
        let mut ring = Ring::default();
        for r in 1..=MAX_EVENTS as u64 + 2 {
            push(&mut ring, r * 2, Change::Time(1));
        }
        assert_eq!(revisions(ring.after(Revision(3), 9)), None, "events 2 and 4 are gone");
        assert_eq!(revisions(ring.after(Revision(4), 2)), Some(vec![6, 8]));
        assert_eq!(revisions(ring.after(Revision(7), 1)), Some(vec![8]));
        let last = (MAX_EVENTS as u64 + 2) * 2;
        assert_eq!(revisions(ring.after(Revision(last), 9)), Some(vec![]));
        ring.reset(Revision(50_000));
        assert_eq!(revisions(ring.after(Revision(last), 9)), None);
        push(&mut ring, 50_001, Change::TopicRemoved(TopicId(1)));
        let Resume::Events(e) = ring.after(Revision(50_000), 9) else { panic!("known") };
        assert!(e[0].topics.is_some());
    }
}
