//! `tidemill bench group`: what a rebalance costs those who are moved and those who are not, and how fast offsets are committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tidemill_client::{
    Client, ClientError, CommitMode, ErrorCode, Event, GroupConsumer, GroupConsumerConfig, GroupEvent,
    ProducerConfig, ResetTo, SendRecord, TopicPartition,
};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::ensure;
use crate::{commands::connect::failed, error::CliError};

/// Between two polls of a member; what it sees is that exact.
const POLL: Duration = Duration::from_millis(20);
/// Groups that are made at once.
const AT_ONCE: u64 = 64;
/// For all members to have their partitions.
const SETTLE: Duration = Duration::from_secs(60);

/// Flags of `bench group`.
#[derive(Clone, Debug, Args)]
pub(crate) struct GroupArgs {
    /// The topic; created when missing.
    #[arg(long, default_value = "tidemill-bench-group")]
    topic: String,
    /// Partitions of a topic that is created.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    partitions: u32,
    /// Members; one of them leaves in the middle.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    members: u32,
    /// Records per second of the whole topic, so that a pause shows.
    #[arg(long, default_value_t = 5_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Length of each of the three parts: before, after, commits.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// The member that leaves says nothing: it stops as a killed process does.
    #[arg(long)]
    silent: bool,
    /// Then make so many groups without members, each with one committed offset: look at the memory of the brokers.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    idle_groups: u64,
    /// Session time-out of the members.
    #[arg(long, default_value = "6s", value_parser = humantime::parse_duration)]
    session: Duration,
    /// Print the report as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// What the members saw.
#[derive(Default)]
struct Seen {
    /// Who has a partition since when.
    owner: BTreeMap<TopicPartition, (u32, Instant)>,
    /// When its last owner had it last.
    freed: BTreeMap<TopicPartition, Instant>,
    /// Last record, and the longest time between two of them in this part of the run.
    last: BTreeMap<TopicPartition, Instant>,
    pause: BTreeMap<TopicPartition, Duration>,
    /// Time without an owner of each partition that was moved in this part.
    moved: BTreeMap<TopicPartition, Duration>,
}

struct Member {
    task: JoinHandle<Result<(), ClientError>>,
    /// Leaves in order.
    stop: CancellationToken,
}

/// Runs it; the report as text or JSON.
pub(super) async fn run(
    args: &GroupArgs,
    client: &Client,
    stop: &CancellationToken,
) -> Result<String, CliError> {
    let count = ensure(client, &args.topic, args.partitions).await?.len();
    let group = format!("bench-{}", uuid::Uuid::new_v4());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let load = tokio::spawn(produce(client.clone(), args.clone(), stop.clone()));
    let mut members = Vec::new();
    for n in 0..args.members {
        members.push(member(client.clone(), args, &group, n, seen.clone()));
    }
    settled(&seen, count, None, stop).await?;
    begin_part(&seen);
    rest(args.duration, stop).await;
    let before = pauses(&seen);
    // One leaves.
    begin_part(&seen);
    let first = members.remove(0);
    let of_first: BTreeSet<TopicPartition> = owned_by(&seen, 0);
    let left = Instant::now();
    if args.silent {
        // As a killed process: no farewell, no more heartbeats.
        first.task.abort();
    } else {
        first.stop.cancel();
    }
    {
        let mut s = seen.lock();
        for p in &of_first {
            s.freed.entry(p.clone()).or_insert(left);
        }
    }
    settled(&seen, count, Some(0), stop).await?;
    let rebalanced = left.elapsed();
    rest(args.duration, stop).await;
    let after = pauses(&seen);
    let moved: BTreeMap<TopicPartition, Duration> = seen.lock().moved.clone();
    for m in members {
        m.stop.cancel();
        drop(m.task.await);
    }
    let commits = commits(client, args, stop).await?;
    if load.is_finished() && !stop.is_cancelled() {
        let ended =
            load.await.map_err(|e| CliError::new("bench group", e.to_string(), ErrorCode::Internal))?;
        ended.map_err(|e| failed(&e))?;
    } else {
        load.abort();
    }
    let idle_took = idle(client, args, stop).await?;
    let unmoved = |p: &&TopicPartition| !moved.contains_key(*p) && !of_first.contains(*p);
    let others_moved = moved.keys().filter(|p| !of_first.contains(*p)).count();
    let longest = |of: &BTreeMap<TopicPartition, Duration>| {
        of.iter().filter(|(p, _)| unmoved(p)).map(|(_, d)| *d).max().unwrap_or_default()
    };
    let (calm, stormy) = (longest(&before), longest(&after));
    let mut without: Vec<Duration> = moved.values().copied().collect();
    without.sort();
    let at = |q: usize| without.get((without.len().saturating_sub(1)) * q / 100).copied().unwrap_or_default();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let report = json!({
        "bench": "group",
        "settings": {
            "topic": args.topic, "partitions": count, "members": args.members, "rate": args.rate,
            "silent": args.silent, "sessionSeconds": args.session.as_secs_f64(),
        },
        "movedPartitions": moved.len(),
        "movedOfOthers": others_moved,
        "withoutOwnerMs": { "p50": ms(at(50)), "p99": ms(at(99)), "max": ms(at(100)) },
        "rebalanceMs": ms(rebalanced),
        "longestPauseOfUnmovedMs": { "before": ms(calm), "during": ms(stormy) },
        "commits": commits,
        "idleGroups": args.idle_groups,
        "idleGroupsSeconds": idle_took.as_secs_f64(),
    });
    if args.json {
        return serde_json::to_string_pretty(&report)
            .map(|t| t + "\n")
            .map_err(|e| CliError::new("output", e.to_string(), ErrorCode::Internal));
    }
    Ok(text(&report))
}

fn text(r: &Value) -> String {
    let f = |v: &Value| v.as_f64().unwrap_or_default();
    format!(
        "bench group: {} of {} partitions moved when one of {} members left, {} of them from members that stayed\n  \
         without an owner: p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms\n  \
         longest pause between two records of a partition that did not move: {:.0} ms before, {:.0} ms during\n  \
         commits: {:.0} calls/s, {:.0} offsets/s by {} members\n",
        r["movedPartitions"],
        r["settings"]["partitions"],
        r["settings"]["members"],
        r["movedOfOthers"],
        f(&r["withoutOwnerMs"]["p50"]),
        f(&r["withoutOwnerMs"]["p99"]),
        f(&r["withoutOwnerMs"]["max"]),
        f(&r["longestPauseOfUnmovedMs"]["before"]),
        f(&r["longestPauseOfUnmovedMs"]["during"]),
        f(&r["commits"]["callsPerSecond"]),
        f(&r["commits"]["offsetsPerSecond"]),
        r["commits"]["members"],
    )
}

async fn rest(d: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = sleep(d) => {}
        () = stop.cancelled() => {}
    }
}

