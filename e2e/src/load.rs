//! A steady load with numbered records, and the check of everything that was acknowledged.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::{
    Client, ClientConfig, ConsumerConfig, Event, NotDelivered, ProducerConfig, SendRecord, Start,
};
use tidemill_types::ErrorCode;
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
};

/// What became of the records of one partition.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Number of the record to its acknowledged offset (`None`: acknowledged as a duplicate whose offset is forgotten).
    pub acked: BTreeMap<u64, Option<i64>>,
    /// Numbers of unknown outcome.
    pub unknown: Vec<u64>,
    /// Numbers that are known not to be written.
    pub not_written: Vec<u64>,
    /// Longest time between two acknowledgements, while the load ran.
    pub longest_gap: Duration,
}

/// A running load: one idempotent producer, one record after the other on each partition, pipelined.
#[derive(Debug)]
pub struct Load {
    stop: watch::Sender<bool>,
    acked: Arc<AtomicU64>,
    failures: Arc<Mutex<BTreeMap<String, u64>>>,
    tasks: Vec<JoinHandle<Result<Sent>>>,
}

/// Records of one partition under way at once.
const IN_FLIGHT: usize = 64;

/// A client of a cluster, patient enough for a failover on a loaded machine.
///
/// # Errors
/// Nobody answers.
pub async fn client(server: &str) -> Result<Client> {
    let config = ClientConfig { timeout: Duration::from_secs(60), ..ClientConfig::new([server]) };
    Ok(Client::connect(config).await?)
}

impl Load {
    /// Starts writing `topic`, which exists, with `bytes` per value.
    ///
    /// # Errors
    /// The topic cannot be described.
    pub async fn start(client: &Client, topic: &str, bytes: usize) -> Result<Self> {
        Self::with(client, topic, bytes, ProducerConfig::default()).await
    }

    /// The same with another configuration of the producer.
    ///
    /// # Errors
    /// The topic cannot be described.
    pub async fn with(client: &Client, topic: &str, bytes: usize, config: ProducerConfig) -> Result<Self> {
        let producer = Arc::new(client.producer(config).await?);
        let handle = producer.topic(topic).await?;
        let (stop, stopped) = watch::channel(false);
        let acked = Arc::new(AtomicU64::new(0));
        let failures = Arc::new(Mutex::new(BTreeMap::new()));
        let tasks = (0..handle.partitions())
            .map(|p| {
                let (producer, handle, stopped, acked) =
                    (producer.clone(), handle.clone(), stopped.clone(), acked.clone());
                let failures = failures.clone();
                tokio::spawn(async move {
                    let mut sent = Sent::default();
                    let mut next = 0u64;
                    let mut last = Instant::now();
                    let mut flying = std::collections::VecDeque::new();
                    loop {
                        while flying.len() < IN_FLIGHT && !*stopped.borrow() {
                            let value = format!("{next:bytes$}");
                            let mut record = SendRecord::new(None, Some(value.as_bytes()));
                            record.partition = Some(p);
                            flying.push_back((next, producer.send(&handle, record).await?));
                            next += 1;
                        }
                        let Some((number, delivery)) = flying.pop_front() else { break };
                        match delivery.await {
                            Ok(meta) => {
                                acked.fetch_add(1, Ordering::Relaxed);
                                if !*stopped.borrow() {
                                    sent.longest_gap = sent.longest_gap.max(last.elapsed());
                                }
                                last = Instant::now();
                                sent.acked.insert(number, meta.offset);
                            }
                            Err(e) => {
                                let code = e.code.map_or("none", ErrorCode::wire);
                                *failures.lock().await.entry(code.to_owned()).or_insert(0) += 1;
                                match e.kind {
                                    NotDelivered::Unknown => sent.unknown.push(number),
                                    NotDelivered::NotWritten => sent.not_written.push(number),
                                }
                            }
                        }
                    }
                    Ok(sent)
                })
            })
            .collect();
        Ok(Self { stop, acked, failures, tasks })
    }

    /// Acknowledged so far.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Records that were given up so far, by the code of the last answer.
    pub async fn failures(&self) -> BTreeMap<String, u64> {
        self.failures.lock().await.clone()
    }

