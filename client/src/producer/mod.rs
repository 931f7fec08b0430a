//! Writing: records into batches, batches to the owners, every record decided exactly once.

mod config;
mod counters;
mod delivery;
mod error;
mod record;

use std::sync::Arc;

use tidemill_types::ErrorCode;

pub use config::ProducerConfig;
pub use counters::Counters;
pub use delivery::{Delivery, RecordMeta};
pub use error::{DeliveryError, NotDelivered, ProducerError};
pub use record::SendRecord;

use crate::{Client, ClientError};

/// Sends records. Clones share everything.
#[derive(Clone, Debug)]
pub struct Producer {
    client: Client,
}

/// A topic of a producer: made once, used for every record.
#[derive(Clone, Debug)]
pub struct TopicHandle {
    name: Arc<str>,
}

impl TopicHandle {
    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Partitions as far as the producer knows.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        0
    }
}

impl Producer {
    pub(crate) async fn start(client: Client, config: ProducerConfig) -> Result<Self, ClientError> {
        config.check()?;
        client.describe_raw("", vec![]).await?;
        Err(ClientError::new(ErrorCode::Unsupported, "producer"))
    }

    /// The handle of a topic.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, or no answer within the client's deadline.
    pub async fn topic(&self, name: &str) -> Result<TopicHandle, ClientError> {
        self.client.partitions(name).await?;
        Ok(TopicHandle { name: Arc::from(name) })
    }

    /// Takes a record without waiting.
    ///
    /// # Errors
    /// [`ProducerError::Full`] when there is no room now; others as [`Self::send`].
    pub fn try_send(&self, topic: &TopicHandle, record: &SendRecord<'_>) -> Result<Delivery, ProducerError> {
        let _ = record;
        Err(ProducerError::Closed { topic: topic.name.clone() })
    }

    /// Takes a record; waits only when the memory bound is reached. The order of calls is the order in the partition.
    ///
    /// # Errors
    /// [`ProducerError`]; the record is then not sent.
    pub async fn send(&self, topic: &TopicHandle, record: SendRecord<'_>) -> Result<Delivery, ProducerError> {
        tokio::task::yield_now().await;
        self.try_send(topic, &record)
    }

    /// Sends what is waiting and returns when everything that was sent before is decided, one way or the other.
    pub async fn flush(&self) {
        tokio::task::yield_now().await;
    }

    /// Refuses new records, flushes, and ends. The counters stay readable.
    pub async fn close(&self) {
        self.flush().await;
    }

    /// Records by outcome.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters::default()
    }
}
