//! Senders of one rate, and the acknowledgements of what they sent.

use std::{sync::Arc, time::Instant};

use parking_lot::Mutex;
use tidemill_client::{
    Client, Counters, Delivery, ErrorCode, Producer, ProducerError, SendRecord, TopicHandle,
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    args::{BoundArgs, LoadArgs},
    payload::{Payload, Stamp},
    tally::Tally,
};
use crate::{commands::connect::failed, error::CliError, progress::Pace};

/// Records of a partition whose acknowledgement is waited for.
const WAITING: usize = 16_384;
/// Acknowledgements that are noted in one go.
const TURN: usize = 1_024;
/// Records between two looks at the signals when nothing is waited for.
const LOOK: u64 = 256;

/// What a load came to.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Latencies to the acknowledgement.
    pub(super) acks: Tally,
    pub(super) counters: Counters,
}

/// The producers of a load, one per sender, ready.
pub(super) async fn producers(
    client: &Client,
    args: &LoadArgs,
) -> Result<Vec<(Producer, TopicHandle)>, CliError> {
    let mut all = Vec::new();
    for _ in 0..args.producers {
        let producer = client.producer(args.config()).await.map_err(|e| failed(&e))?;
        let topic = producer.topic(&args.topic).await.map_err(|e| failed(&e))?;
        all.push((producer, topic));
    }
    Ok(all)
}

/// Sends from `begin` on; returns when the fate of every record is decided.
pub(super) async fn run(
    args: &LoadArgs,
    rate: u64,
    producers: Vec<(Producer, TopicHandle)>,
    begin: Instant,
    stamp: Option<Stamp>,
    stop: &CancellationToken,
) -> Result<Loaded, CliError> {
    let of = producers.len() as u64;
    let mut tasks = JoinSet::new();
    for (index, (producer, topic)) in (0u64..).zip(producers) {
        let sender = Sender {
            producer,
            topic,
            begin,
            pace: Pace::new(begin, rate).share(index, of),
            bound: args.bound,
            most: args.bound.share(index, of),
            keys: args.keys,
            // Senders begin with different keys.
            first_key: index.wrapping_mul(args.keys / of.max(1)),
            payload: Payload::new(args.value_bytes(), stamp),
            tally: Arc::new(Mutex::new(Tally::new()?)),
            stop: stop.clone(),
        };
        tasks.spawn(sender.run());
    }
    let mut acks = Tally::new()?;
    let mut sum = Counters::default();
    while let Some(done) = tasks.join_next().await {
        let (tally, c) =
            done.map_err(|e| CliError::new("bench", format!("a sender ended: {e}"), ErrorCode::Internal))?;
        acks.add(tally)?;
        sum.sent += c.sent;
        sum.acked += c.acked;
        sum.not_written += c.not_written;
        sum.unknown += c.unknown;
        sum.batch_retries += c.batch_retries;
    }
    Ok(Loaded { acks, counters: sum })
}

struct Sender {
    producer: Producer,
    topic: TopicHandle,
    begin: Instant,
    pace: Pace,
    bound: BoundArgs,
    most: u64,
    keys: u64,
    first_key: u64,
    payload: Payload,
    tally: Arc<Mutex<Tally>>,
    stop: CancellationToken,
}

type Waiting = mpsc::Sender<(Delivery, Instant)>;

impl Sender {
    async fn run(mut self) -> (Tally, Counters) {
        let mut collectors = JoinSet::new();
        let mut waiting: Vec<Option<Waiting>> = Vec::new();
        let mut key = Vec::new();
        for n in 0..self.most {
            let Some(due) = self.due(n).await else { break };
            key.clear();
            if self.keys > 0 {
                let number = self.first_key.wrapping_add(n) % self.keys;
                key.extend_from_slice(format!("key-{number}").as_bytes());
            }
            let value = self.payload.value(n, due);
            let record = SendRecord::new((self.keys > 0).then_some(&key[..]), Some(value));
            let sent = match self.producer.try_send(&self.topic, &record) {
                Err(ProducerError::Full { .. }) => tokio::select! {
                    sent = self.producer.send(&self.topic, record) => sent,
                    () = self.stop.cancelled() => break,
                },
                done => done,
            };
            let delivery = match sent {
                Ok(delivery) => delivery,
                Err(e) => {
                    self.tally.lock().first_failure.get_or_insert_with(|| e.to_string());
                    break;
                }
            };
            // Within a partition acknowledgements come in order: none waits behind a later one.
            let partition = delivery.partition() as usize;
            if waiting.len() <= partition {
                waiting.resize(partition + 1, None);
            }
            let collector = waiting[partition].get_or_insert_with(|| {
                let (tx, rx) = mpsc::channel(WAITING);
                collectors.spawn(collect(rx, self.tally.clone()));
                tx
            });
            if collector.send((delivery, due)).await.is_err() {
                break;
            }
        }
        drop(waiting);
        self.producer.close().await;
        while collectors.join_next().await.is_some() {}
        let tally = self.tally.lock().clone();
        (tally, self.producer.counters())
    }

    /// When record `n` is due; `None` when the run is over.
    async fn due(&self, n: u64) -> Option<Instant> {
        let due = if self.pace.due(n).is_some() {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                due = self.pace.wait(n) => due,
            }
        } else {
            if n.is_multiple_of(LOOK) {
                // Without a rate nothing else may give way to other tasks.
                tokio::task::yield_now().await;
                if self.stop.is_cancelled() {
                    return None;
                }
            }
            Instant::now()
        };
        // A sender that is late ends in time as well; what was due and not sent is not counted.
        let late = self.bound.over(self.begin.elapsed());
        (!late && !self.bound.over(due.saturating_duration_since(self.begin))).then_some(due)
    }
}

/// Notes when each record of a partition is acknowledged.
async fn collect(mut rx: mpsc::Receiver<(Delivery, Instant)>, tally: Arc<Mutex<Tally>>) {
    let mut some = Vec::new();
    while rx.recv_many(&mut some, TURN).await > 0 {
        for (delivery, due) in some.drain(..) {
            let done = delivery.await;
            let now = Instant::now();
            let mut tally = tally.lock();
            match done {
                Ok(_) => tally.record(due, now),
                Err(e) => {
                    tally.first_failure.get_or_insert_with(|| e.to_string());
                }
            }
        }
    }
}
