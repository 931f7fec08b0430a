//! The two reads of a run: one while it is written, one from the start when all is written.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tidemill_client::{Client, Consumer, ConsumerConfig, Event, GapKind, Start, TopicPartition};
use tokio::sync::watch;

use super::value::{Values, digest};
use crate::{
    commands::{
        connect::failed,
        consume::{Source, Step, trouble},
    },
    error::CliError,
};
use tidemill_history::{Seen, View};

/// Between two looks at whether all is read.
const LOOK: Duration = Duration::from_millis(100);

/// Views by partition.
type Views = BTreeMap<u32, View>;

/// Reads until `ends` are known (in order of `partitions`) and reached.
pub(super) async fn live(
    client: Client,
    partitions: Vec<TopicPartition>,
    values: Values,
    mut ends: watch::Receiver<Option<Vec<Option<i64>>>>,
    patience: Duration,
) -> Result<Views, CliError> {
    let mut consumer = client.consumer(ConsumerConfig::default());
    consumer
        .assign(partitions.iter().map(|p| (&*p.topic, p.partition, Start::Offset(0))))
        .map_err(|e| failed(&e))?;
    let mut views = empty(&partitions);
    let mut last = Instant::now();
    loop {
        let events = consumer.poll(LOOK).await.map_err(|e| failed(&e))?;
        if !events.is_empty() || ends.has_changed().unwrap_or(false) {
            last = Instant::now();
        }
        for event in events {
            let corrupt = match &event {
                Event::Corrupt { source, next_offset, .. } => Some((source.clone(), *next_offset)),
                _ => None,
            };
            take(&mut views, event, values)?;
            if let Some((p, next)) = corrupt {
                consumer.seek(&p.topic, p.partition, Start::Offset(next)).map_err(|e| failed(&e))?;
            }
        }
        if let Some(ends) = &*ends.borrow_and_update() {
            if reached(&consumer, &partitions, ends, &mut views) {
                return Ok(views);
            }
            if last.elapsed() > patience {
                for (p, end) in partitions.iter().zip(ends) {
                    stuck(&mut views, p, end.unwrap_or(0));
                }
                return Ok(views);
            }
        }
    }
}

/// Whether all partitions are at their ends; notes how far each is.
fn reached(
    consumer: &Consumer,
    partitions: &[TopicPartition],
    ends: &[Option<i64>],
    views: &mut Views,
) -> bool {
    let mut all = true;
    for (p, end) in partitions.iter().zip(ends) {
        let position = consumer.position(&p.topic, p.partition).unwrap_or(0);
        if let Some(view) = views.get_mut(&p.partition) {
            view.end = view.end.max(position);
        }
        all &= position >= end.unwrap_or(0);
    }
    all
}

/// Reads all there is.
pub(super) async fn from_the_start(
    client: &Client,
    partitions: Vec<TopicPartition>,
    values: Values,
    patience: Duration,
) -> Result<Views, CliError> {
    let mut views = empty(&partitions);
    let mut source = Source::until_end(client, partitions, Start::Earliest).await?;
    let mut last = Instant::now();
    while let Step::Events(events) = source.next(LOOK).await? {
        if !events.is_empty() {
            last = Instant::now();
        } else if last.elapsed() > patience {
            source.left().iter().for_each(|(p, end)| stuck(&mut views, p, *end));
            return Ok(views);
        }
        for event in events {
            let corrupt = match &event {
                Event::Corrupt { source, next_offset, .. } => Some((source.clone(), *next_offset)),
                _ => None,
            };
            take(&mut views, event, values)?;
            if let Some((p, next)) = corrupt {
                source.skip(&p, next)?;
            }
        }
    }
    Ok(views)
}

fn empty(partitions: &[TopicPartition]) -> Views {
    partitions.iter().map(|p| (p.partition, View::default())).collect()
}

/// Nothing comes any more; notes it of a partition that goes on to `end`.
fn stuck(views: &mut Views, partition: &TopicPartition, end: i64) {
    let view = views.entry(partition.partition).or_default();
    view.stuck = (view.end < end).then_some(end);
}

/// Notes an event.
fn take(views: &mut Views, event: Event, values: Values) -> Result<(), CliError> {
    match event {
        Event::Batch(batch) => {
            let view = views.entry(batch.source.partition).or_default();
            let mut scratch = Vec::new();
            for record in &batch.records {
                let body = values.recognise(record, &mut scratch);
                let digest = digest(record, batch.append_time);
                view.seen.push(Seen { offset: record.offset, body, digest });
                view.end = view.end.max(record.offset.saturating_add(1));
            }
            Ok(())
        }
        Event::Gap(gap) => {
            let view = views.entry(gap.source.partition).or_default();
            view.end = view.end.max(gap.to);
            if gap.kind == GapKind::DataLoss {
                view.gaps.push((gap.from, gap.to));
            }
            Ok(())
        }
        // What cannot be read is as good as lost; the reader goes on behind it.
        Event::Corrupt { source, offset, next_offset, .. } => {
            let view = views.entry(source.partition).or_default();
            view.gaps.push((offset, next_offset));
            view.end = view.end.max(next_offset);
            Ok(())
        }
        other => trouble(other),
    }
}
