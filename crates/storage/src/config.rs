//! What an engine is given at its start.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use tidemill_runtime::{Clock, SystemClock};
use uuid::Uuid;

use crate::error::Poison;

/// Who runs the lanes.
#[derive(Clone)]
pub enum Driver {
    /// One thread per lane, owned by the engine.
    Threads,
    /// Nobody: the caller runs [`crate::Engine::step`]. `wake` is called when there is work; it must not call the engine.
    Inline {
        /// Tells the caller to step.
        wake: Arc<dyn Fn() + Send + Sync>,
    },
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "Threads",
            Self::Inline { .. } => "Inline",
        })
    }
}

/// Shares of the disk, 0.0 to 1.0, at which writing stops and starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpaceLimits {
    /// Used share from which plain adds are refused.
    pub read_only_at: f64,
    /// Used share below which they are taken again.
    pub read_write_below: f64,
    /// Used share from which no further segment is opened: what is open and the reserve take recovery adds until half of the reserve
    /// is left.
    pub recovery_until: f64,
}

impl Default for SpaceLimits {
    fn default() -> Self {
        Self { read_only_at: 0.95, read_write_below: 0.90, recovery_until: 0.98 }
    }
}

/// What an engine is given at its start. [`EngineConfig::new`] has the shipped defaults.
#[derive(Clone)]
pub struct EngineConfig {
    /// One folder per lane, absolute.
    pub lanes: Vec<PathBuf>,
    /// Preallocated size of a segment, bytes.
    pub segment_bytes: u64,
    /// A commit group closes at this many bytes (one larger entry alone).
    pub group_bytes: usize,
    /// An idle lane writes its closing group after this time (R19).
    pub closing_delay: Duration,
    /// Largest encoded entry, bytes.
    pub max_entry_bytes: usize,
    /// Bytes that may wait in a lane's queue; past it adds are `Overloaded`.
    pub queue_bytes: usize,
    /// The delay that an `Overloaded` names.
    pub overload_delay: Duration,
    /// Bytes of the newest entries that are kept in memory, per lane.
    pub recent_bytes: usize,
    /// Bytes of sealed index pages that are kept in memory.
    pub index_cache_bytes: u64,
    /// Bytes per lane that are kept for fences, collections and recovery adds on a full disk; at most a segment.
    pub reserve_bytes: u64,
    /// When the disk counts as full.
    pub space: SpaceLimits,
    /// A segment below this live share is rewritten, 0.0 to 1.0.
    pub rewrite_below: f64,
    /// Who runs the lanes.
    pub driver: Driver,
    /// The clock of time-outs and measurements.
    pub clock: Arc<dyn Clock>,
    /// Draws uuids (bookie, lanes, segments).
    pub new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// Told once when the engine is poisoned: the process must exit (R17).
    pub on_fatal: Arc<dyn Fn(&Poison) + Send + Sync>,
}

impl EngineConfig {
    /// The shipped defaults for these lane folders.
    #[must_use]
    pub fn new(lanes: Vec<PathBuf>) -> Self {
        Self {
            lanes,
            segment_bytes: 256 << 20,
            group_bytes: 1 << 20,
            closing_delay: Duration::from_millis(50),
            max_entry_bytes: 8 << 20,
            queue_bytes: 64 << 20,
            overload_delay: Duration::from_millis(50),
            recent_bytes: 16 << 20,
            index_cache_bytes: 64 << 20,
            reserve_bytes: 32 << 20,
            space: SpaceLimits::default(),
            rewrite_below: 0.5,
            driver: Driver::Threads,
            clock: Arc::new(SystemClock),
            new_uuid: Arc::new(Uuid::new_v4),
            on_fatal: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineConfig")
            .field("lanes", &self.lanes)
            .field("segment_bytes", &self.segment_bytes)
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}