fn begin_part(seen: &Mutex<Seen>) {
    let mut s = seen.lock();
    s.pause.clear();
    s.moved.clear();
    let now = Instant::now();
    s.last.values_mut().for_each(|t| *t = now);
}

fn pauses(seen: &Mutex<Seen>) -> BTreeMap<TopicPartition, Duration> {
    seen.lock().pause.clone()
}

fn owned_by(seen: &Mutex<Seen>, member: u32) -> BTreeSet<TopicPartition> {
    let s = seen.lock();
    s.owner.iter().filter(|(_, (m, _))| *m == member).map(|(p, _)| p.clone()).collect()
}

/// Waits until every partition has an owner, none of them `gone`.
async fn settled(
    seen: &Mutex<Seen>,
    partitions: usize,
    gone: Option<u32>,
    stop: &CancellationToken,
) -> Result<(), CliError> {
    let end = Instant::now() + SETTLE;
    loop {
        let owned = seen.lock().owner.values().filter(|(m, _)| Some(*m) != gone).count();
        if owned == partitions || stop.is_cancelled() {
            return Ok(());
        }
        if Instant::now() >= end {
            let why =
                format!("{owned} of {partitions} partitions have an owner after {} s", SETTLE.as_secs());
            return Err(CliError::new("bench group", why, ErrorCode::DeadlineExceeded));
        }
        sleep(POLL).await;
    }
}

fn config(args: &GroupArgs, group: &str) -> GroupConsumerConfig {
    GroupConsumerConfig {
        commit: CommitMode::Auto { every: Duration::from_secs(1) },
        session_timeout: Some(args.session),
        ..GroupConsumerConfig::new(group, [args.topic.clone()])
    }
}

fn member(client: Client, args: &GroupArgs, group: &str, n: u32, seen: Arc<Mutex<Seen>>) -> Member {
    let (config, stop) = (config(args, group), CancellationToken::new());
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let mut consumer = client.group_consumer(config).await?;
        while !stopped.is_cancelled() {
            let events = consumer.poll(POLL).await?;
            let now = Instant::now();
            let mut s = seen.lock();
            for event in events {
                note(&mut s, n, event, now);
            }
        }
        consumer.close().await
    });
    Member { task, stop }
}

