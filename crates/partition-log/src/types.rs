//! What goes in and out of a partition log.

use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use tidemill_types::{Epoch, LedgerId, Offset, PartitionId};

/// Where the records of a produce call stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProduceOutcome {
    /// Offset of the first record of the call; the others follow without a gap.
    pub base_offset: Offset,
    /// Append time, ms since the Unix epoch.
    pub append_time_ms: i64,
    /// The batches were written by an earlier call; offset and time are those of the first write.
    pub duplicate: bool,
}

/// What became of a batch of an idempotent producer (2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// It is in the log.
    Written {
        /// Offset of its first record and its append time, ms; `None` when they are not remembered any more.
        place: Option<(Offset, i64)>,
    },
    /// It is not in the log.
    NotWritten,
    /// Nothing of the producer is remembered: nothing of it was written within the expiry.
    NoState,
    /// A newer epoch of the producer wrote; what became of older ones is forgotten.
    Forgotten,
}

/// A batch as it was produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBatch {
    /// Offset of its first record; the field inside of the bytes is what the producer sent.
    pub base_offset: Offset,
    /// Append time, ms since the Unix epoch.
    pub append_time_ms: i64,
    /// The bytes that the producer sent, shared.
    pub bytes: Bytes,
}

/// Why something between the asked offset and the first record is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Below the log start.
    Trimmed,
    /// Removed by key compaction.
    Compacted,
    /// Lost.
    DataLoss,
}

/// Offsets that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub kind: GapKind,
    /// First missing offset.
    pub from: Offset,
    /// Behind the last missing offset.
    pub to: Offset,
}

/// Answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadResult {
    /// In order. The first one may begin before the asked offset: its earlier records are to be skipped.
    pub batches: Vec<StoredBatch>,
    /// Offset behind the last acknowledged record.
    pub high_watermark: Offset,
    /// First offset of the log.
    pub log_start: Offset,
    /// Read on here.
    pub next_offset: Offset,
    /// In front of the batches.
    pub gap: Option<Gap>,
}

/// Which offset is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log start.
    Earliest,
    /// Behind the last acknowledged record. Needs proof of ownership.
    Latest,
    /// The first record whose timestamp is at or above this, ms since the Unix epoch.
    Timestamp(i64),
}

/// Answer to an [`OffsetSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset.
    pub offset: Offset,
    /// With [`OffsetSpec::Timestamp`] the record's timestamp, else -1.
    pub timestamp_ms: i64,
}

/// Where a partition log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// The last ledger is being recovered, or the producers' state rebuilt. Produce calls wait.
    Recovering,
    /// Open for everything.
    Serving,
    /// Being given up: nothing new is taken, what is in flight is finished.
    Releasing,
    /// Given up in order: the `Release` may be sent.
    Closed,
    /// Lost to another owner, or given up without order.
    Dropped,
}

/// For people and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The partition.
    pub partition: PartitionId,
    /// The epoch that this log serves.
    pub epoch: Epoch,
    /// Where it stands.
    pub state: LogState,
    /// Offset behind the last acknowledged record.
    pub high_watermark: Offset,
    /// First offset of the log.
    pub log_start: Offset,
    /// Ledgers in the chain.
    pub ledgers: usize,
    /// The open ledger.
    pub open_ledger: Option<LedgerId>,
    /// The open ledger goes on with fewer bookies than it should have (R28).
    pub degraded: bool,
    /// Produced bytes that wait for acknowledgement or for a ledger.
    pub pending_bytes: usize,
    /// Known idempotent producers.
    pub producers: usize,
    /// Bytes in the tail cache.
    pub cached_bytes: usize,
    /// Of a topic that is compacted.
    pub compaction: Option<CompactionStatus>,
}

/// Where key compaction of a partition stands, as far as its owner has looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionStatus {
    /// Share of the closed ledgers' bytes that were not compacted yet, thousandths; `None`: nobody has looked yet.
    pub dirty_permille: Option<u16>,
    /// Of each key only the last record below this offset is there.
    pub clean_to: Offset,
    /// A pass is under way and has read so much of its input, per cent.
    pub progress_percent: Option<u8>,
    /// Passes that ended since this broker owns the partition.
    pub passes: u64,
    /// Passes that failed since then; they are tried again.
    pub failed: u64,
}

/// What the compactions of a broker did since its start.
#[derive(Debug, Default)]
pub struct CompactionCounters {
    /// Passes that run now.
    pub running: AtomicU64,
    /// Passes that ended.
    pub passes: AtomicU64,
    /// Passes that failed; they are tried again.
    pub failed: AtomicU64,
    /// Bytes of entries that were read, those that are read twice counted twice.
    pub read_bytes: AtomicU64,
    /// Bytes of batches that were written.
    pub written_bytes: AtomicU64,
    /// Records that were written.
    pub kept_records: AtomicU64,
    /// Records that were left out.
    pub dropped_records: AtomicU64,
}

/// Rare events of one partition log: a long test that never saw one of them proves less than it seems to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// `Roll` with entries above the end.
    pub rolls_with_pending: u64,
    /// `Roll`, `Close`, `Append` or `TakeOver` of unknown outcome, settled later.
    pub settled_unknown: u64,
    /// Barriers that proved ownership.
    pub barriers: u64,
    /// Barriers that could not.
    pub barriers_refused: u64,
    /// An owner recovered its own fenced ledger.
    pub own_recoveries: u64,
    /// Duplicates answered from state that was rebuilt at a take-over.
    pub duplicates_after_take_over: u64,
}
