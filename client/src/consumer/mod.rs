//! Reading assigned partitions.
//!
//! A task of the consumer keeps one fetch per broker on its way (many partitions in each) and one more buffered;
//! answers are checked and decoded in the fetch's own task. A poll takes what is there and moves the positions. A
//! seek makes a new generation of the partition, and whatever was fetched for an older one is dropped.

mod config;
mod decode;
mod driver;
mod event;
mod fetch;
mod state;

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_types::ErrorCode;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::{
    driver::{Driver, Shared},
    state::{Part, State},
};
use crate::{At, Client, ClientError, OffsetQuery, OffsetResult};

pub use config::ConsumerConfig;
pub use event::{ConsumedBatch, ConsumedRecord, Event, Gap, GapKind, Start, TopicPartition};

/// Most partitions of one consumer.
const MAX_ASSIGNED: usize = 100_000;

/// Reads assigned partitions, with one fetch per broker on its way and one more buffered. Dropping it ends its work.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl Consumer {
    pub(crate) fn start(client: Client, config: ConsumerConfig) -> Self {
        let shared = Arc::new(Shared {
            client,
            config,
            state: Mutex::new(State::default()),
            changed: Notify::new(),
            came: Notify::new(),
            stop: CancellationToken::new(),
        });
        Driver::start(shared.clone());
        Self { shared }
    }

    /// Replaces the assignment.
    ///
    /// # Errors
    /// More than 100 000 partitions, a partition that is named twice, or a negative offset.
    pub fn assign<T: AsRef<str>>(
        &mut self,
        partitions: impl IntoIterator<Item = (T, u32, Start)>,
    ) -> Result<(), ClientError> {
        let wanted = partitions.into_iter().map(|(topic, partition, start)| {
            (TopicPartition { topic: Arc::from(topic.as_ref()), partition }, start)
        });
        self.replace(wanted, Vec::new())
    }

    /// Assigns all partitions of topics; partitions that are added later come in by themselves, from their beginning.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, no answer within the client's deadline, or as [`Self::assign`].
    pub async fn assign_topics<T: AsRef<str>>(
        &mut self,
        topics: impl IntoIterator<Item = (T, Start)>,
    ) -> Result<(), ClientError> {
        let mut wanted = Vec::new();
        let mut followed = Vec::new();
        for (topic, start) in topics {
            let topic: Arc<str> = Arc::from(topic.as_ref());
            let count = self.shared.client.partitions(&topic).await?;
            wanted.extend(
                (0..count).map(|partition| (TopicPartition { topic: topic.clone(), partition }, start)),
            );
            followed.push(topic);
        }
        self.replace(wanted, followed)
    }

    fn replace(
        &self,
        wanted: impl IntoIterator<Item = (TopicPartition, Start)>,
        followed: Vec<Arc<str>>,
    ) -> Result<(), ClientError> {
        let refuse =
            |why: String| Err(ClientError::new(ErrorCode::InvalidArgument, format!("assign: {why}")));
        let mut state = self.shared.state.lock();
        let mut partitions = HashMap::new();
        for (source, start) in wanted {
            check(&source, start)?;
            if partitions.len() == MAX_ASSIGNED {
                return refuse(format!("more than {MAX_ASSIGNED} partitions"));
            }
            let part = Part::new(state.generation(), start);
            if partitions.insert(source.clone(), part).is_some() {
                return refuse(format!("partition {source} is named twice"));
            }
        }
        state.partitions = partitions;
        state.followed = followed;
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Adds a partition beside the others, which go on untouched.
    pub(crate) fn add(&mut self, source: &TopicPartition, start: Start) {
        let mut state = self.shared.state.lock();
        let part = Part::new(state.generation(), start);
        state.partitions.insert(source.clone(), part);
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Nothing of the partition is fetched or given any more; its position stays readable.
    pub(crate) fn stop_fetching(&mut self, source: &TopicPartition) {
        let mut state = self.shared.state.lock();
        let generation = state.generation();
        if let Some(part) = state.partitions.get_mut(source) {
            part.generation = generation;
            part.stopped = true;
            part.busy = false;
        }
    }

    /// Takes a partition out; the others go on untouched.
    pub(crate) fn remove(&mut self, source: &TopicPartition) {
        self.shared.state.lock().partitions.remove(source);
    }

    /// The assigned partitions, in order.
    #[must_use]
    pub fn assignment(&self) -> Vec<TopicPartition> {
        let mut all: Vec<_> = self.shared.state.lock().partitions.keys().cloned().collect();
        all.sort();
        all
    }

    /// What has come, waiting at most `timeout` for the first event. Empty after the time-out. Events of a partition
    /// come in order.
    ///
    /// # Errors
    /// Nothing is assigned (`INVALID_ARGUMENT`).
    pub async fn poll(&mut self, timeout: Duration) -> Result<Vec<Event>, ClientError> {
        let until = Instant::now() + timeout;
        loop {
            let (events, assigned) = {
                let mut state = self.shared.state.lock();
                let held = state.ready.len();
                let events = state.take();
                if state.ready.len() < held {
                    // Room for the next fetch.
                    self.shared.changed.notify_one();
                }
                (events, !state.partitions.is_empty())
            };
            if !assigned {
                return Err(ClientError::new(ErrorCode::InvalidArgument, "poll: no partition is assigned"));
            }
            if !events.is_empty() {
                return Ok(events);
            }
            if timeout_at(until, self.shared.came.notified()).await.is_err() {
                return Ok(Vec::new());
            }
        }
    }

    /// Offset of the next record that a poll will give; `None` while the start is not resolved, or not assigned.
    #[must_use]
    pub fn position(&self, topic: &str, partition: u32) -> Option<i64> {
        let source = TopicPartition { topic: Arc::from(topic), partition };
        self.shared.state.lock().partitions.get(&source)?.position
    }

    /// Goes on elsewhere; what was buffered of the partition is dropped.
    ///
    /// # Errors
    /// The partition is not assigned, or a negative offset.
    pub fn seek(&mut self, topic: &str, partition: u32, to: Start) -> Result<(), ClientError> {
        self.change("seek", topic, partition, |source, state| {
            check(source, to)?;
            let generation = state.generation();
            if let Some(part) = state.partitions.get_mut(source) {
                part.generation = generation;
                part.begin(to);
            }
            Ok(())
        })
    }

    /// Gives nothing of the partition until [`Self::resume`]; its position stays.
    ///
    /// # Errors
    /// The partition is not assigned.
    pub fn pause(&mut self, topic: &str, partition: u32) -> Result<(), ClientError> {
        self.change("pause", topic, partition, |source, state| {
            state.partitions.get_mut(source).into_iter().for_each(|p| p.paused = true);
            Ok(())
        })
    }

    /// Ends [`Self::pause`].
    ///
    /// # Errors
    /// The partition is not assigned.
    pub fn resume(&mut self, topic: &str, partition: u32) -> Result<(), ClientError> {
        self.change("resume", topic, partition, |source, state| {
            state.partitions.get_mut(source).into_iter().for_each(|p| p.paused = false);
            Ok(())
        })?;
        self.shared.came.notify_one();
        Ok(())
    }

    fn change(
        &self,
        what: &str,
        topic: &str,
        partition: u32,
        with: impl FnOnce(&TopicPartition, &mut State) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let source = TopicPartition { topic: Arc::from(topic), partition };
        let mut state = self.shared.state.lock();
        if !state.partitions.contains_key(&source) {
            let message = format!("{what}: partition {source} is not assigned");
            return Err(ClientError::new(ErrorCode::InvalidArgument, message));
        }
        with(&source, &mut state)?;
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Where each assigned partition ends now (behind its last acknowledged record), in order.
    ///
    /// # Errors
    /// A partition that does not answer within the client's deadline.
    pub async fn end_offsets(&self) -> Result<Vec<OffsetResult>, ClientError> {
        let query =
            |p: TopicPartition| OffsetQuery { topic: p.topic, partition: p.partition, at: At::Latest };
        let queries: Vec<_> = self.assignment().into_iter().map(query).collect();
        self.shared.client.list_offsets(&queries).await
    }
}

fn check(source: &TopicPartition, start: Start) -> Result<(), ClientError> {
    match start {
        Start::Offset(offset) if offset < 0 => Err(ClientError::new(
            ErrorCode::InvalidArgument,
            format!("partition {source}: offset {offset} is below 0"),
        )),
        _ => Ok(()),
    }
}