fn note(s: &mut Seen, n: u32, event: GroupEvent, now: Instant) {
    match event {
        GroupEvent::Assigned(of) => {
            for p in of {
                if let Some(freed) = s.freed.remove(&p) {
                    s.moved.insert(p.clone(), now.saturating_duration_since(freed));
                }
                s.owner.insert(p, (n, now));
            }
        }
        GroupEvent::Revoking(of) | GroupEvent::Lost(of) => {
            for p in of {
                if s.owner.get(&p).is_some_and(|(m, _)| *m == n) {
                    s.owner.remove(&p);
                    s.freed.insert(p, now);
                }
            }
        }
        GroupEvent::Read(Event::Batch(b)) => {
            if let Some(last) = s.last.insert(b.source.clone(), now) {
                let pause = s.pause.entry(b.source).or_default();
                *pause = (*pause).max(now.saturating_duration_since(last));
            }
        }
        GroupEvent::Read(_) => {}
    }
}

/// Small records to each partition in turn.
async fn produce(client: Client, args: GroupArgs, stop: CancellationToken) -> Result<(), ClientError> {
    let producer =
        client.producer(ProducerConfig { linger: Duration::ZERO, ..ProducerConfig::default() }).await?;
    let topic = producer.topic(&args.topic).await?;
    let begin = Instant::now();
    let mut sent = 0u64;
    while !stop.is_cancelled() {
        let due = begin.elapsed().as_micros() * u128::from(args.rate) / 1_000_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        while sent < due {
            let mut record = SendRecord::new(None, Some(b"sixteen bytes...."));
            record.partition = u32::try_from(sent % u64::from(topic.partitions())).ok();
            // What fails shows as a pause of its partition.
            let taken = producer.send(&topic, record).await;
            drop(taken.map_err(|e| ClientError::new(ErrorCode::NotWritten, e.to_string()))?);
            sent += 1;
        }
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Groups that nobody is a member of.
async fn idle(client: &Client, args: &GroupArgs, stop: &CancellationToken) -> Result<Duration, CliError> {
    let begin = Instant::now();
    let (groups, topics) = (client.groups(), [args.topic.clone()]);
    let mut made = 0;
    while made < args.idle_groups && !stop.is_cancelled() {
        let some = made..args.idle_groups.min(made + AT_ONCE);
        made = some.end;
        let names: Vec<String> = some.map(|n| format!("bench-idle-{n}")).collect();
        let made = names.iter().map(|n| groups.reset(n, &topics, &[0], &ResetTo::Earliest, true));
        for done in join_all(made).await {
            done.map_err(|e| failed(&e))?;
        }
    }
    Ok(begin.elapsed())
}

/// Each member in a group of its own commits as fast as it is answered: no record is read for it.
async fn commits(client: &Client, args: &GroupArgs, stop: &CancellationToken) -> Result<Value, CliError> {
    let mut tasks = Vec::new();
    for n in 0..args.members {
        let mut config = config(args, &format!("bench-commits-{n}-{}", uuid::Uuid::new_v4()));
        config.commit = CommitMode::Manual;
        let (client, duration, stop) = (client.clone(), args.duration, stop.clone());
        tasks.push(tokio::spawn(async move {
            let mut consumer = client.group_consumer(config).await?;
            let joined = Instant::now();
            while consumer.assignment().is_empty() && joined.elapsed() < SETTLE {
                consumer.poll(POLL).await?;
            }
            let mine: Vec<TopicPartition> = consumer.assignment().into_iter().take(10).collect();
            let begin = Instant::now();
            let (mut calls, mut offsets) = (0u64, 0u64);
            while begin.elapsed() < duration && !stop.is_cancelled() {
                commit(&mut consumer, &mine, i64::from(calls % 2 == 0)).await?;
                calls += 1;
                offsets += mine.len() as u64;
                consumer.poll(Duration::ZERO).await?;
            }
            consumer.leave().await;
            Ok::<_, ClientError>((calls, offsets))
        }));
    }
    let (mut calls, mut offsets) = (0, 0);
    for t in tasks {
        let done = t.await.map_err(|e| CliError::new("bench group", e.to_string(), ErrorCode::Internal))?;
        let (c, o) = done.map_err(|e| failed(&e))?;
        calls += c;
        offsets += o;
    }
    let seconds = args.duration.as_secs_f64();
    Ok(json!({
        "members": args.members,
        "callsPerSecond": calls as f64 / seconds,
        "offsetsPerSecond": offsets as f64 / seconds,
    }))
}

async fn commit(consumer: &mut GroupConsumer, of: &[TopicPartition], offset: i64) -> Result<(), ClientError> {
    consumer.commit_offsets(of.iter().map(|p| (p.clone(), offset))).await
}
