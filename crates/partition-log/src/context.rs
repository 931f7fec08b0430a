//! What all partitions of a broker share.

use std::sync::{Arc, atomic::AtomicU64};

use futures::future::BoxFuture;
use tidemill_ledger::{LedgerClient, LedgerMeta, MetaError};
use tidemill_runtime::clock::Clock;
use tidemill_types::{
    PartitionId, SessionId,
    meta::{Command, PartitionView, Rejection, Reply, TakeOver},
};
use tokio::sync::Semaphore;

use crate::{CompactionCounters, PartitionLogConfig, cache::TailCache};
use tidemill_runtime::Pace;

/// Partitions whose log start is being moved at once.
const TRIMS: usize = 16;

/// What a partition log needs from the metadata quorum beyond the records of ledgers.
///
/// # Contract
/// - `partition` MUST be a linearizable read that began after the call.
/// - `propose` is as in [`LedgerMeta`]; a command that is proposed twice is two requests.
pub trait PartitionMeta: LedgerMeta {
    /// The partition with the records of its ledgers; `None` when it does not exist (any more).
    fn partition(&self, partition: PartitionId) -> BoxFuture<'_, Result<Option<PartitionView>, MetaError>>;

    /// Quorum time now: the last tick heard and the own monotonic time since, ms since the Unix epoch. `None` before
    /// the first tick.
    fn quorum_time_ms(&self) -> Option<i64>;

    /// A time that has surely passed, ms since the Unix epoch; retention by time counts from it (metadata, Time). `None`
    /// until enough was heard.
    fn confirmed_time_ms(&self) -> Option<i64>;

    /// Sends one element of a `TakeOver`. An implementation MAY put elements of several partitions into one command
    /// (at most [`tidemill_types::meta::MAX_BATCH`]).
    fn take_over(&self, item: TakeOver) -> BoxFuture<'_, Result<Result<(), Rejection>, MetaError>> {
        Box::pin(async move {
            Ok(match self.propose(Command::TakeOver(vec![item])).await? {
                Ok(Reply::Each(mut each)) if each.len() == 1 => each.pop().unwrap_or(Ok(())),
                Ok(other) => Err(Rejection::Conflict { why: format!("unexpected reply {other:?}") }),
                Err(r) => Err(r),
            })
        })
    }
}

/// Whether the broker's session proves ownership right now (metadata, Sessions).
///
/// # Contract
/// `is_valid` MUST answer true only within the validity of `session`, counted from the sending of its last answered
/// renewal, and only while the process still uses that very session.
pub trait OwnerSession: Send + Sync + 'static {
    /// Whether the session named in an `Acquire` is valid now.
    fn is_valid(&self, session: SessionId) -> bool;
}

/// Shared by all partitions of a broker (or of one of its event loops).
pub struct LogContext {
    /// Writes, reads and recovers ledgers.
    pub ledgers: LedgerClient,
    /// The quorum.
    pub meta: Arc<dyn PartitionMeta>,
    /// Own clocks.
    pub clock: Arc<dyn Clock>,
    /// The broker's session.
    pub session: Arc<dyn OwnerSession>,
    /// Numbers.
    pub config: PartitionLogConfig,
    pub(crate) in_flight: Arc<Semaphore>,
    /// Since when appends find the bookies' disks full: ms of the boot clock and one, 0 = they are not.
    pub(crate) full_since: AtomicU64,
    pub(crate) catch_up: Arc<Semaphore>,
    pub(crate) tail_cache: Arc<TailCache>,
    pub(crate) trims: Arc<Semaphore>,
    /// One compaction at a time: its table of keys is the only large thing that it holds.
    pub(crate) compactions: Arc<Semaphore>,
    pub(crate) compaction_pace: Pace,
    pub(crate) compaction: Arc<CompactionCounters>,
}

impl LogContext {
    /// Bundles the parts and makes the memory budgets of `config`.
    #[must_use]
    pub fn new(
        ledgers: LedgerClient,
        meta: Arc<dyn PartitionMeta>,
        clock: Arc<dyn Clock>,
        session: Arc<dyn OwnerSession>,
        config: PartitionLogConfig,
    ) -> Arc<Self> {
        let permits = |bytes: usize| Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            in_flight: permits(config.in_flight_bytes),
            full_since: AtomicU64::new(0),
            catch_up: permits(config.catch_up_bytes),
            tail_cache: TailCache::new(config.tail_cache_bytes),
            trims: permits(TRIMS),
            compactions: permits(1),
            compaction_pace: Pace::new(config.compaction_bytes_per_second),
            compaction: Arc::default(),
            ledgers,
            meta,
            clock,
            session,
            config,
        })
    }

    /// Reads below the high watermark since the start: answered from the tail cache, and not.
    #[must_use]
    pub fn tail_cache_reads(&self) -> (u64, u64) {
        self.tail_cache.reads()
    }

    /// What compactions did since the start, over all partitions.
    #[must_use]
    pub fn compaction(&self) -> Arc<CompactionCounters> {
        self.compaction.clone()
    }

    /// Bytes in the tail cache, over all partitions.
    #[must_use]
    pub fn tail_cache_bytes(&self) -> u64 {
        self.tail_cache.used()
    }
}
