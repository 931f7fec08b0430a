//! A topic that keeps so many bytes: its records and the bookies' disks stay within a bound, after a restart too.

use std::{
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::{Client, ConsumerConfig, Event, GapKind, ProducerConfig, SendRecord, Start};
use tidemill_e2e::{Cluster, Options, client};

use crate::LIMIT;

const TOPIC: &str = "kept";
/// What the topic keeps, and how large its ledgers get without a word on it: a quarter.
const KEPT: u64 = 8 << 20;
const LEDGER: u64 = KEPT / 4;
const RECORD: usize = 8 << 10;
const SEGMENT: u64 = 32 << 20;
/// Writes of three times what is kept.
const ROUNDS: u64 = 6;

/// Bytes that a folder takes on its disk.
fn on_disk(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for item in std::fs::read_dir(dir)? {
        let item = item?;
        // A file that was deleted meanwhile takes none.
        let Ok(meta) = item.metadata() else { continue };
        bytes += if meta.is_dir() { on_disk(&item.path())? } else { meta.blocks() * 512 };
    }
    Ok(bytes)
}

async fn write(client: &Client, bytes: u64) -> Result<()> {
    let producer =
        client.producer(ProducerConfig { batch_bytes: 32 << 10, ..ProducerConfig::default() }).await?;
    let topic = producer.topic(TOPIC).await?;
    let value = vec![b'v'; RECORD];
    let mut sent = Vec::new();
    for _ in 0..bytes / RECORD as u64 {
        sent.push(producer.send(&topic, SendRecord::new(None, Some(&value))).await?);
    }
    for delivery in sent {
        delivery.await.context("a record was not written")?;
    }
    producer.close().await;
    Ok(())
}

/// Log start, high watermark, and bytes of the closed ledgers.
async fn log(client: &Client) -> Result<(i64, i64, u64)> {
    let d = client.admin().describe_partition(TOPIC, 0).await?;
    Ok((d.log_start, d.high_watermark, d.chain.iter().filter_map(|l| l.length).sum()))
}

async fn until(what: &str, mut ask: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + LIMIT;
    while !ask().await? {
        if Instant::now() >= end {
            bail!("{what}: not within {LIMIT:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_keeps_its_bytes_and_the_disks_shrink() -> Result<()> {
    let set = [format!("bookie.segment-bytes={SEGMENT}"), "bookie.gc-pass-ms=300".to_owned()].into();
    let cluster =
        tokio::task::spawn_blocking(|| Cluster::start(Options { set, ..Options::default() })).await??;
    let client = client(&cluster.server()).await?;
    let config = [("retention.bytes".to_owned(), KEPT.to_string())];
    client.admin().create_topic(TOPIC, 1, config, false).await?;
    let disk = cluster.data().join("bookie-0");
    let mut start = 0;
    // Again and again more than is kept. What is kept is never less, and soon not more than a ledger above it; the ledger that
    // is open is not counted among the closed ones.
    for _ in 0..ROUNDS {
        write(&client, 3 * KEPT).await?;
        until("retention", async || Ok(log(&client).await?.2 <= KEPT + LEDGER)).await?;
        let (now, end, _) = log(&client).await?;
        ensure!(now > start, "the log start stands at {now}");
        let kept = u64::try_from(end - now)? * RECORD as u64;
        ensure!(kept + LEDGER >= KEPT, "{kept} bytes of records are less than the topic keeps");
        start = now;
    }
    // What is live, the active segment and one that is not dead enough, and a reserve of one segment.
    let bound = KEPT + 2 * LEDGER + 3 * SEGMENT;
    ensure!(bound < 3 * ROUNDS * KEPT, "all of it would fit");
    until("smaller disks", async || Ok(on_disk(&disk)? <= bound))
        .await
        .with_context(|| format!("{:?} bytes, at most {bound}", on_disk(&disk)))?;
    #[expect(clippy::print_stdout, reason = "shown with --nocapture, and when the test fails")]
    {
        println!("{} of {} written bytes are on the disk of bookie-0", on_disk(&disk)?, 3 * ROUNDS * KEPT);
    }

    // A consumer that stood below is told so, and goes on at the start.
    let mut consumer = client.consumer(ConsumerConfig::default());
    consumer.assign([(TOPIC, 0, Start::Offset(0))])?;
    let mut events = Vec::new();
    while events.len() < 2 {
        events.extend(consumer.poll(Duration::from_secs(1)).await?);
    }
    let [Event::Gap(gap), Event::Batch(batch), ..] = &events[..] else { bail!("{events:?}") };
    ensure!((gap.kind, gap.from) == (GapKind::Trimmed, 0) && gap.to >= start, "{gap:?}");
    ensure!(batch.records[0].offset == gap.to, "{gap:?}, then {}", batch.records[0].offset);
    drop(consumer);

    // The same after everything was killed.
    let mut cluster = cluster;
    cluster.kill_all()?;
    let mut cluster = tokio::task::spawn_blocking(move || cluster.up().map(|()| cluster)).await??;
    let (now, end, _) = log(&client).await?;
    ensure!(now >= start, "the log start went back from {start} to {now}");
    write(&client, 2 * KEPT).await?;
    until("retention after a restart", async || {
        let (s, _, closed) = log(&client).await?;
        Ok(s > now && closed <= KEPT + LEDGER)
    })
    .await?;
    until("smaller disks after a restart", async || Ok(on_disk(&disk)? <= bound + SEGMENT)).await?;

    // Deleted by hand, to the end.
    let (_, hw, _) = log(&client).await?;
    ensure!(hw > end);
    let done = client.admin().delete_records(TOPIC, 0, None).await?;
    ensure!((done.log_start, done.high_watermark) == (hw, hw), "{done:?}");
    let refused = client.admin().delete_records(TOPIC, 0, Some(hw + 1)).await;
    ensure!(refused.is_err_and(|e| e.to_string().contains("OFFSET_OUT_OF_RANGE")));
    cluster.stop()
}

/// Time: records go when they are older than the topic keeps them by a clock that has surely passed, whole ledgers, and those
/// that are young stay. A restart forgets nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_keeps_its_time_by_the_quorums_clock() -> Result<()> {
    const KEPT_MS: u64 = 5_000;
    // Two ticks of quorum time (10 s each) confirm a time.
    let set = ["broker.time-settle-ms=1000".to_owned()].into();
    let cluster =
        tokio::task::spawn_blocking(|| Cluster::start(Options { set, ..Options::default() })).await??;
    let client = client(&cluster.server()).await?;
    let config =
        [("retention.ms".to_owned(), KEPT_MS.to_string()), ("roll.ms".to_owned(), "1000".to_owned())];
    client.admin().create_topic(TOPIC, 1, config, false).await?;
    write(&client, 64 * RECORD as u64).await?;
    let written = Instant::now();
    let (_, first_end, _) = log(&client).await?;
    // A record now and then: the ledgers roll by their age. The old ones go, each after its time and not before.
    until("retention by time", async || {
        write(&client, RECORD as u64).await?;
        Ok(log(&client).await?.0 >= first_end)
    })
    .await?;
    ensure!(
        written.elapsed() >= Duration::from_millis(KEPT_MS),
        "records went after {:?}",
        written.elapsed()
    );
    let (start, end, _) = log(&client).await?;
    ensure!(start < end, "what was written just now is gone");
    let mut consumer = client.consumer(ConsumerConfig::default());
    consumer.assign([(TOPIC, 0, Start::Offset(0))])?;
    let mut events = Vec::new();
    while events.len() < 2 {
        events.extend(consumer.poll(Duration::from_secs(1)).await?);
    }
    let [Event::Gap(gap), Event::Batch(_), ..] = &events[..] else { bail!("{events:?}") };
    ensure!((gap.kind, gap.from) == (GapKind::Trimmed, 0) && gap.to >= start, "{gap:?}");
    drop(consumer);
    let mut cluster = cluster;
    cluster.kill_all()?;
    let mut cluster = tokio::task::spawn_blocking(move || cluster.up().map(|()| cluster)).await??;
    // Idle now: everything goes in its time, also without a produce call.
    until("all is expired", async || {
        let (s, e, _) = log(&client).await?;
        ensure!(s >= start, "the log start went back from {start} to {s}");
        Ok(s == e)
    })
    .await?;
    cluster.stop()
}
