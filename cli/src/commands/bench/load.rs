//! Senders of one rate, and the acknowledgements of what they sent.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use tidemill_client::{
    Client, Counters, Delivery, ErrorCode, Producer, ProducerError, SendRecord, TopicHandle,
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    args::{BoundArgs, LoadArgs},
    payload::{Payload, Stamp},
    tally::Tally,
};
use crate::{commands::connect::failed, error::CliError, progress::Pace};

/// Records between two looks at the signals when nothing is waited for.
const LOOK: u64 = 256;
/// A sender that waits looks at the signals so often.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

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
    let measured = begin + args.warmup;
    let mut senders = Vec::new();
    for (index, (producer, topic)) in (0u64..).zip(producers) {
        let sender = Sender {
            producer,
            topic,
            begin,
            measured,
            pace: Pace::new(begin, rate).share(index, of),
            bound: args.bound,
            most: args.bound.share(index, of),
            keys: args.keys,
            // Senders begin with different keys.
            first_key: index.wrapping_mul(args.keys / of.max(1)),
            payload: Payload::new(args.value_bytes(), stamp),
            tally: Arc::new(Mutex::new(Tally::new(measured)?)),
            stop: stop.clone(),
            runtime: Handle::current(),
            clock: WallClock::new(),
        };
        let (tx, rx) = oneshot::channel();
        let work = move || {
            let _nobody_waits_any_more = tx.send(sender.run());
        };
        std::thread::Builder::new().name(format!("sender-{index}")).spawn(work).map_err(|e| {
            CliError::new("bench", format!("no thread for a sender: {e}"), ErrorCode::Internal)
        })?;
        senders.push(rx);
    }
    let mut acks = Tally::new(measured)?;
    let mut sum = Counters::default();
    for done in senders {
        let (tally, c) =
            done.await.map_err(|_| CliError::new("bench", "a sender ended early", ErrorCode::Internal))?;
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
    /// What is due before is not measured.
    measured: Instant,
    pace: Pace,
    bound: BoundArgs,
    most: u64,
    keys: u64,
    first_key: u64,
    payload: Payload,
    tally: Arc<Mutex<Tally>>,
    stop: CancellationToken,
    runtime: Handle,
    clock: WallClock,
}

/// Timestamps of records out of the times at which they are due: one clock is read per record.
#[derive(Clone, Copy, Debug)]
struct WallClock {
    at: Instant,
    ms: i64,
}

impl WallClock {
    fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at: Instant::now(), ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX) }
    }

    /// Milliseconds since 1970.
    fn ms(&self, at: Instant) -> i64 {
        let since = at.saturating_duration_since(self.at).as_millis();
        self.ms.saturating_add(i64::try_from(since).unwrap_or(i64::MAX))
    }
}

/// A batch and when its records were due: whatever is noted, is noted once per batch.
#[derive(Debug)]
struct Group {
    /// Of one of its records; all have the same fate.
    delivery: Delivery,
    due: Mutex<Due>,
}

#[derive(Debug, Default)]
struct Due {
    times: Vec<Instant>,
    /// The batch was acknowledged before its last record was noted.
    acked: Option<Instant>,
}

/// The groups of a partition: the open one, and the way to who waits for them.
struct Partition {
    open: Arc<Group>,
    waiting: mpsc::UnboundedSender<Arc<Group>>,
}

