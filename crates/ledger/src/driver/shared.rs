//! What writers, links and recoveries of one process share.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tidemill_types::{BookieId, LedgerId};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    LedgerConfig, fences::Fences, link::Link, read_times::ReadTimes, write_backs::WriteBacks,
    writer::WriterShared,
};
use crate::{
    BookieTable, LedgerMeta,
    core::health::{HealthConfig, Verdict},
    transport::{Target, Transport},
};

/// One per process.
pub(crate) struct Shared {
    pub(crate) config: LedgerConfig,
    pub(crate) meta: Arc<dyn LedgerMeta>,
    pub(crate) transport: Arc<dyn Transport>,
    links: Mutex<HashMap<BookieId, Arc<Link>>>,
    writers: Mutex<HashMap<LedgerId, Weak<WriterShared>>>,
    /// Wakes the health task before its tick.
    pub(crate) judge: Notify,
    /// Ends all tasks.
    pub(crate) stop: CancellationToken,
    pub(crate) fences: Fences,
    pub(crate) write_backs: WriteBacks,
    pub(crate) read_times: ReadTimes,
    start: Instant,
}

impl Shared {
    pub(crate) fn new(
        config: LedgerConfig,
        meta: Arc<dyn LedgerMeta>,
        transport: Arc<dyn Transport>,
    ) -> Arc<Self> {
        Arc::new(Self {
            config,
            meta,
            transport,
            links: Mutex::default(),
            writers: Mutex::default(),
            judge: Notify::new(),
            stop: CancellationToken::new(),
            fences: Fences::default(),
            write_backs: WriteBacks::default(),
            read_times: ReadTimes::default(),
            start: Instant::now(),
        })
    }

    /// Monotonic time since the client's start: the `now` of the health cores.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn table(&self) -> Arc<BookieTable> {
        self.meta.bookies().borrow().clone()
    }

    pub(crate) fn health_config(&self) -> HealthConfig {
        HealthConfig {
            change_delay: self.config.ensemble_change_delay,
            restart_delay: self.config.restart_delay,
            unacked_cap: self.config.unacked_cap,
        }
    }

    /// Whom to ask under this uuid now; `None` when the table does not know where it listens.
    pub(crate) fn target(&self, bookie: BookieId) -> Option<Target> {
        self.table().get(bookie).map(|b| Target {
            cluster: self.config.cluster,
            bookie,
            incarnation: b.incarnation,
            endpoint: b.endpoint.clone(),
        })
    }

    /// The link to a bookie; its task starts with the first call.
    pub(crate) fn link(self: &Arc<Self>, bookie: BookieId) -> Arc<Link> {
        let mut links = self.links.lock();
        if let Some(l) = links.get(&bookie) {
            return l.clone();
        }
        let link = Arc::new(Link::new(bookie, self.health_config(), self.now()));
        links.insert(bookie, link.clone());
        drop(links);
        tokio::spawn(super::link::run(Arc::downgrade(self), link.clone(), self.stop.clone()));
        link
    }

    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        self.links.lock().values().cloned().collect()
    }

    /// What is known of its health; `None` when nobody used it yet.
    pub(crate) fn verdict(&self, bookie: BookieId) -> Option<Verdict> {
        let link = self.links.lock().get(&bookie).cloned()?;
        Some(link.verdict(self.now()))
    }

    pub(crate) fn register(&self, ledger: LedgerId, writer: &Arc<WriterShared>) {
        self.writers.lock().insert(ledger, Arc::downgrade(writer));
    }

    pub(crate) fn unregister(&self, ledger: LedgerId) {
        self.writers.lock().remove(&ledger);
    }

    pub(crate) fn writer(&self, ledger: LedgerId) -> Option<Arc<WriterShared>> {
        self.writers.lock().get(&ledger).and_then(Weak::upgrade)
    }

    pub(crate) fn writers(&self) -> Vec<Arc<WriterShared>> {
        self.writers.lock().values().filter_map(Weak::upgrade).collect()
    }
}
