//! What all parts of a broker share once the quorum is known.

use std::sync::{Arc, atomic::AtomicU32};

use tidemill_meta_client::{MetaClient, MetaMirror};
use tidemill_partition_log::LogContext;
use tidemill_runtime::Clock;
use tidemill_types::{ClusterId, MemberId};
use tokio_util::sync::CancellationToken;

use crate::{
    config::BrokerConfig, fault::Fault, groups::Groups, metrics::BrokerMetrics, ownership::OwnedTable,
    service::producer::Ids,
};

/// Shared by services, ownership and lifecycle.
pub(crate) struct Core {
    pub(crate) config: BrokerConfig,
    pub(crate) cluster: ClusterId,
    pub(crate) member: MemberId,
    pub(crate) client: MetaClient,
    pub(crate) mirror: MetaMirror,
    pub(crate) logs: Arc<LogContext>,
    pub(crate) owned: OwnedTable,
    pub(crate) metrics: BrokerMetrics,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    /// Coordinators of consumer groups.
    pub(crate) groups: Groups,
    /// Open ledgers with fewer bookies than wanted, as of the last look.
    pub(crate) degraded: Arc<AtomicU32>,
    /// Everything was handed over: long polls and streams end.
    pub(crate) stopping: CancellationToken,
}

impl Core {
    /// Takes the figures of the tail cache over into the metrics.
    pub(crate) fn note_cache(&self) {
        let m = &self.metrics;
        m.tail_cache_bytes.set(self.logs.tail_cache_bytes());
        let (hits, misses) = self.logs.tail_cache_reads();
        m.tail_cache_hits.inc_by(hits.saturating_sub(m.tail_cache_hits.get()));
        m.tail_cache_misses.inc_by(misses.saturating_sub(m.tail_cache_misses.get()));
    }
}

/// The core, once there is one: the server answers from its first moment on.
#[derive(Clone)]
pub(crate) struct CoreSlot {
    core: Arc<std::sync::OnceLock<Arc<Core>>>,
    stopping: CancellationToken,
}

impl CoreSlot {
    pub(crate) fn new(stopping: CancellationToken) -> Self {
        Self { core: Arc::default(), stopping }
    }

    pub(crate) fn set(&self, core: Arc<Core>) {
        let _first = self.core.set(core);
    }

    pub(crate) fn peek(&self) -> Option<&Arc<Core>> {
        self.core.get()
    }

    /// The core.
    ///
    /// # Errors
    /// `NOT_READY` before the quorum is known and after the end.
    pub(crate) fn get(&self) -> Result<&Arc<Core>, Fault> {
        if self.stopping.is_cancelled() {
            return Err(Fault::not_ready("it is stopping"));
        }
        self.core.get().ok_or_else(|| Fault::not_ready("it waits for the metadata quorum"))
    }
}
