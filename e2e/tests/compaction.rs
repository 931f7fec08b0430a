//! Key compaction with the real binary: a changelog comes to the same map that a hash map in memory gives, although brokers
//! are killed in the middle of their compactions, and a group reads it meanwhile.
//!
//! `TIDEMILL_COMPACTION_UPDATES` sets the number of updates (200 000; by hand 10 000 000 with a release build, over a hundredth
//! as many keys).

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::{
    Client, CommitMode, ConsumerConfig, ErrorCode, Event, GapKind, GroupConsumerConfig, GroupEvent,
    ProducerConfig, SendRecord, Start,
};
use tidemill_e2e::{Cluster, Finished, Options, client, tidemill};

const TOPIC: &str = "changelog";
const PARTITIONS: u32 = 2;
const LIMIT: Duration = Duration::from_secs(120);
const KEYS_PER: u64 = 100;

type Map = HashMap<Vec<u8>, Vec<u8>>;
type Latest = (i64, Option<Vec<u8>>);

fn updates() -> u64 {
    std::env::var("TIDEMILL_COMPACTION_UPDATES").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000)
}

fn at(cluster: &Cluster, args: &[&str], input: &[u8]) -> Result<Finished> {
    let server = format!("--server={}", cluster.server());
    let mut all = args.to_vec();
    all.push(&server);
    tidemill(&all, input, LIMIT)
}

fn apply(map: &mut Map, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(v) => drop(map.insert(key, v)),
        None => drop(map.remove(&key)),
    }
}

/// The map of the topic as a new reader sees it, and how many records it read for that.
async fn replay(client: &Client) -> Result<(Map, u64, u64)> {
    let mut consumer = client.consumer(ConsumerConfig::default());
    consumer.assign((0..PARTITIONS).map(|p| (TOPIC, p, Start::Earliest)))?;
    let mut ends = HashMap::new();
    for e in consumer.end_offsets().await? {
        ends.insert(e.partition, e.offset.context("end offset")?);
    }
    let (mut map, mut records, mut gaps) = (Map::new(), 0, 0);
    let mut at: HashMap<u32, i64> = HashMap::new();
    let end = Instant::now() + LIMIT.max(Duration::from_secs(updates() / 10_000));
    while ends.iter().any(|(p, e)| at.get(p).copied().unwrap_or(0) < *e) {
        ensure!(Instant::now() < end, "the end was not reached: {at:?} of {ends:?}");
        for event in consumer.poll(Duration::from_secs(1)).await? {
            match event {
                Event::Batch(b) => {
                    for r in b.records {
                        let place = at.entry(b.source.partition).or_insert(-1);
                        ensure!(r.offset >= *place, "offset {} behind {place}", r.offset);
                        *place = r.offset + 1;
                        records += 1;
                        let key = r.key.context("a key")?.to_vec();
                        apply(&mut map, key, r.value.map(|v| v.to_vec()));
                    }
                }
                Event::Gap(g) => {
                    ensure!(g.kind == GapKind::Compacted, "{g:?}");
                    at.insert(g.source.partition, g.to);
                    gaps += 1;
                }
                other => bail!("unexpected event: {other:?}"),
            }
        }
    }
    Ok((map, records, gaps))
}

/// A partition that is being compacted now, with its owner's name.
async fn compacting(client: &Client) -> Result<Option<String>> {
    for p in 0..PARTITIONS {
        let Ok(d) = client.admin().describe_partition(TOPIC, p).await else { continue };
        if d.compaction.is_some_and(|c| c.progress_percent.is_some()) {
            return Ok(d.partition.map(|p| p.owner_name).filter(|n| !n.is_empty()));
        }
    }
    Ok(None)
}

