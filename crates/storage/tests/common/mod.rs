//! A bookie's engine on a simulated disk, run by hand.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_runtime::{
    ManualClock,
    io::{Disk, SimDisk},
};
use tidemill_storage::*;
use tidemill_types::{ClusterId, Entry, EntryId, Incarnation, LedgerId};
use uuid::Uuid;

pub(crate) const CLUSTER: u128 = 77;

pub(crate) struct Bench {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) config: EngineConfig,
    pub(crate) boots: Arc<AtomicU64>,
    pub(crate) fatal: Arc<Mutex<Option<Poison>>>,
}

/// A small config: everything rolls early.
pub(crate) fn config(
    lanes: usize,
    clock: &Arc<ManualClock>,
    fatal: &Arc<Mutex<Option<Poison>>>,
) -> EngineConfig {
    let dirs = (0..lanes).map(|i| PathBuf::from(format!("/lane{i}"))).collect();
    let mut config = EngineConfig::new(dirs);
    config.segment_bytes = 64 << 10;
    config.group_bytes = 8 << 10;
    config.max_entry_bytes = 16 << 10;
    config.queue_bytes = 256 << 10;
    config.recent_bytes = 4 << 10;
    config.clock = Arc::clone(clock) as _;
    config.driver = Driver::Inline { wake: Arc::new(|| {}) };
    let next = AtomicU64::new(1);
    config.new_uuid = Arc::new(move || {
        let n = next.fetch_add(1, Ordering::SeqCst);
        Uuid::from_u128(u128::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
    });
    let fatal = Arc::clone(fatal);
    config.on_fatal = Arc::new(move |p| *fatal.lock() = Some(p.clone()));
    config
}

impl Bench {
    pub(crate) fn new(seed: u64, lanes: usize) -> Self {
        let clock = ManualClock::new(0);
        let fatal = Arc::new(Mutex::new(None));
        Self {
            disk: SimDisk::new(seed, 1 << 30),
            config: config(lanes, &clock, &fatal),
            clock,
            boots: Arc::new(AtomicU64::new(1)),
            fatal,
        }
    }

    pub(crate) fn scan(&self) -> Result<Scanned, OpenError> {
        Engine::open_scan(Arc::new(self.disk.clone()) as Arc<dyn Disk>, self.config.clone())
    }

    pub(crate) fn try_boot(&self, mark: Option<u64>) -> Result<(Engine, BootReport), OpenError> {
        let mut scanned = self.scan()?;
        let report = scanned.report().clone();
        let incarnation = Incarnation(self.boots.fetch_add(1, Ordering::SeqCst));
        scanned.write_pending(ClusterId(Uuid::from_u128(CLUSTER)), incarnation)?;
        let engine = scanned.finish(FinishBoot { limbo: false, mark: mark.map(LedgerId) })?;
        Ok((engine, report))
    }

    /// Boots; ledgers of any id are taken.
    pub(crate) fn boot(&self) -> (Engine, BootReport) {
        self.try_boot(Some(0)).unwrap()
    }
}

/// Fixed bytes for a (ledger, entry, salt).
pub(crate) fn entry_of(ledger: u64, entry: i64, len: usize, salt: u8) -> Bytes {
    let body: Vec<u8> =
        (0..len).map(|i| (i as u64 ^ ledger ^ entry.unsigned_abs()).to_le_bytes()[0] ^ salt).collect();
    let e = Entry::encode(
        LedgerId(ledger),
        EntryId(entry),
        EntryId(entry - 1),
        0,
        b"envelope",
        &[Bytes::from(body)],
    );
    e.unwrap().bytes().clone()
}

pub(crate) fn entry(ledger: u64, id: i64) -> Bytes {
    entry_of(ledger, id, 300 + (ledger as usize * 37 + id.unsigned_abs() as usize * 101) % 900, 0)
}

/// An answer that comes later.
pub(crate) struct Later<T>(Arc<Mutex<Option<T>>>);

impl<T: Send + 'static> Later<T> {
    pub(crate) fn new() -> (Self, Completion<T>) {
        let slot = Arc::new(Mutex::new(None));
        let put = Arc::clone(&slot);
        (Self(slot), Completion::new(move |v| *put.lock() = Some(v)))
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().take()
    }
}

pub(crate) fn add(engine: &Engine, bytes: Bytes, kind: AddKind) -> Option<AddOutcome> {
    let (later, done) = Later::new();
    engine.add(bytes, kind, done);
    engine.step();
    later.take()
}

pub(crate) fn fence(engine: &Engine, ledger: u64) -> Option<FenceOutcome> {
    let (later, done) = Later::new();
    engine.fence(LedgerId(ledger), done);
    engine.step();
    later.take()
}

pub(crate) fn collect(engine: &Engine, ledger: u64) -> Option<WriteOutcome> {
    let guard = engine.begin_collect(LedgerId(ledger))?;
    let (later, done) = Later::new();
    guard.commit(done);
    engine.step();
    later.take()
}

pub(crate) fn read(engine: &Engine, ledger: u64, entry: i64) -> ReadOutcome {
    engine.read(LedgerId(ledger), EntryId(entry), ReadMode::Full)
}

/// Lets the closing group be written.
pub(crate) fn idle(bench: &Bench, engine: &Engine) {
    bench.clock.advance(Duration::from_millis(200));
    engine.step();
}
