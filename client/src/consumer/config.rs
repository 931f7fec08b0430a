//! How a consumer fetches.

use std::time::Duration;

/// Configuration of a [`crate::Consumer`].
#[derive(Clone, Debug)]
pub struct ConsumerConfig {
    /// Bytes of one fetch over all partitions of a broker, at most 64 MiB. Memory is about twice this per broker, more
    /// when batches are compressed.
    pub fetch_bytes: u32,
    /// Bytes of one partition in one fetch.
    pub partition_bytes: u32,
    /// A broker answers once it has so many bytes ...
    pub min_bytes: u32,
    /// ... or after so long.
    pub max_wait: Duration,
    /// A compressed batch may become so large, bytes.
    pub max_inflated_bytes: usize,
    /// A partition that answers with retryable errors for so long is reported by an event (and tried further).
    pub report_after: Duration,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            fetch_bytes: 8 << 20,
            partition_bytes: 1 << 20,
            min_bytes: 1,
            max_wait: Duration::from_millis(500),
            max_inflated_bytes: tidemill_runtime::defaults::MAX_INFLATED_BYTES,
            report_after: Duration::from_secs(30),
        }
    }
}