async fn passes(client: &Client) -> Result<u64> {
    let mut n = 0;
    for p in 0..PARTITIONS {
        n += client.admin().describe_partition(TOPIC, p).await?.compaction.map_or(0, |c| c.passes);
    }
    Ok(n)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changelog_is_the_map_that_was_written() -> Result<()> {
    // Slow enough that a kill finds a pass under way.
    let pace = format!("broker.compaction-bytes-per-second={}", (updates() * 5).max(1 << 20));
    let set = vec![pace, "broker.compaction-keys-bytes=262144".to_owned()];
    let mut cluster = Cluster::start(Options { brokers: 2, set, ..Options::default() })?;
    let roll = format!("--config=roll.bytes={}", (updates() * 5).max(1 << 20));
    let create = [
        "topic",
        "create",
        TOPIC,
        &format!("--partitions={PARTITIONS}"),
        "--config=cleanup.policy=compact",
        "--config=min.cleanable.dirty.ratio=0.2",
        &roll,
    ];
    at(&cluster, &create, b"")?.ok()?;
    let client = client(&cluster.server()).await?;
    let written = Arc::new(AtomicBool::new(false));
    let reading = tokio::spawn(group(client.clone(), written.clone()));
    let producer =
        client.producer(ProducerConfig { batch_bytes: 16 << 10, ..ProducerConfig::default() }).await?;
    let handle = producer.topic(TOPIC).await?;
    let keys = updates() / KEYS_PER;
    let mut map = Map::new();
    let (mut kills, mut killed_in_pass) = (0, 0);
    let mut number = 0u64;
    for round in 0..20u64 {
        let mut flying = Vec::new();
        for _ in 0..updates() / 20 {
            // A walk that comes by every key, often or seldom.
            let key = format!("key-{:08}", (number.wrapping_mul(2_654_435_761) >> 7) % keys);
            let value = (!number.is_multiple_of(50)).then(|| format!("value {number:030}"));
            let (k, v) = (key.as_bytes(), value.as_deref().map(str::as_bytes));
            flying.push(producer.send(&handle, SendRecord::new(Some(k), v)).await?);
            apply(&mut map, key.into_bytes(), value.map(String::into_bytes));
            number += 1;
        }
        for delivery in flying {
            delivery.await.map_err(|e| anyhow::anyhow!("{e:?}"))?;
        }
        if round % 4 == 3 {
            let end = Instant::now() + Duration::from_secs(20);
            let mut owner = compacting(&client).await?;
            while owner.is_none() && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(20)).await;
                owner = compacting(&client).await?;
            }
            killed_in_pass += u32::from(owner.is_some());
            let name = owner.unwrap_or_else(|| format!("broker-{}", round / 4 % 2));
            let old = cluster.pid(&name)?;
            cluster.kill(&name)?;
            cluster.restarted(&name, old)?;
            kills += 1;
        }
    }
    written.store(true, Ordering::SeqCst);
    let before = passes(&client).await?;
    let end = Instant::now() + LIMIT;
    while passes(&client).await? == before && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (replayed, records, gaps) = replay(&client).await?;
    ensure!(replayed == map, "{} keys, {} were written", replayed.len(), map.len());
    ensure!(records < number, "{records} records of {number}: nothing was compacted");
    ensure!(gaps > 0, "no gap was told");
    ensure!(killed_in_pass > 0, "none of {kills} kills met a compaction");
    #[expect(clippy::print_stdout, reason = "shown with --nocapture")]
    {
        println!(
            "{number} updates, {} keys, {records} records read, {kills} kills, {killed_in_pass} of them in a pass",
            map.len()
        );
    }
    let described = at(&cluster, &["topic", "describe", TOPIC, "-o", "json"], b"")?.ok()?.stdout;
    let described: serde_json::Value = serde_json::from_str(&described)?;
    ensure!(described["config"]["cleanup.policy"] == "compact", "{described}");
    ensure!(described["compaction"][0]["dirtyPermille"].is_u64(), "{described}");
    let grouped = reading.await??;
    ensure!(grouped == map, "the group has {} keys, {} were written", grouped.len(), map.len());
    // Everything is killed at once.
    cluster.kill_all()?;
    cluster.up()?;
    let (replayed, ..) = replay(&client).await?;
    ensure!(replayed == map, "{} keys after a restart, {} were written", replayed.len(), map.len());
    cluster.stop()
}