impl Sender {
    /// On a thread of its own: pacing needs finer sleeps than a runtime's timer gives, and full speed must not keep a
    /// worker of the runtime busy.
    fn run(mut self) -> (Tally, Counters) {
        let mut collectors = JoinSet::new();
        let mut partitions: Vec<Option<Partition>> = Vec::new();
        let mut key = Vec::new();
        let mut measured = 0;
        let mut n = 0;
        while measured < self.most {
            let Some(due) = self.due(n) else { break };
            key.clear();
            if self.keys > 0 {
                let number = self.first_key.wrapping_add(n) % self.keys;
                key.extend_from_slice(format!("key-{number}").as_bytes());
            }
            let value = self.payload.value(n, due);
            let record = SendRecord {
                timestamp: Some(self.clock.ms(due)),
                ..SendRecord::new((self.keys > 0).then_some(&key[..]), Some(value))
            };
            n += 1;
            measured += u64::from(due >= self.measured);
            let sent = match self.producer.try_send(&self.topic, &record) {
                Err(ProducerError::Full { .. } | ProducerError::UnknownPartition { .. }) => {
                    let stopped = self.stop.cancelled();
                    let sent = self.producer.send(&self.topic, record);
                    let sent = self.runtime.block_on(async {
                        tokio::select! {
                            sent = sent => Some(sent),
                            () = stopped => None,
                        }
                    });
                    match sent {
                        Some(sent) => sent,
                        None => break,
                    }
                }
                done => done,
            };
            let delivery = match sent {
                Ok(delivery) => delivery,
                Err(e) => {
                    self.tally.lock().first_failure.get_or_insert_with(|| e.to_string());
                    break;
                }
            };
            let at = delivery.partition() as usize;
            if partitions.len() <= at {
                partitions.resize_with(at + 1, || None);
            }
            match &mut partitions[at] {
                Some(p) if p.open.delivery.same_batch(&delivery) => {
                    p.open.note(due, &self.tally, self.measured);
                }
                Some(p) => {
                    p.open = Group::new(delivery, due);
                    let _the_collector_ends_last = p.waiting.send(p.open.clone());
                }
                none => {
                    let (waiting, groups) = mpsc::unbounded_channel();
                    let collect = collect(groups, self.tally.clone(), self.measured);
                    collectors.spawn_on(collect, &self.runtime);
                    let open = Group::new(delivery, due);
                    let _the_collector_ends_last = waiting.send(open.clone());
                    *none = Some(Partition { open, waiting });
                }
            }
        }
        drop(partitions);
        self.runtime.block_on(async {
            self.producer.close().await;
            while collectors.join_next().await.is_some() {}
        });
        let tally = self.tally.lock().clone();
        (tally, self.producer.counters())
    }

    /// When record `n` is due, not before it is; `None` when the run is over.
    fn due(&self, n: u64) -> Option<Instant> {
        let due = match self.pace.due(n).and_then(|d| self.begin.checked_add(d)) {
            Some(due) => {
                // Short sleeps, so that a signal is seen.
                while let Some(left) = due.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
                    if self.stop.is_cancelled() {
                        return None;
                    }
                    std::thread::sleep(left.min(LONGEST_SLEEP));
                }
                due
            }
            None => Instant::now(),
        };
        if n.is_multiple_of(LOOK) {
            // A sender that is late ends in time as well; what was due and not sent is not counted. Clocks are slow
            // beside a small record, so they are not read for each.
            if self.stop.is_cancelled() || self.bound.over(self.measured.elapsed()) {
                return None;
            }
        }
        (!self.bound.over(due.saturating_duration_since(self.measured))).then_some(due)
    }
}

impl Group {
    fn new(delivery: Delivery, due: Instant) -> Arc<Self> {
        Arc::new(Self { delivery, due: Mutex::new(Due { times: vec![due], acked: None }) })
    }

    /// One more record of the batch.
    fn note(&self, at: Instant, tally: &Mutex<Tally>, measured: Instant) {
        let mut due = self.due.lock();
        match due.acked {
            None => due.times.push(at),
            Some(acked) if at >= measured => tally.lock().record(at, acked),
            Some(_) => {}
        }
    }
}

/// Notes when each batch of a partition is acknowledged; within a partition that is in order.
async fn collect(
    mut groups: mpsc::UnboundedReceiver<Arc<Group>>,
    tally: Arc<Mutex<Tally>>,
    measured: Instant,
) {
    while let Some(group) = groups.recv().await {
        let done = group.delivery.another().await;
        let now = Instant::now();
        match done {
            Ok(_) => {
                let mut due = group.due.lock();
                due.acked = Some(now);
                let times = std::mem::take(&mut due.times);
                drop(due);
                let mut tally = tally.lock();
                times.into_iter().filter(|at| *at >= measured).for_each(|at| tally.record(at, now));
            }
            Err(e) => {
                tally.lock().first_failure.get_or_insert_with(|| e.to_string());
            }
        }
    }
}
