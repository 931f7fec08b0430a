//! The tail cache: recent entries by reference, one budget over all partitions of a broker.
//!
//! Entries come in when they are acknowledged and leave oldest first. Catch-up reads neither fill nor evict it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

/// A partition's part of the cache.
pub(crate) trait Tail: Send + Sync {
    /// Drops the oldest entry.
    fn evict_oldest(&self);
}

/// Budget and order of eviction.
///
/// Locks: the queue's lock is never held while a partition's tail is locked, so that partitions may evict from each
/// other.
pub(crate) struct TailCache {
    budget: u64,
    used: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    queue: Mutex<VecDeque<(Weak<dyn Tail>, u64)>>,
}

impl TailCache {
    pub(crate) fn new(budget: u64) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self { budget, used: zero(), hits: zero(), misses: zero(), queue: Mutex::default() })
    }

    /// Counts a read that was, or was not, answered from it.
    pub(crate) fn count(&self, hit: bool) {
        (if hit { &self.hits } else { &self.misses }).fetch_add(1, Ordering::Relaxed);
    }

    /// Reads answered from it, and reads that went on to bookies.
    pub(crate) fn reads(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Bytes of the entries in it; those of a partition that was dropped count until their turn comes.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Notes entries of these sizes that a partition has put into its tail, and evicts what is too much. The caller
    /// holds no tail's lock.
    pub(crate) fn admit(&self, tail: &Weak<dyn Tail>, sizes: &[u64]) {
        let added: u64 = sizes.iter().sum();
        // Counted before another thread can find and evict them: the count never falls below what is queued.
        let mut used = self.used.fetch_add(added, Ordering::SeqCst) + added;
        self.queue.lock().extend(sizes.iter().map(|s| (tail.clone(), *s)));
        while used > self.budget {
            let Some((tail, size)) = self.queue.lock().pop_front() else { return };
            if let Some(tail) = tail.upgrade() {
                tail.evict_oldest();
            }
            used = self.used.fetch_sub(size, Ordering::SeqCst) - size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(AtomicU64);

    impl Tail for Count {
        fn evict_oldest(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_oldest_of_all_partitions_leaves_first() {
        let cache = TailCache::new(100);
        let tails = [Arc::new(Count(AtomicU64::new(0))), Arc::new(Count(AtomicU64::new(0)))];
        let weak: Vec<Weak<dyn Tail>> = tails.iter().map(|t| Arc::downgrade(t) as Weak<dyn Tail>).collect();
        cache.admit(&weak[0], &[40, 40]);
        cache.admit(&weak[1], &[20]);
        assert_eq!(cache.used(), 100);
        cache.admit(&weak[1], &[50]);
        assert_eq!((tails[0].0.load(Ordering::Relaxed), tails[1].0.load(Ordering::Relaxed)), (2, 0));
        assert_eq!(cache.used(), 70);
        drop(tails);
        cache.admit(&weak[0], &[100]);
        assert_eq!(cache.used(), 100, "entries of dropped partitions leave as well");
    }
}