/// What a group makes of the topic while it is written and compacted: until the last update came.
async fn group(client: Client, written: Arc<AtomicBool>) -> Result<Map> {
    let config = GroupConsumerConfig {
        commit: CommitMode::Auto { every: Duration::from_millis(200) },
        ..GroupConsumerConfig::new("followers", [TOPIC])
    };
    let mut consumer = client.group_consumer(config).await?;
    // Of each partition and key the offset and value that were read last.
    let mut map: HashMap<(u32, Vec<u8>), Latest> = HashMap::new();
    let end = Instant::now() + Duration::from_secs(3_600);
    let mut through = false;
    while !through {
        let all_written = written.load(Ordering::SeqCst);
        ensure!(Instant::now() < end, "the group did not come to the end");
        let events = consumer.poll(Duration::from_millis(500)).await?;
        let mut news = false;
        for event in events {
            if let GroupEvent::Read(Event::Batch(b)) = event {
                news = true;
                for r in b.records {
                    let key = (b.source.partition, r.key.context("a key")?.to_vec());
                    let known = map.entry(key).or_insert((-1, None));
                    // Read again after a failure: at least once.
                    if r.offset > known.0 {
                        *known = (r.offset, r.value.map(|v| v.to_vec()));
                    }
                }
            }
        }
        let lag: i64 = match client.groups().describe("followers").await {
            Ok(d) => d.offsets.iter().map(|o| o.lag.max(0)).sum(),
            Err(_) => 1,
        };
        through = all_written && !news && lag == 0 && !map.is_empty();
    }
    consumer.close().await?;
    Ok(map.into_iter().filter_map(|((_, k), (_, v))| Some((k, v?))).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_compacted_topic_refuses() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", TOPIC, "--config=cleanup.policy=compact"], b"")?.ok()?;
    let client = client(&cluster.server()).await?;
    let producer = client.producer(ProducerConfig::default()).await?;
    let handle = producer.topic(TOPIC).await?;
    let without = producer.send(&handle, SendRecord::new(None, Some(b"v"))).await?.await;
    let e = without.err().context("a record without a key was taken")?;
    ensure!(e.code == Some(ErrorCode::KeyRequired), "{e:?}");
    // What was refused is not written, and the producer goes on.
    let done = producer.send(&handle, SendRecord::new(Some(b"k"), Some(b"v"))).await?.await;
    ensure!(done.map_err(|e| anyhow::anyhow!("{e:?}"))?.offset == Some(0));
    let truncate = at(&cluster, &["topic", "truncate", TOPIC, "--before=latest"], b"")?;
    ensure!(truncate.code != Some(0) && truncate.stderr.contains("UNSUPPORTED"), "{truncate:?}");
    for (value, says) in [("burn", "compact,delete"), ("compact,compact", "compact,delete")] {
        let bad = at(&cluster, &["topic", "alter", TOPIC, &format!("--config=cleanup.policy={value}")], b"")?;
        ensure!(bad.code == Some(1) && bad.stderr.contains(says), "{bad:?}");
    }
    // Both policies: records may be deleted by hand again.
    at(&cluster, &["topic", "alter", TOPIC, "--config=cleanup.policy=compact,delete"], b"")?.ok()?;
    let end = Instant::now() + LIMIT;
    while at(&cluster, &["topic", "truncate", TOPIC, "--before=latest"], b"")?.code != Some(0) {
        ensure!(Instant::now() < end, "truncate is refused for ever");
    }
    cluster.stop()
}

/// `__consumer_offsets` is compacted as any other topic: many times more commits than a ledger holds, the broker dies, and every
/// group is where it was.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_committed_offsets_is_compacted() -> Result<()> {
    const GROUPS: u64 = 20;
    const OFFSETS: &str = "__consumer_offsets";
    let mut cluster = Cluster::start(Options {
        set: vec!["broker.internal-partitions=1".to_owned()],
        ..Options::default()
    })?;
    at(&cluster, &["topic", "create", "t"], b"")?.ok()?;
    let lines: String = (0..1_000).map(|n| format!("{n}\n")).collect();
    at(&cluster, &["produce", "t"], lines.as_bytes())?.ok()?;
    let client = client(&cluster.server()).await?;
    let channel = tonic::transport::Channel::from_shared(cluster.server())?.connect().await?;
    let mut raw = tidemill_client::v1::groups_client::GroupsClient::new(channel);
    // The first call makes the internal topic.
    let end = Instant::now() + LIMIT;
    while client.groups().list().await.is_err() || client.partitions(OFFSETS).await.is_err() {
        ensure!(Instant::now() < end, "no coordinator");
        let find = tidemill_client::v1::FindCoordinatorRequest { group: "g-0".into() };
        drop(raw.find_coordinator(find).await);
    }
    for g in 0..GROUPS {
        let config = tidemill_client::v1::GroupConfig::default();
        client.groups().configure(&format!("g-{g}"), Some(config), None).await?;
    }
    let describe = async || client.admin().describe_partition(OFFSETS, 0).await;
    let (mut commits, end) = (0u64, Instant::now() + 2 * LIMIT);
    while describe().await?.compaction.is_none_or(|c| c.passes < 1) {
        ensure!(
            Instant::now() < end,
            "not compacted after {commits} commits: {:?}",
            describe().await?.compaction
        );
        for _ in 0..50 {
            let (group, offset) = (format!("g-{}", commits % GROUPS), i64::try_from(commits % 1_000)?);
            let offsets = vec![tidemill_client::v1::OffsetToCommit {
                topic: "t".into(),
                partition: 0,
                offset,
                metadata: format!("{commits:04000}"),
                ..Default::default()
            }];
            let request =
                tidemill_client::v1::CommitOffsetsRequest { group, member: String::new(), epoch: 0, offsets };
            let answer = raw.commit_offsets(request).await?.into_inner();
            ensure!(answer.results.iter().all(|r| r.error.is_none()), "{answer:?}");
            commits += 1;
        }
    }
    let d = describe().await?;
    let bytes: u64 = d.chain.iter().filter_map(|l| l.length).sum();
    ensure!(
        bytes < commits * 4_000,
        "{bytes} bytes in closed ledgers after {commits} commits of 4 000 bytes"
    );
    let old = cluster.pid("broker-0")?;
    cluster.kill("broker-0")?;
    cluster.restarted("broker-0", old)?;
    for g in 0..GROUPS {
        let last = (0..commits).rev().find(|n| n % GROUPS == g).context("a commit")?;
        let found = client.groups().committed(&format!("g-{g}"), &[]).await?;
        let offset = found.first().and_then(|c| c.offset);
        ensure!(offset == Some(i64::try_from(last % 1_000)?), "g-{g}: {found:?}, the last commit was {last}");
    }
    cluster.stop()
}
