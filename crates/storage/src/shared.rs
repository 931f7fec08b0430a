//! What all parts of an engine share.

use std::{
    io,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tidemill_runtime::io::{Disk, DurableError, Lock, replace_durably};
use tidemill_types::LedgerId;

use crate::{
    config::{Driver, EngineConfig},
    counters::Counters,
    error::Poison,
    format::cookie::{self, Cookie},
    lane::{
        Core, Lane,
        queue::{Op, Refused},
    },
    ledger::Ledger,
    ledgers::{Ledgers, choose_lane},
    scrub::damage::Damage,
    segment::PageCache,
};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EngineConfig,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) ledgers: Ledgers,
    pub(crate) lanes: Vec<Arc<Lane>>,
    /// One per lane; locked by whoever runs the lane.
    pub(crate) cores: Vec<Mutex<Core>>,
    pub(crate) cache: PageCache,
    pub(crate) counters: Counters,
    /// Stored entries that are known to be damaged.
    pub(crate) damage: Damage,
    pub(crate) limbo: AtomicBool,
    pub(crate) read_only: AtomicBool,
    /// One cookie per lane, in the order of the lanes.
    pub(crate) cookies: Mutex<Vec<Cookie>>,
    /// One maintenance round at a time.
    pub(crate) maintenance: Mutex<()>,
    poison: OnceLock<Poison>,
    /// Held until the last handle of the engine is gone.
    pub(crate) _locks: Vec<Box<dyn Lock>>,
}

impl Shared {
    pub(crate) fn new(
        config: EngineConfig,
        disk: Arc<dyn Disk>,
        ledgers: Ledgers,
        lanes: Vec<Arc<Lane>>,
        cookies: Vec<Cookie>,
        locks: Vec<Box<dyn Lock>>,
    ) -> Self {
        let pages = usize::try_from(config.index_cache_bytes / crate::format::BLOCK).unwrap_or(usize::MAX);
        Self {
            limbo: AtomicBool::new(cookies.iter().any(|c| c.limbo)),
            read_only: AtomicBool::new(false),
            cache: PageCache::new(pages.max(16)),
            counters: Counters::default(),
            damage: Damage::default(),
            cookies: Mutex::new(cookies),
            maintenance: Mutex::new(()),
            poison: OnceLock::new(),
            _locks: locks,
            cores: Vec::new(),
            config,
            disk,
            ledgers,
            lanes,
        }
    }

    /// Stops the engine for good (R17). The first reason is kept and reported, once.
    pub(crate) fn poison(&self, what: &'static str, path: &Path, error: &io::Error) -> Poison {
        let mut first = false;
        let reason = self.poison.get_or_init(|| {
            first = true;
            Poison { what, path: path.to_path_buf(), why: error.to_string() }
        });
        if first {
            tracing::error!(%reason, "storage engine stopped");
            for lane in &self.lanes {
                lane.queue.abandon();
            }
            (self.config.on_fatal)(reason);
        }
        reason.clone()
    }

    pub(crate) fn poisoned(&self) -> Option<&Poison> {
        self.poison.get()
    }

    pub(crate) fn limbo(&self) -> bool {
        self.limbo.load(Ordering::SeqCst)
    }

    pub(crate) fn lane_of(&self, ledger: &Ledger) -> &Arc<Lane> {
        &self.lanes[usize::from(ledger.lane)]
    }

    /// A handle for a ledger that was never seen, on the lane that its id and the lanes' uuids choose.
    pub(crate) fn new_ledger(&self, ledger: LedgerId, fenced: bool) -> Ledger {
        Ledger::new(ledger, choose_lane(ledger, self.lanes.iter().map(|l| l.uuid.0)), fenced)
    }

    /// Queues an operation on the ledger's lane, and gives it back when it was refused.
    pub(crate) fn push_back(&self, ledger: &Ledger, op: Op) -> Result<(), (Refused, Op)> {
        self.lane_of(ledger).queue.push(op)?;
        if let Driver::Inline { wake } = &self.config.driver {
            wake();
        }
        Ok(())
    }

    /// Writes the cookies of all lanes with a change.
    ///
    /// # Errors
    /// The reason; the engine is poisoned by it unless the old cookie is still whole.
    pub(crate) fn change_cookies(&self, change: impl Fn(&mut Cookie)) -> Result<(), Poison> {
        let mut cookies = self.cookies.lock();
        for (lane, cookie) in self.lanes.iter().zip(cookies.iter_mut()) {
            let mut new = cookie.clone();
            change(&mut new);
            let path = lane.dir.join(cookie::NAME);
            match replace_durably(&*self.disk, &path, &new.encode()) {
                Ok(()) => *cookie = new,
                Err(DurableError::Untouched(e)) => {
                    return Err(Poison { what: "writing the cookie", path, why: e.to_string() });
                }
                Err(DurableError::Unknown(e)) => return Err(self.poison("writing the cookie", &path, &e)),
            }
        }
        Ok(())
    }
}
