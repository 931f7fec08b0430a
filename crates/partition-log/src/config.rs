//! Numbers of a partition log; the defaults are the product's.

use std::time::Duration;

use tidemill_runtime::defaults;
use tidemill_types::TopicConfig;

/// Limits and times that all partitions of a broker share.
#[derive(Clone, Debug)]
pub struct PartitionLogConfig {
    /// Bytes of produced data that are not acknowledged yet, over all partitions.
    pub in_flight_bytes: usize,
    /// Wait at that bound before a produce call is refused.
    pub produce_wait: Duration,
    /// Bytes of the tail cache, over all partitions.
    pub tail_cache_bytes: u64,
    /// Bytes of read-ahead of catch-up reads, over all partitions.
    pub catch_up_bytes: usize,
    /// How much a catch-up read asks of the bookies at once.
    pub read_ahead_bytes: usize,
    /// A `state` entry after so many bytes of a ledger.
    pub state_entry_every: u64,
    /// Roll a ledger at this size unless the topic says otherwise, bytes.
    pub roll_bytes: u64,
    /// Roll a ledger that has data at this age unless the topic says otherwise.
    pub roll_age: Duration,
    /// An idle ledger is closed after.
    pub idle_close: Duration,
    /// State of a producer is forgotten after this much append time without a batch of it.
    pub producer_expiry: Duration,
    /// Append time may lie this far ahead of quorum time.
    pub append_time_ahead: Duration,
    /// Largest batch unless the topic says otherwise, bytes.
    pub max_message_bytes: u32,
    /// Largest body of one entry, bytes: what the bookies accept less the envelope.
    pub max_entry_bytes: usize,
    /// With so many entries in flight further calls wait and go together as one entry; `usize::MAX` switches it off.
    pub coalesce_after: usize,
    /// Bytes of such a common entry.
    pub coalesce_bytes: usize,
    /// How long a close waits for its `index` entry; without it the ledger is closed without an index.
    pub index_wait: Duration,
    /// Least and longest wait between tries of a metadata command or a recovery.
    pub retry: (Duration, Duration),
}

impl Default for PartitionLogConfig {
    fn default() -> Self {
        Self::with_memory(defaults::BROKER_MEMORY)
    }
}

impl PartitionLogConfig {
    /// The defaults with this memory budget: 25 % in flight, 50 % tail cache, 25 % catch-up.
    #[must_use]
    pub fn with_memory(bytes: u64) -> Self {
        let quarter = usize::try_from(bytes / 4).unwrap_or(usize::MAX);
        Self {
            in_flight_bytes: quarter,
            produce_wait: defaults::PRODUCE_WAIT,
            tail_cache_bytes: bytes / 2,
            catch_up_bytes: quarter,
            read_ahead_bytes: 1 << 20,
            state_entry_every: defaults::STATE_ENTRY_EVERY,
            roll_bytes: defaults::ROLL_BYTES,
            roll_age: defaults::ROLL_AGE,
            idle_close: defaults::IDLE_CLOSE,
            producer_expiry: defaults::PRODUCER_EXPIRY,
            append_time_ahead: defaults::APPEND_TIME_AHEAD,
            max_message_bytes: defaults::MAX_MESSAGE_BYTES,
            max_entry_bytes: defaults::MAX_ENTRY_BYTES - (64 << 10),
            coalesce_after: 16,
            coalesce_bytes: 1 << 20,
            index_wait: Duration::from_secs(1),
            retry: (Duration::from_millis(20), Duration::from_secs(1)),
        }
    }

    pub(crate) fn roll_bytes(&self, topic: &TopicConfig) -> u64 {
        topic.roll_bytes.unwrap_or(self.roll_bytes)
    }

    pub(crate) fn roll_age(&self, topic: &TopicConfig) -> Duration {
        topic.roll_ms.map_or(self.roll_age, |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    }

    pub(crate) fn max_message_bytes(&self, topic: &TopicConfig) -> usize {
        (topic.max_message_bytes.unwrap_or(self.max_message_bytes) as usize).min(self.max_entry_bytes)
    }
}
