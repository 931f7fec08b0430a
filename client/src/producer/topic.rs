//! A topic of a producer: its partitions, and where records without key go.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;

use super::accumulator::Partition;

/// A topic of a producer: made once, used for every record.
#[derive(Clone, Debug)]
pub struct TopicHandle {
    pub(super) state: Arc<TopicState>,
}

impl TopicHandle {
    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.state.name
    }

    /// Partitions as far as the producer knows.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        u32::try_from(self.state.partitions.load().len()).unwrap_or(u32::MAX)
    }
}

#[derive(Debug)]
pub(super) struct TopicState {
    pub(super) name: Arc<str>,
    /// Identity of the producer that made it.
    pub(super) producer: usize,
    pub(super) partitions: ArcSwap<Vec<Arc<Partition>>>,
    pub(super) sticky: Arc<Sticky>,
    pub(super) max_message_bytes: AtomicUsize,
}

/// The partition of records without key: one until its batch is closed, so that batches fill.
#[derive(Debug, Default)]
pub(super) struct Sticky {
    current: AtomicU32,
    count: AtomicU32,
}

impl Sticky {
    pub(super) fn current(&self) -> u32 {
        self.current.load(Ordering::Relaxed)
    }

    pub(super) fn set_count(&self, count: u32) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// The batch of this partition was closed: another one is next.
    pub(super) fn leave(&self, index: u32) {
        let count = self.count.load(Ordering::Relaxed);
        if count > 1 && self.current() == index {
            let other = (index + rand::random_range(1..count)) % count;
            self.current.store(other, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sticky_moves_only_when_its_batch_closes() {
        let s = Sticky::default();
        s.set_count(4);
        s.leave(3);
        assert_eq!(s.current(), 0);
        s.leave(0);
        assert_ne!(s.current(), 0);
        assert!(s.current() < 4);
    }
}
