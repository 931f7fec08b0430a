//! The partitions that this process holds.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use tidemill_partition_log::{LogState, PartitionLog};
use tidemill_types::{Epoch, PartitionId};
use tokio::sync::watch;

use super::plan::Holding;

/// What is held of one partition.
#[derive(Clone)]
pub(crate) enum Held {
    /// Acquired, its records are being read.
    Opening(Epoch),
    /// There is a log: it takes over, serves, or finishes what is in flight.
    Log(Arc<PartitionLog>),
    /// The log has ended and the `Release` of this epoch is on its way: nothing that needs ownership is answered (M27).
    Released(Epoch),
}

/// Looked up by every request, changed by the ownership manager alone.
pub(crate) struct OwnedTable {
    held: RwLock<HashMap<PartitionId, Held>>,
    /// Partitions that clients asked for in vain: they are taken over first.
    wanted: Mutex<HashSet<PartitionId>>,
    changed: watch::Sender<u64>,
}

/// So many waiting partitions are remembered; more make no order any better.
const MAX_WANTED: usize = 10_000;

impl OwnedTable {
    pub(crate) fn new() -> Self {
        Self {
            held: RwLock::new(HashMap::new()),
            wanted: Mutex::new(HashSet::new()),
            changed: watch::Sender::new(0),
        }
    }

    pub(crate) fn get(&self, id: PartitionId) -> Option<Held> {
        self.held.read().get(&id).cloned()
    }

    /// The log, when there is one.
    pub(crate) fn log(&self, id: PartitionId) -> Option<Arc<PartitionLog>> {
        match self.held.read().get(&id) {
            Some(Held::Log(log)) => Some(log.clone()),
            _ => None,
        }
    }

    /// All logs.
    pub(crate) fn logs(&self) -> Vec<Arc<PartitionLog>> {
        self.held
            .read()
            .values()
            .filter_map(|h| if let Held::Log(l) = h { Some(l.clone()) } else { None })
            .collect()
    }

    pub(crate) fn ids(&self) -> Vec<PartitionId> {
        self.held.read().keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.read().len()
    }

    /// Wakes at every change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// A client waits for this partition.
    pub(crate) fn want(&self, id: PartitionId) {
        let mut w = self.wanted.lock();
        if w.len() < MAX_WANTED {
            w.insert(id);
        }
    }

    pub(super) fn take_wanted(&self) -> HashSet<PartitionId> {
        std::mem::take(&mut self.wanted.lock())
    }

    pub(super) fn holding(&self, id: PartitionId) -> Holding {
        match self.held.read().get(&id) {
            None => Holding::Nothing,
            Some(Held::Opening(e)) => Holding::Serving(*e),
            Some(Held::Released(e)) => Holding::Releasing(*e),
            Some(Held::Log(l)) => match l.state() {
                LogState::Recovering | LogState::Serving => Holding::Serving(l.epoch()),
                LogState::Releasing | LogState::Closed | LogState::Dropped => Holding::Releasing(l.epoch()),
            },
        }
    }

    pub(super) fn put(&self, id: PartitionId, held: Held) {
        self.held.write().insert(id, held);
        self.bump();
    }

    /// Puts a log where its epoch is still being opened; false when the partition was dropped meanwhile.
    pub(super) fn opened(&self, id: PartitionId, log: &Arc<PartitionLog>) -> bool {
        let mut held = self.held.write();
        let fits = matches!(held.get(&id), Some(Held::Opening(e)) if *e == log.epoch());
        if fits {
            held.insert(id, Held::Log(log.clone()));
        }
        drop(held);
        self.bump();
        fits
    }

    pub(super) fn remove(&self, id: PartitionId) -> Option<Held> {
        let old = self.held.write().remove(&id);
        self.bump();
        old
    }

    /// Removes it only when it is held in this epoch.
    pub(super) fn remove_epoch(&self, id: PartitionId, epoch: Epoch) {
        let mut held = self.held.write();
        let same = match held.get(&id) {
            Some(Held::Opening(e) | Held::Released(e)) => *e == epoch,
            Some(Held::Log(l)) => l.epoch() == epoch,
            None => false,
        };
        if same {
            held.remove(&id);
        }
        drop(held);
        self.bump();
    }

    /// Drops everything at once: the session is over. Returns how many partitions that were.
    pub(crate) fn abandon_all(&self) -> usize {
        let all: Vec<Held> = self.held.write().drain().map(|(_, h)| h).collect();
        for h in &all {
            if let Held::Log(l) = h {
                l.abandon();
            }
        }
        self.bump();
        all.len()
    }

    /// A log changed its state: those who wait look again.
    pub(super) fn touch(&self) {
        self.bump();
    }

    fn bump(&self) {
        self.changed.send_modify(|v| *v = v.wrapping_add(1));
    }
}
