//! What a producer may use and how long it tries.

use std::time::Duration;

use tidemill_record::Compression;
use tidemill_runtime::defaults;
use tidemill_types::ErrorCode;

use crate::ClientError;

/// Well below the time after which a broker forgets a producer, so that a retry never meets a forgotten one.
const MAX_DELIVERY_TIMEOUT: Duration = Duration::from_secs(6 * 3600);

/// Configuration of a [`crate::Producer`].
#[derive(Clone, Debug)]
pub struct ProducerConfig {
    /// A batch that is not full waits so long for more records.
    pub linger: Duration,
    /// A batch is closed before it exceeds so many bytes without compression; one larger record goes alone. 1 KiB to
    /// 1 MiB.
    pub batch_bytes: usize,
    /// Bytes of all records that are not yet decided; `send` waits at this bound. At least `batch_bytes`.
    pub memory_bytes: usize,
    /// How batches are compressed.
    pub compression: Compression,
    /// From the first record of a batch to its success or failure.
    pub delivery_timeout: Duration,
    /// Without an answer for so long a stream is given up and its batches are sent again.
    pub request_timeout: Duration,
    /// At the delivery time-out the owner is asked what became of a batch that is in doubt, for at most so long; then its
    /// outcome stays unknown. Idempotent producers only; 0 = it is not asked.
    pub outcome_timeout: Duration,
    /// Exactly once and in order per partition, also over retries. Without it retries can write twice, and one batch
    /// per partition is in flight.
    pub idempotent: bool,
    /// Batches of a partition that are unanswered at once, 1 to 5 (what a broker remembers per producer).
    pub max_in_flight: usize,
}

impl Default for ProducerConfig {
    fn default() -> Self {
        Self {
            linger: defaults::LINGER,
            batch_bytes: defaults::BATCH_BYTES,
            memory_bytes: 32 << 20,
            compression: Compression::None,
            delivery_timeout: defaults::DELIVERY_TIMEOUT,
            request_timeout: Duration::from_secs(30),
            outcome_timeout: Duration::from_secs(10),
            idempotent: true,
            max_in_flight: defaults::PRODUCER_BATCHES,
        }
    }
}

impl ProducerConfig {
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        let refuse = |field: &str, found: String, allowed: &str| {
            let message = format!("producer configuration: {field} is {found}, allowed is {allowed}");
            Err(ClientError::new(ErrorCode::InvalidArgument, message))
        };
        if !(1 << 10..=1 << 20).contains(&self.batch_bytes) {
            return refuse("batch_bytes", self.batch_bytes.to_string(), "1 KiB to 1 MiB");
        }
        if self.memory_bytes < self.batch_bytes || self.memory_bytes > 1 << 40 {
            return refuse("memory_bytes", self.memory_bytes.to_string(), "batch_bytes to 1 TiB");
        }
        if !(1..=defaults::PRODUCER_BATCHES).contains(&self.max_in_flight) {
            return refuse("max_in_flight", self.max_in_flight.to_string(), "1 to 5");
        }
        if self.linger >= self.delivery_timeout || self.delivery_timeout > MAX_DELIVERY_TIMEOUT {
            let found = format!("{:?} with linger {:?}", self.delivery_timeout, self.linger);
            return refuse("delivery_timeout", found, "above linger, at most 6 h");
        }
        if self.request_timeout.is_zero() {
            return refuse("request_timeout", "0".to_owned(), "above 0");
        }
        Ok(())
    }
}
