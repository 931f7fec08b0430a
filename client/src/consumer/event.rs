//! What a poll gives.

use std::sync::Arc;

use bytes::Bytes;
use tidemill_record::Header;

use crate::ClientError;

/// A partition of a topic by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition index.
    pub partition: u32,
}

impl std::fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first record that is still there.
    Earliest,
    /// Behind the last record.
    Latest,
    /// At this offset.
    Offset(i64),
    /// At the first record whose timestamp is at or after this, ms since the Unix epoch; behind the last when there is
    /// none.
    Timestamp(i64),
}

/// A record with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumedRecord {
    /// Its offset.
    pub offset: i64,
    /// ms since the Unix epoch; -1 for none.
    pub timestamp: i64,
    /// The key, a slice of the fetched batch.
    pub key: Option<Bytes>,
    /// The value, a slice of the fetched batch.
    pub value: Option<Bytes>,
    /// Headers in the producer's order.
    pub headers: Vec<Header>,
}

/// Records of one batch of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumedBatch {
    /// Where they come from.
    pub source: TopicPartition,
    /// The broker's append time, ms since the Unix epoch.
    pub append_time: i64,
    /// Behind the last acknowledged record when the batch was fetched.
    pub high_watermark: i64,
    /// Rising offsets, all at or above the position asked for. Not empty.
    pub records: Vec<ConsumedRecord>,
}

/// Why offsets are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapKind {
    /// Removed by retention.
    Trimmed,
    /// Removed by key compaction.
    Compacted,
    /// Lost.
    DataLoss,
}

/// Offsets that are not there; the consumer goes on behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The partition.
    pub source: TopicPartition,
    /// Why.
    pub kind: GapKind,
    /// First missing offset.
    pub from: i64,
    /// Behind the last missing offset.
    pub to: i64,
}

/// What a poll can give, in order per partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Records.
    Batch(ConsumedBatch),
    /// Offsets without records.
    Gap(Gap),
    /// A batch that cannot be decoded although it arrived as it was stored. The partition stops at `offset` until
    /// [`crate::Consumer::seek`]; to `next_offset` skips the damage.
    Corrupt {
        /// The partition.
        source: TopicPartition,
        /// The first offset that cannot be read.
        offset: i64,
        /// Behind the batch.
        next_offset: i64,
        /// What is wrong.
        message: String,
    },
    /// The position is outside of the log. The partition stops until [`crate::Consumer::seek`].
    OutOfRange {
        /// The partition.
        source: TopicPartition,
        /// The position.
        offset: i64,
        /// First offset of the log.
        log_start: i64,
        /// Behind its last record.
        log_end: i64,
    },
    /// A failure of one partition. When retryable the consumer goes on trying; else the partition stops until
    /// [`crate::Consumer::seek`].
    Failed {
        /// The partition.
        source: TopicPartition,
        /// Why.
        error: ClientError,
    },
}
