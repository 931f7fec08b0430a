//! Reading assigned partitions.

mod config;
mod event;

use std::time::Duration;

use crate::{At, Client, ClientError, OffsetQuery, OffsetResult};
use tidemill_types::ErrorCode;

pub use config::ConsumerConfig;
pub use event::{ConsumedBatch, ConsumedRecord, Event, Gap, GapKind, Start, TopicPartition};

/// Reads assigned partitions, with one fetch per broker on its way and one more buffered.
#[derive(Debug)]
pub struct Consumer {
    client: Client,
    config: ConsumerConfig,
}

impl Consumer {
    pub(crate) fn start(client: Client, config: ConsumerConfig) -> Self {
        Self { client, config }
    }

    /// Replaces the assignment.
    ///
    /// # Errors
    /// More than 100 000 partitions, or a partition that is named twice.
    pub fn assign<T: AsRef<str>>(
        &mut self,
        partitions: impl IntoIterator<Item = (T, u32, Start)>,
    ) -> Result<(), ClientError> {
        let _ = (partitions.into_iter().count(), &self.config);
        Err(ClientError::new(ErrorCode::Unsupported, "assign"))
    }

    /// Assigns all partitions of topics; partitions that are added later come in by themselves, from their beginning.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, or no answer within the client's deadline.
    pub async fn assign_topics<T: AsRef<str>>(
        &mut self,
        topics: impl IntoIterator<Item = (T, Start)>,
    ) -> Result<(), ClientError> {
        for (topic, _) in topics {
            self.client.partitions(topic.as_ref()).await?;
        }
        Err(ClientError::new(ErrorCode::Unsupported, "assign"))
    }

    /// The assigned partitions.
    #[must_use]
    pub fn assignment(&self) -> Vec<TopicPartition> {
        Vec::new()
    }

    /// What has come, waiting at most `timeout` for the first event. Empty after the time-out.
    ///
    /// # Errors
    /// Nothing is assigned.
    pub async fn poll(&mut self, timeout: Duration) -> Result<Vec<Event>, ClientError> {
        tokio::time::sleep(timeout).await;
        Ok(Vec::new())
    }

    /// Offset of the next record that a poll will give; `None` while the start is not resolved, or not assigned.
    #[must_use]
    pub fn position(&self, topic: &str, partition: u32) -> Option<i64> {
        let _ = (topic, partition);
        None
    }

    /// Goes on elsewhere; what was buffered of the partition is dropped.
    ///
    /// # Errors
    /// The partition is not assigned.
    pub fn seek(&mut self, topic: &str, partition: u32, to: Start) -> Result<(), ClientError> {
        let _ = (topic, partition, to);
        Err(ClientError::new(ErrorCode::Unsupported, "seek"))
    }

    /// Gives nothing of the partition until [`Self::resume`]; its position stays.
    ///
    /// # Errors
    /// The partition is not assigned.
    pub fn pause(&mut self, topic: &str, partition: u32) -> Result<(), ClientError> {
        let _ = (topic, partition);
        Err(ClientError::new(ErrorCode::Unsupported, "pause"))
    }

    /// Ends [`Self::pause`].
    ///
    /// # Errors
    /// The partition is not assigned.
    pub fn resume(&mut self, topic: &str, partition: u32) -> Result<(), ClientError> {
        let _ = (topic, partition);
        Err(ClientError::new(ErrorCode::Unsupported, "resume"))
    }

    /// Where each assigned partition ends now (behind its last acknowledged record).
    ///
    /// # Errors
    /// A partition that does not answer within the client's deadline.
    pub async fn end_offsets(&self) -> Result<Vec<OffsetResult>, ClientError> {
        let queries: Vec<_> = self
            .assignment()
            .into_iter()
            .map(|p| OffsetQuery { topic: p.topic, partition: p.partition, at: At::Latest })
            .collect();
        self.client.list_offsets(&queries).await
    }
}
