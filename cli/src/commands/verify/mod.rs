//! `tidemill verify`: writes and reads for a bounded time and checks what must hold (see [`tidemill_history`]).

mod read;
mod report;
mod value;
mod write;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytesize::ByteSize;
use clap::Args;
use tidemill_client::{At, Client, ErrorCode};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::{
    report::Run,
    value::Values,
    write::{Plan, Written},
};
use super::{
    connect::{self, failed, interrupted},
    consume::{offsets, partitions},
    produce::ProducerArgs,
};
use crate::{
    args::Global,
    error::{CliError, Exit},
    output,
    progress::Progress,
};
use tidemill_history::{History, check};

/// Records of one run; the history of so many takes a few hundred MB.
const MAX_RECORDS: u64 = 2_000_000;
/// A reader that gets nothing for so long gives up, at least.
const PATIENCE: Duration = Duration::from_secs(30);

/// `tidemill verify`.
#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArgs {
    /// How long to write; ends earlier after 2 000 000 records.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// Partitions of the topic that it creates.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    partitions: u32,
    /// Producers, each with a producer id of its own.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    producers: u32,
    /// Records per second of all producers; 0 = as fast as possible.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    rate: u64,
    /// Largest value; sizes vary from 32 bytes on.
    #[arg(long, default_value = "256B", value_name = "SIZE", value_parser = record_bytes)]
    record_bytes: ByteSize,
    #[command(flatten)]
    producer: ProducerArgs,
    /// Keep the topic. One with violations is kept in any case.
    #[arg(long)]
    keep: bool,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

fn record_bytes(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    let allowed = ByteSize::b(value::MIN_BYTES as u64)..=ByteSize::kib(512);
    if allowed.contains(&size) { Ok(size) } else { Err("32B to 512KiB expected".to_owned()) }
}

/// Runs it.
pub(crate) fn run(global: &Global, args: VerifyArgs) -> Result<(), CliError> {
    connect::run_stoppable(global, |client, stop| verify(global, args, client, stop))
}

async fn verify(
    global: &Global,
    args: VerifyArgs,
    client: Client,
    stop: CancellationToken,
) -> Result<(), CliError> {
    let random = uuid::Uuid::new_v4().as_u64_pair();
    let topic = format!("tidemill-verify-{:012x}", random.0 >> 16);
    client.admin().create_topic(&topic, args.partitions, [], false).await.map_err(|e| failed(&e))?;
    let result = tokio::select! {
        result = work(global, &args, &client, &topic, random.1, &stop) => result,
        () = stop.cancelled() => Err(interrupted("verify", "by a signal")),
    };
    // What a violation was found in stays for who looks for its cause.
    let evidence = match &result {
        Ok(run) => !run.report.violations.is_empty(),
        Err(e) => e.exit != Exit::Interrupted,
    };
    if !args.keep && !evidence {
        let deleted = client.admin().delete_topic(&topic).await;
        if let Err(e) = deleted {
            output::note(&format!("warning: topic {topic} was not deleted: {e}"));
        }
    }
    let help = format!("topic {topic} was kept; `tidemill topic delete {topic}` removes it");
    let run = result.map_err(|e| if evidence && e.help.is_none() { e.help(&help) } else { e })?;
    output::print(&if args.json { run.json()? } else { run.text() })?;
    run.verdict().map_err(|e| if evidence || args.keep { e.help(help) } else { e })
}

async fn work(
    global: &Global,
    args: &VerifyArgs,
    client: &Client,
    topic: &str,
    run: u64,
    stop: &CancellationToken,
) -> Result<Run, CliError> {
    let all = partitions(client, topic).await?;
    // Every partition has an owner before the clock runs.
    offsets(client, &all, At::Latest).await?;
    let patience = global.timeout.max(PATIENCE);
    let values = Values { run, max_bytes: usize::try_from(args.record_bytes.as_u64()).unwrap_or(usize::MAX) };
    let clock = Instant::now();
    let acked = Arc::new(AtomicU64::new(0));
    let progress = {
        let acked = acked.clone();
        Progress::start(global, false, None, move || acked.load(Ordering::Relaxed))
    };

    let (finish, ends) = watch::channel(None);
    let reading = tokio::spawn(read::live(client.clone(), all.clone(), values, ends, patience));
    let plan = Plan {
        values,
        clock,
        duration: args.duration,
        max_records: MAX_RECORDS,
        partitions: args.partitions,
        producers: args.producers,
        rate: args.rate,
        config: args.producer.config(),
    };
    let Written { sent, first_failure } = write::write(client, topic, plan, stop, &acked).await?;
    let wrote = clock.elapsed();
    finish.send_replace(Some(offsets(client, &all, At::Latest).await?));
    let live = reading
        .await
        .map_err(|e| CliError::new("verify", format!("the reader ended: {e}"), ErrorCode::Internal))??;
    let last = read::from_the_start(client, all, values, patience).await?;
    drop(progress);

    let history = History { sent, live, last };
    let report = check(&history);
    Ok(Run {
        topic: topic.to_owned(),
        partitions: args.partitions,
        producers: args.producers,
        wrote,
        took: clock.elapsed(),
        first_failure,
        report,
    })
}