    /// Waits until `more` further records were acknowledged.
    ///
    /// # Errors
    /// Not within `limit`.
    pub async fn progress(&self, more: u64, limit: Duration) -> Result<()> {
        let want = self.acked() + more;
        let end = Instant::now() + limit;
        while self.acked() < want {
            if Instant::now() >= end {
                bail!(
                    "only {} of {more} more records were acknowledged in {limit:?}",
                    more - (want - self.acked())
                );
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Stops, waits for what is under way, and answers per partition.
    ///
    /// # Errors
    /// A producer that gave up.
    pub async fn finish(self) -> Result<Vec<Sent>> {
        self.stop.send_replace(true);
        let mut out = Vec::new();
        for t in self.tasks {
            out.push(t.await??);
        }
        Ok(out)
    }
}

/// Reads every partition from its start to its end.
///
/// # Errors
/// Gaps, damage, or no end within `limit`.
pub async fn read_all(client: &Client, topic: &str, limit: Duration) -> Result<Vec<Vec<(i64, Vec<u8>)>>> {
    let partitions = client.partitions(topic).await?;
    let mut consumer = client.consumer(ConsumerConfig::default());
    consumer.assign((0..partitions).map(|p| (topic, p, Start::Earliest)))?;
    let mut ends = BTreeMap::new();
    for e in consumer.end_offsets().await? {
        ends.insert(e.partition, e.offset.context("end offset")?);
    }
    let mut out = vec![Vec::new(); partitions as usize];
    let end = Instant::now() + limit;
    loop {
        let done = (0..partitions).all(|p| {
            let read = out[p as usize].last().map_or(0, |(o, _): &(i64, Vec<u8>)| o + 1);
            ends.get(&p).is_some_and(|e| read >= *e)
        });
        if done {
            return Ok(out);
        }
        ensure!(Instant::now() < end, "{topic} was not read to its end in {limit:?}: {ends:?}");
        for event in consumer.poll(Duration::from_secs(1)).await? {
            match event {
                Event::Batch(b) => out[b.source.partition as usize].extend(
                    b.records
                        .into_iter()
                        .map(|r| (r.offset, r.value.map(|v| v.to_vec()).unwrap_or_default())),
                ),
                other => bail!("unexpected event: {other:?}"),
            }
        }
    }
}

/// Everything acknowledged is there at its offset, once, in order; nothing else but records of unknown outcome, at most once.
///
/// # Errors
/// What is wrong, with partition and offset.
pub fn check(sent: &[Sent], read: &[Vec<(i64, Vec<u8>)>]) -> Result<()> {
    ensure!(sent.len() == read.len(), "{} partitions written, {} read", sent.len(), read.len());
    for (p, (sent, read)) in sent.iter().zip(read).enumerate() {
        let mut seen = BTreeMap::new();
        let mut last: Option<u64> = None;
        for (i, (offset, value)) in read.iter().enumerate() {
            ensure!(*offset == i64::try_from(i)?, "partition {p}: offset {offset} at place {i}");
            let number: u64 = std::str::from_utf8(value)?.trim().parse()?;
            ensure!(
                seen.insert(number, *offset).is_none(),
                "partition {p}: record {number} is there twice, at {offset}"
            );
            ensure!(
                last.is_none_or(|l| l < number),
                "partition {p}: record {number} at {offset} stands behind {last:?}"
            );
            ensure!(
                !sent.not_written.contains(&number),
                "partition {p}: record {number} at {offset} was reported as not written"
            );
            last = Some(number);
        }
        for (number, offset) in &sent.acked {
            let found = seen.get(number).copied();
            ensure!(
                found.is_some() && (offset.is_none() || found == *offset),
                "partition {p}: record {number} was acknowledged at {offset:?}, found at {found:?}"
            );
        }
        let others = seen.keys().filter(|n| !sent.acked.contains_key(n) && !sent.unknown.contains(n)).count();
        ensure!(others == 0, "partition {p}: {others} records that nobody wrote");
    }
    Ok(())
}
