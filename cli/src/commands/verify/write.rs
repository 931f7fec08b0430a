//! The producers of a run: each writes numbered records over all partitions and notes what became of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tidemill_client::{
    Client, Delivery, ErrorCode, NotDelivered, Producer, ProducerConfig, ProducerError, SendRecord,
    TopicHandle,
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::value::{Values, key};
use crate::{commands::connect::failed, error::CliError, progress::Pace};
use tidemill_history::{Id, Outcome, Sent};

/// Records of a producer whose outcome is waited for.
const WAITING: usize = 65_536;

/// What is to be written.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) values: Values,
    /// Times of the history count from here.
    pub(super) clock: Instant,
    pub(super) duration: Duration,
    /// Of all producers.
    pub(super) max_records: u64,
    pub(super) partitions: u32,
    pub(super) producers: u32,
    /// Records per second of all producers, 0 = as fast as possible.
    pub(super) rate: u64,
    pub(super) config: ProducerConfig,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// By producer, by sequence.
    pub(super) sent: Vec<Vec<Sent>>,
    /// Why the first record that failed did.
    pub(super) first_failure: Option<String>,
}

/// Writes; returns when the fate of every record is decided.
pub(super) async fn write(
    client: &Client,
    topic: &str,
    plan: Plan,
    stop: &CancellationToken,
    acked: &Arc<AtomicU64>,
) -> Result<Written, CliError> {
    let mut tasks = JoinSet::new();
    // The clock of the load starts when all producers are there.
    let mut ready = Vec::new();
    for _ in 0..plan.producers {
        let producer = client.producer(plan.config.clone()).await.map_err(|e| failed(&e))?;
        let handle = producer.topic(topic).await.map_err(|e| failed(&e))?;
        ready.push((producer, handle));
    }
    let begin = Instant::now();
    for (index, (producer, handle)) in (0u32..).zip(ready) {
        let writer = Writer { index, plan: plan.clone(), begin, producer, handle, stop: stop.clone() };
        tasks.spawn(writer.run(acked.clone()));
    }
    let mut written = Written { sent: vec![Vec::new(); plan.producers as usize], first_failure: None };
    while let Some(done) = tasks.join_next().await {
        let (index, sent, failure) =
            done.map_err(|e| CliError::new("verify", format!("a producer ended: {e}"), ErrorCode::Internal))?;
        written.sent[index as usize] = sent;
        written.first_failure = written.first_failure.or(failure);
    }
    Ok(written)
}

struct Writer {
    index: u32,
    plan: Plan,
    begin: Instant,
    producer: Producer,
    handle: TopicHandle,
    stop: CancellationToken,
}

impl Writer {
    async fn run(self, acked: Arc<AtomicU64>) -> (u32, Vec<Sent>, Option<String>) {
        let (tx, rx) = mpsc::channel(WAITING);
        let outcomes = tokio::spawn(collect(rx, self.plan.clock, acked));
        let mut sent = self.send_all(tx).await;
        self.producer.close().await;
        let failure = match outcomes.await {
            Ok((outcomes, failure)) => {
                for (sent, outcome) in sent.iter_mut().zip(outcomes) {
                    sent.outcome = outcome;
                }
                failure
            }
            // All outcomes stay unknown, which claims nothing.
            Err(e) => Some(format!("outcomes of producer {}: {e}", self.index)),
        };
        (self.index, sent, failure)
    }

    async fn send_all(&self, tx: mpsc::Sender<Result<Delivery, ProducerError>>) -> Vec<Sent> {
        let plan = &self.plan;
        let producers = u64::from(plan.producers);
        let pace = Pace::new(self.begin, plan.rate).share(u64::from(self.index), producers);
        let mut sent = Vec::new();
        let mut value = Vec::new();
        let most = u32::try_from(plan.max_records / producers).unwrap_or(u32::MAX);
        for sequence in 0..most {
            let due = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                due = pace.wait(u64::from(sequence)) => due,
            };
            if due.duration_since(self.begin) >= plan.duration || self.begin.elapsed() >= plan.duration {
                break;
            }
            let id = Id { producer: self.index, sequence };
            plan.values.make(id, &mut value);
            // Another partition each time, and another first one for each producer.
            let partition = sequence.wrapping_add(self.index) % plan.partitions;
            let sent_ns = ns(plan.clock);
            let key = key(id);
            let record =
                SendRecord { partition: Some(partition), ..SendRecord::new(Some(&key), Some(&value)) };
            let taken = self.producer.send(&self.handle, record).await;
            sent.push(Sent { partition, sent_ns, outcome: Outcome::Unknown });
            let over = taken.as_ref().is_err_and(|e| !matches!(e, ProducerError::TimedOut { .. }));
            if tx.send(taken).await.is_err() || over {
                break;
            }
        }
        sent
    }
}

/// Notes the outcomes in order of sequence.
async fn collect(
    mut rx: mpsc::Receiver<Result<Delivery, ProducerError>>,
    clock: Instant,
    acked: Arc<AtomicU64>,
) -> (Vec<Outcome>, Option<String>) {
    let mut outcomes = Vec::new();
    let mut failure = None;
    while let Some(taken) = rx.recv().await {
        let outcome = match taken {
            // What was not taken is not sent.
            Err(e) => {
                failure.get_or_insert_with(|| e.to_string());
                Outcome::NotWritten
            }
            Ok(delivery) => match delivery.await {
                Ok(meta) => {
                    acked.fetch_add(1, Ordering::Relaxed);
                    Outcome::Acked { partition: meta.partition, offset: meta.offset, at_ns: ns(clock) }
                }
                Err(e) => {
                    failure.get_or_insert_with(|| e.to_string());
                    match e.kind {
                        NotDelivered::NotWritten => Outcome::NotWritten,
                        NotDelivered::Unknown => Outcome::Unknown,
                    }
                }
            },
        };
        outcomes.push(outcome);
    }
    (outcomes, failure)
}

fn ns(clock: Instant) -> u64 {
    u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
