//! The clients of a run: producers that number their records, a reader beside them, and the last read of everything.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use tidemill_client::{
    At, Client, ClientConfig, ConsumedRecord, Consumer, ConsumerConfig, Event, GapKind, NotDelivered,
    OffsetQuery, Producer, ProducerConfig, ProducerError, SendRecord, Start, TopicHandle, TopicPartition,
};
use tidemill_history::{Body, Id, Outcome, Seen, Sent, View};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::trace::Trace;

/// The topic of all records.
pub const TOPIC: &str = "t";
/// Records of one producer that are under way at once.
const UNDER_WAY: usize = 32;

/// Views by partition.
pub type Views = BTreeMap<u32, View>;

/// A client of the cluster.
///
/// # Errors
/// Nobody answers in time.
pub async fn client(servers: &[String]) -> Result<Client> {
    let config =
        ClientConfig { timeout: Duration::from_secs(60), ..ClientConfig::new(servers.iter().cloned()) };
    Ok(Client::connect(config).await?)
}

/// How a producer tries.
#[must_use]
pub fn patient() -> ProducerConfig {
    ProducerConfig {
        delivery_timeout: Duration::from_secs(20),
        request_timeout: Duration::from_secs(4),
        ..ProducerConfig::default()
    }
}

fn ns() -> u64 {
    u64::try_from(crate::now().as_nanos()).unwrap_or(u64::MAX)
}

/// splitmix64.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The bytes of a record: they follow from who wrote it.
fn value(id: Id) -> Vec<u8> {
    let mut state = mix(u64::from(id.producer) << 32 | u64::from(id.sequence));
    let len = 16 + usize::try_from(state % 2_000).unwrap_or(0);
    let mut out = Vec::with_capacity(len + 8);
    out.extend_from_slice(&id.producer.to_be_bytes());
    out.extend_from_slice(&id.sequence.to_be_bytes());
    while out.len() < len {
        state = mix(state);
        out.extend_from_slice(&state.to_be_bytes());
    }
    out
}

fn recognise(record: &ConsumedRecord) -> Body {
    let bytes = record.value.as_deref().unwrap_or_default();
    let word =
        |at: usize| -> Option<u32> { Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?)) };
    let (Some(producer), Some(sequence)) = (word(0), word(4)) else { return Body::Foreign };
    let id = Id { producer, sequence };
    if value(id) == bytes { Body::Intact(id) } else { Body::Damaged(id) }
}

fn digest(record: &ConsumedRecord, append_time: i64) -> u64 {
    let value = record.value.as_deref().unwrap_or_default();
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, value);
    mix(sum ^ mix(record.timestamp.cast_unsigned() ^ mix(append_time.cast_unsigned())))
}

/// One producer's part of the history.
pub type Written = Arc<Mutex<Vec<Sent>>>;

/// Sends numbered records until `stop`, and notes what becomes of each. Returns when all are decided.
///
/// # Errors
/// The producer was not made in time.
pub async fn produce(
    client: Client,
    index: u32,
    pause: Duration,
    stop: CancellationToken,
    written: Written,
    trace: Trace,
) -> Result<()> {
    let producer = Arc::new(client.producer(patient()).await?);
    let handle = producer.topic(TOPIC).await?;
    let mut open = JoinSet::new();
    for sequence in 0u32.. {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
        while open.len() >= UNDER_WAY {
            open.join_next().await;
        }
        let id = Id { producer: index, sequence };
        let partition = sequence.wrapping_add(index) % handle.partitions();
        written.lock().push(Sent { partition, sent_ns: ns(), outcome: Outcome::Unknown });
        if !send(&producer, &handle, id, partition, &written, &mut open, &trace).await {
            break;
        }
    }
    while open.join_next().await.is_some() {}
    producer.close().await;
    Ok(())
}

async fn send(
    producer: &Producer,
    handle: &TopicHandle,
    id: Id,
    partition: u32,
    written: &Written,
    open: &mut JoinSet<()>,
    trace: &Trace,
) -> bool {
    let bytes = value(id);
    let record = SendRecord { partition: Some(partition), ..SendRecord::new(None, Some(&bytes)) };
    let slot = id.sequence as usize;
    match producer.send(handle, record).await {
        Ok(delivery) => {
            let (written, trace) = (written.clone(), trace.clone());
            open.spawn(async move {
                let outcome = match delivery.await {
                    Ok(meta) => {
                        Outcome::Acked { partition: meta.partition, offset: meta.offset, at_ns: ns() }
                    }
                    Err(e) => match e.kind {
                        NotDelivered::NotWritten => Outcome::NotWritten,
                        NotDelivered::Unknown => Outcome::Unknown,
                    },
                };
                trace.line(format_args!("client: {id} is {outcome:?}"));
                if let Some(sent) = written.lock().get_mut(slot) {
                    sent.outcome = outcome;
                }
            });
            true
        }
        Err(e) => {
            // What was not taken is not sent.
            trace.line(format_args!("client: {id} was not taken: {e}"));
            if let Some(sent) = written.lock().get_mut(slot) {
                sent.outcome = Outcome::NotWritten;
            }
            matches!(e, ProducerError::TimedOut { .. })
        }
    }
}

