//! Where records come from: partitions followed for ever, or up to where they ended at the start.

use std::{sync::Arc, time::Duration};

use tidemill_client::{At, Client, Consumer, ConsumerConfig, Event, OffsetQuery, Start, TopicPartition};

use super::ends::Ends;
use crate::{commands::connect::failed, error::CliError};

/// Between two looks at the positions of partitions whose last offsets have no records.
const LOOK: Duration = Duration::from_millis(100);

/// A consumer with or without an end.
#[derive(Debug)]
pub(crate) struct Source {
    consumer: Consumer,
    ends: Option<Ends>,
}

/// What came.
#[derive(Debug)]
pub(crate) enum Step {
    /// Events in order per partition; none when nothing came in time.
    Events(Vec<Event>),
    /// All partitions are at their ends.
    Done,
}

/// All partitions of a topic.
pub(crate) async fn partitions(client: &Client, topic: &str) -> Result<Vec<TopicPartition>, CliError> {
    let count = client.partitions(topic).await.map_err(|e| failed(&e))?;
    let topic: Arc<str> = topic.into();
    Ok((0..count).map(|partition| TopicPartition { topic: topic.clone(), partition }).collect())
}

/// One offset of each partition, in order.
pub(crate) async fn offsets(
    client: &Client,
    partitions: &[TopicPartition],
    at: At,
) -> Result<Vec<Option<i64>>, CliError> {
    let query = |p: &TopicPartition| OffsetQuery { topic: p.topic.clone(), partition: p.partition, at };
    let queries: Vec<_> = partitions.iter().map(query).collect();
    let found = client.list_offsets(&queries).await.map_err(|e| failed(&e))?;
    Ok(found.into_iter().map(|r| r.offset).collect())
}

impl Source {
    /// All partitions of topics, also those that are added later.
    pub(crate) async fn follow(client: &Client, topics: &[String], start: Start) -> Result<Self, CliError> {
        let mut consumer = client.consumer(ConsumerConfig::default());
        consumer.assign_topics(topics.iter().map(|t| (t, start))).await.map_err(|e| failed(&e))?;
        Ok(Self { consumer, ends: None })
    }

    /// One partition.
    pub(crate) fn one(client: &Client, topic: &str, partition: u32, start: Start) -> Result<Self, CliError> {
        let mut consumer = client.consumer(ConsumerConfig::default());
        consumer.assign([(topic, partition, start)]).map_err(|e| failed(&e))?;
        Ok(Self { consumer, ends: None })
    }

    /// Partitions up to where they end now.
    pub(crate) async fn until_end(
        client: &Client,
        partitions: Vec<TopicPartition>,
        start: Start,
    ) -> Result<Self, CliError> {
        // Ends before starts: what is appended in between does not make a start lie behind its end.
        let ends = offsets(client, &partitions, At::Latest).await?;
        let starts = match start {
            Start::Earliest => offsets(client, &partitions, At::Earliest).await?,
            Start::Latest => ends.clone(),
            Start::Timestamp(ms) => offsets(client, &partitions, At::Timestamp(ms)).await?,
            Start::Offset(offset) => vec![Some(offset); partitions.len()],
        };
        let bounds = partitions.into_iter().zip(starts).zip(ends).map(|((p, start), end)| {
            let end = end.unwrap_or(0);
            (p, start.unwrap_or(end), end)
        });
        let bounds: Vec<_> = bounds.collect();
        let mut consumer = client.consumer(ConsumerConfig::default());
        let open = bounds.iter().filter(|(_, from, end)| from < end);
        // The earliest one may move on until it is read.
        let at = |from: i64| if start == Start::Earliest { start } else { Start::Offset(from) };
        let assigned = open.map(|(p, from, _)| (&*p.topic, p.partition, at(*from)));
        consumer.assign(assigned).map_err(|e| failed(&e))?;
        Ok(Self { consumer, ends: Some(Ends::new(bounds)) })
    }

    /// Goes on at `offset`, after a batch that cannot be read.
    pub(crate) fn skip(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), CliError> {
        self.consumer
            .seek(&partition.topic, partition.partition, Start::Offset(offset))
            .map_err(|e| failed(&e))
    }

    /// The partitions that are not at their ends, with these.
    pub(crate) fn left(&self) -> Vec<(TopicPartition, i64)> {
        let ends = self.ends.iter();
        ends.flat_map(|e| e.left().filter_map(|p| Some((p.clone(), e.end(p)?)))).collect()
    }

    /// What comes within `wait`.
    pub(crate) async fn next(&mut self, wait: Duration) -> Result<Step, CliError> {
        let Some(ends) = &mut self.ends else {
            return Ok(Step::Events(self.consumer.poll(wait).await.map_err(|e| failed(&e))?));
        };
        if ends.is_done() {
            return Ok(Step::Done);
        }
        let came = self.consumer.poll(wait.min(LOOK)).await.map_err(|e| failed(&e))?;
        let mut ended = Vec::new();
        if came.is_empty() {
            let at_end: Vec<_> = ends
                .left()
                .filter_map(|p| Some((p.clone(), self.consumer.position(&p.topic, p.partition)?)))
                .collect();
            ended.extend(at_end.into_iter().filter(|(p, at)| ends.reached(p, *at)).map(|(p, _)| p));
        }
        let mut events = Vec::with_capacity(came.len());
        for event in came {
            let (event, end) = ends.cut(event);
            events.extend(event);
            ended.extend(end);
        }
        for p in ended {
            self.consumer.pause(&p.topic, p.partition).map_err(|e| failed(&e))?;
        }
        Ok(Step::Events(events))
    }
}
