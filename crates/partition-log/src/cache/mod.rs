//! The tail cache.

use std::sync::Arc;

/// Budget of the tail cache, shared over partitions.
pub(crate) struct TailCache {}

impl TailCache {
    pub(crate) fn new(_budget: u64) -> Arc<Self> {
        Arc::new(Self {})
    }

    pub(crate) fn used(&self) -> u64 {
        0
    }
}