/// A record to each partition must be acknowledged within `limit`: the cluster is alive.
///
/// # Errors
/// It is not.
pub async fn probe(
    client: &Client,
    producer: u32,
    written: &Written,
    limit: Duration,
    trace: &Trace,
) -> Result<()> {
    let end = Instant::now() + limit;
    let p = client.producer(patient()).await?;
    let handle = p.topic(TOPIC).await?;
    for partition in 0..handle.partitions() {
        loop {
            let id = Id { producer, sequence: u32::try_from(written.lock().len()).unwrap_or(u32::MAX) };
            written.lock().push(Sent { partition, sent_ns: ns(), outcome: Outcome::Unknown });
            let mut open = JoinSet::new();
            let taken = send(&p, &handle, id, partition, written, &mut open, trace).await;
            while open.join_next().await.is_some() {}
            let last = written.lock().last().map(|s| s.outcome);
            if taken && matches!(last, Some(Outcome::Acked { .. })) {
                break;
            }
            if Instant::now() >= end {
                bail!(
                    "no record to partition {partition} was acknowledged within {limit:?} of the healing: {last:?}"
                );
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    p.close().await;
    Ok(())
}

/// The end of each partition.
///
/// # Errors
/// Not told within the client's time-out.
pub async fn ends(client: &Client, partitions: u32) -> Result<Vec<i64>> {
    let queries: Vec<OffsetQuery> = (0..partitions)
        .map(|partition| OffsetQuery { topic: TOPIC.into(), partition, at: At::Latest })
        .collect();
    let found = client.list_offsets(&queries).await?;
    found.iter().map(|r| r.offset.context("an end without an offset")).collect()
}

/// Reads everything from offset 0 on until `ends` are reached, once they are known.
///
/// # Errors
/// The consumer refuses.
pub async fn read(
    client: &Client,
    partitions: u32,
    ends: &mut tokio::sync::watch::Receiver<Option<Vec<i64>>>,
    patience: Duration,
) -> Result<Views> {
    let mut consumer = client.consumer(ConsumerConfig::default());
    consumer.assign((0..partitions).map(|p| (TOPIC, p, Start::Offset(0))))?;
    let mut views: Views = (0..partitions).map(|p| (p, View::default())).collect();
    let mut last = Instant::now();
    loop {
        let events = consumer.poll(Duration::from_millis(100)).await?;
        if events.iter().any(|e| matches!(e, Event::Batch(_) | Event::Gap(_)))
            || ends.has_changed().unwrap_or(false)
        {
            last = Instant::now();
        }
        for event in events {
            take(&mut consumer, &mut views, event)?;
        }
        let Some(ends) = ends.borrow_and_update().clone() else { continue };
        let mut all = true;
        for (partition, view) in &mut views {
            let at = consumer.position(TOPIC, *partition).unwrap_or(0);
            view.end = view.end.max(at);
            all &= at >= ends.get(*partition as usize).copied().unwrap_or(0);
        }
        if all {
            return Ok(views);
        }
        if last.elapsed() > patience {
            for (partition, view) in &mut views {
                let end = ends.get(*partition as usize).copied().unwrap_or(0);
                view.stuck = (view.end < end).then_some(end);
            }
            return Ok(views);
        }
    }
}

fn take(consumer: &mut Consumer, views: &mut Views, event: Event) -> Result<()> {
    match event {
        Event::Batch(batch) => {
            let view = views.entry(batch.source.partition).or_default();
            for record in &batch.records {
                let digest = digest(record, batch.append_time);
                view.seen.push(Seen { offset: record.offset, body: recognise(record), digest });
                view.end = view.end.max(record.offset + 1);
            }
        }
        Event::Gap(gap) => {
            let view = views.entry(gap.source.partition).or_default();
            view.end = view.end.max(gap.to);
            if gap.kind == GapKind::DataLoss {
                view.gaps.push((gap.from, gap.to));
            }
        }
        Event::Corrupt { source, offset, next_offset, .. } => {
            let view = views.entry(source.partition).or_default();
            view.gaps.push((offset, next_offset));
            view.end = view.end.max(next_offset);
            seek(consumer, &source, next_offset)?;
        }
        // Nothing is ever trimmed here: an end that goes back is a loss, and the checker is told where.
        Event::OutOfRange { source, offset, log_end, .. } => {
            let view = views.entry(source.partition).or_default();
            view.gaps.push((log_end.min(offset), offset));
            seek(consumer, &source, log_end)?;
        }
        Event::Failed { source, error } if !error.retryable => {
            let at = consumer.position(&source.topic, source.partition).unwrap_or(0);
            seek(consumer, &source, at)?;
        }
        Event::Failed { .. } => {}
    }
    Ok(())
}

fn seek(consumer: &mut Consumer, source: &TopicPartition, to: i64) -> Result<()> {
    Ok(consumer.seek(&source.topic, source.partition, Start::Offset(to))?)
}
