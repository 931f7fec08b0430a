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
    /// Records are kept for so long unless the topic says otherwise.
    pub retention: Duration,
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
    /// Share of dirty bytes from which on a partition is compacted unless the topic says otherwise, thousandths.
    pub min_dirty_permille: u16,
    /// Tombstones live so long after they were first compacted unless the topic says otherwise.
    pub delete_horizon: Duration,
    /// Largest ledger that compaction writes, bytes.
    pub compacted_ledger_bytes: u64,
    /// Bytes of the table of keys of the one compaction that runs at a time.
    pub compaction_keys_bytes: u64,
    /// Bytes a second that compactions read and write.
    pub compaction_bytes_per_second: u64,
    /// Least and longest wait between tries of a metadata command or a recovery.
    pub retry: (Duration, Duration),
}

/// Smallest ledger that a retention limit asks for, bytes.
const LEAST_ROLL_BYTES: u64 = 1 << 20;
/// Shortest life of a ledger that a retention limit asks for, ms.
const LEAST_ROLL_MS: u64 = 1_000;

/// At which size a ledger of the topic is rolled, bytes. Retention counts in whole ledgers, so without a word of the topic a
/// ledger has at most a quarter of what is kept; and whatever the topic says, at least a 32nd, so that a chain has at most
/// about 32 of them (ledger protocol 1.8).
#[must_use]
pub fn roll_bytes(topic: &TopicConfig, default: u64) -> u64 {
    let Some(kept) = topic.retention_bytes else { return topic.roll_bytes.unwrap_or(default) };
    let wished = topic.roll_bytes.unwrap_or_else(|| default.min((kept / 4).max(LEAST_ROLL_BYTES)));
    wished.max(kept / 32)
}

/// At which age a ledger of the topic that has records is rolled, ms. As [`roll_bytes`].
#[must_use]
pub fn roll_ms(topic: &TopicConfig, default: u64, default_retention: u64) -> u64 {
    let kept = topic.retention_ms.map_or(default_retention, |ms| u64::try_from(ms).unwrap_or(0));
    let given = topic.roll_ms.map(|ms| u64::try_from(ms).unwrap_or(0));
    // Kept for ever: there is nothing to count in ledgers.
    if topic.retention_ms == Some(i64::MAX) {
        return given.unwrap_or(default);
    }
    given.unwrap_or_else(|| default.min((kept / 4).max(LEAST_ROLL_MS))).max(kept / 32)
}

fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
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
            retention: defaults::RETENTION,
            producer_expiry: defaults::PRODUCER_EXPIRY,
            append_time_ahead: defaults::APPEND_TIME_AHEAD,
            max_message_bytes: defaults::MAX_MESSAGE_BYTES,
            max_entry_bytes: defaults::MAX_ENTRY_BYTES - (64 << 10),
            coalesce_after: 16,
            coalesce_bytes: 1 << 20,
            index_wait: Duration::from_secs(1),
            min_dirty_permille: defaults::MIN_DIRTY_PERMILLE,
            delete_horizon: defaults::DELETE_HORIZON,
            compacted_ledger_bytes: defaults::COMPACTED_LEDGER_BYTES,
            compaction_keys_bytes: defaults::COMPACTION_KEYS_BYTES,
            compaction_bytes_per_second: defaults::COMPACTION_BYTES_PER_SECOND,
            retry: (Duration::from_millis(20), Duration::from_secs(1)),
        }
    }

    pub(crate) fn roll_bytes(&self, topic: &TopicConfig) -> u64 {
        roll_bytes(topic, self.roll_bytes)
    }

    pub(crate) fn roll_age(&self, topic: &TopicConfig) -> Duration {
        Duration::from_millis(roll_ms(topic, millis(self.roll_age), millis(self.retention)))
    }

    pub(crate) fn max_message_bytes(&self, topic: &TopicConfig) -> usize {
        (topic.max_message_bytes.unwrap_or(self.max_message_bytes) as usize).min(self.max_entry_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledgers_are_a_quarter_of_what_is_kept_and_never_less_than_a_32nd() {
        let topic = |retention_bytes, roll_bytes| TopicConfig {
            retention_bytes,
            roll_bytes,
            ..TopicConfig::default()
        };
        assert_eq!(roll_bytes(&topic(None, None), 1 << 30), 1 << 30);
        assert_eq!(roll_bytes(&topic(Some(40 << 20), None), 1 << 30), 10 << 20);
        assert_eq!(roll_bytes(&topic(Some(1), None), 1 << 30), 1 << 20);
        assert_eq!(roll_bytes(&topic(Some(320 << 30), None), 1 << 30), 10 << 30);
        assert_eq!(roll_bytes(&topic(Some(320 << 20), Some(2 << 20)), 1 << 30), 10 << 20);
        let topic = |retention_ms, roll_ms| TopicConfig { retention_ms, roll_ms, ..TopicConfig::default() };
        let (day, week) = (86_400_000, 7 * 86_400_000);
        assert_eq!(roll_ms(&topic(None, None), day, week), day, "the defaults as they are documented");
        assert_eq!(roll_ms(&topic(Some(3_600_000), None), day, week), 900_000);
        assert_eq!(roll_ms(&topic(Some(i64::MAX), None), day, week), day);
        assert_eq!(roll_ms(&topic(Some(3_200_000), Some(1_000)), day, week), 100_000);
    }
}
