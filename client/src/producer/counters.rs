//! How many records went which way.

use std::sync::atomic::{AtomicU64, Ordering};

/// Records of a producer so far. Those that are in none of the three groups are on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Taken by `send`.
    pub sent: u64,
    /// Acknowledged.
    pub acked: u64,
    /// Surely not written.
    pub not_written: u64,
    /// Perhaps written.
    pub unknown: u64,
    /// Batches that were sent once more.
    pub batch_retries: u64,
}

/// The live form.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) acked: AtomicU64,
    pub(crate) not_written: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) batch_retries: AtomicU64,
}

impl Counting {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
