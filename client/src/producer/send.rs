//! The hot path: from the caller's record into the open batch of its partition.

use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use tidemill_record::{HEADER_BYTES, partition_for_key};
use tokio::{sync::TryAcquireError, time::timeout};

use super::{
    Delivery, Producer, ProducerError, SendRecord, TopicHandle,
    accumulator::Partition,
    shared::{FENCED, OPEN},
};

/// Most bytes that a record needs beside its key, value and headers.
const RECORD_OVERHEAD: usize = 48;
/// The same per header.
const HEADER_OVERHEAD: usize = 12;

impl Producer {
    /// Takes a record without waiting.
    ///
    /// # Errors
    /// [`ProducerError::Full`] when there is no room now; others as [`Self::send`].
    #[inline]
    pub fn try_send(&self, topic: &TopicHandle, record: &SendRecord<'_>) -> Result<Delivery, ProducerError> {
        let bytes = self.admit(topic, record)?;
        match self.shared.memory.try_acquire_many(bytes) {
            Ok(permit) => permit.forget(),
            Err(TryAcquireError::NoPermits) => {
                self.shared.under_pressure();
                return Err(ProducerError::Full {
                    topic: topic.state.name.clone(),
                    limit: self.shared.config.memory_bytes,
                });
            }
            Err(TryAcquireError::Closed) => return Err(self.ended(topic)),
        }
        self.append(topic, record, bytes)
    }

    /// Takes a record; waits only when the memory bound is reached. The order of calls is the order in the partition.
    ///
    /// # Errors
    /// [`ProducerError`]; the record is then not sent.
    #[inline]
    pub async fn send(&self, topic: &TopicHandle, record: SendRecord<'_>) -> Result<Delivery, ProducerError> {
        match self.try_send(topic, &record) {
            Err(ProducerError::Full { .. }) => self.send_when_free(topic, &record).await,
            Err(ProducerError::UnknownPartition { .. }) => self.send_after_refresh(topic, &record).await,
            done => done,
        }
    }

    async fn send_when_free(
        &self,
        topic: &TopicHandle,
        record: &SendRecord<'_>,
    ) -> Result<Delivery, ProducerError> {
        let bytes = self.admit(topic, record)?;
        let free = self.shared.memory.acquire_many(bytes);
        match timeout(self.shared.config.delivery_timeout, free).await {
            Ok(Ok(permit)) => permit.forget(),
            Ok(Err(_)) => return Err(self.ended(topic)),
            Err(_) => return Err(ProducerError::TimedOut { topic: topic.state.name.clone() }),
        }
        self.append(topic, record, bytes)
    }

    /// The topic may have more partitions by now.
    async fn send_after_refresh(
        &self,
        topic: &TopicHandle,
        record: &SendRecord<'_>,
    ) -> Result<Delivery, ProducerError> {
        let name = &topic.state.name;
        let topology = &self.client.inner.topology;
        let seen = topology.route(name, 0).map_or(0, |(_, generation)| generation);
        if let Ok(facts) = topology.refresh(&self.client, name, seen).await {
            self.shared.topic(name, facts);
        }
        self.try_send(topic, record)
    }

    /// Checks the record and gives the bytes that it takes of the memory bound.
    #[inline]
    fn admit(&self, topic: &TopicHandle, record: &SendRecord<'_>) -> Result<u32, ProducerError> {
        if self.shared.state.load(Ordering::Acquire) != OPEN {
            return Err(self.ended(topic));
        }
        if topic.state.producer != Arc::as_ptr(&self.shared) as usize {
            return Err(ProducerError::ForeignHandle { topic: topic.state.name.clone() });
        }
        let mut bytes = RECORD_OVERHEAD;
        bytes = bytes.saturating_add(record.key.map_or(0, <[u8]>::len));
        bytes = bytes.saturating_add(record.value.map_or(0, <[u8]>::len));
        for h in record.headers {
            bytes = bytes.saturating_add(h.key.len() + HEADER_OVERHEAD);
            bytes = bytes.saturating_add(h.value.map_or(0, <[u8]>::len));
        }
        let max = topic.state.max_message_bytes.load(Ordering::Relaxed).min(self.shared.config.memory_bytes);
        let whole = bytes.saturating_add(HEADER_BYTES);
        if whole > max {
            return Err(ProducerError::TooLarge { topic: topic.state.name.clone(), bytes: whole, max });
        }
        u32::try_from(bytes).map_err(|_| ProducerError::TooLarge {
            topic: topic.state.name.clone(),
            bytes: whole,
            max,
        })
    }

    #[inline]
    fn append(
        &self,
        topic: &TopicHandle,
        record: &SendRecord<'_>,
        reserved: u32,
    ) -> Result<Delivery, ProducerError> {
        let give_back = |e| {
            self.shared.memory.add_permits(reserved as usize);
            e
        };
        let partitions = topic.state.partitions.load();
        let partition = choose(topic, &partitions, record).map_err(give_back)?;
        let timestamp = record.timestamp.unwrap_or_else(now_ms);
        let max = topic.state.max_message_bytes.load(Ordering::Relaxed).min(self.shared.config.batch_bytes);
        let done = {
            let mut acc = partition.acc.lock();
            // Under the lock: after `close` no batch is opened that nobody would send.
            if self.shared.state.load(Ordering::Acquire) != OPEN {
                return Err(give_back(self.ended(topic)));
            }
            acc.append(partition.index, record, timestamp, reserved as usize, max)
        };
        let done = done.map_err(|why| {
            // It may have closed a batch before it failed.
            self.shared.announce(partition.lane);
            give_back(ProducerError::Invalid { topic: topic.state.name.clone(), why })
        })?;
        if done.announce {
            self.shared.announce(partition.lane);
        }
        if done.closed {
            topic.state.sticky.leave(partition.index);
        }
        Ok(Delivery::new(done.state, done.index))
    }

    #[cold]
    fn ended(&self, topic: &TopicHandle) -> ProducerError {
        let topic = topic.state.name.clone();
        match self.shared.state.load(Ordering::Acquire) {
            FENCED => ProducerError::Fenced { topic },
            _ => ProducerError::Closed { topic },
        }
    }
}

#[inline]
fn choose<'a>(
    topic: &TopicHandle,
    partitions: &'a [Arc<Partition>],
    record: &SendRecord<'_>,
) -> Result<&'a Arc<Partition>, ProducerError> {
    let count = u32::try_from(partitions.len()).unwrap_or(u32::MAX);
    let index = match (record.partition, record.key, NonZeroU32::new(count)) {
        (Some(index), _, _) => index,
        (None, Some(key), Some(count)) => partition_for_key(key, count),
        (None, _, _) => topic.state.sticky.current(),
    };
    partitions.get(index as usize).ok_or_else(|| ProducerError::UnknownPartition {
        topic: topic.state.name.clone(),
        partition: index,
        partitions: count,
    })
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
