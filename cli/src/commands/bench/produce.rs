//! `tidemill bench produce`.

use std::time::Instant;

use tidemill_client::Client;
use tokio_util::sync::CancellationToken;

use super::{args::LoadArgs, ensure, load, report::Report};
use crate::{args::Global, error::CliError, progress::Progress};

/// Runs it.
pub(super) async fn run(
    global: &Global,
    args: &LoadArgs,
    client: &Client,
    stop: &CancellationToken,
) -> Result<Report, CliError> {
    let partitions = ensure(client, &args.topic, args.partitions).await?.len();
    let rate = args.rate.unwrap_or(0);
    let producers = load::producers(client, args).await?;
    let counting: Vec<_> = producers.iter().map(|(p, _)| p.clone()).collect();
    let done = move || counting.iter().map(|p| p.counters().acked).sum();
    let progress = Progress::start(global, false, args.bound.records, done);
    let begin = Instant::now();
    let loaded = load::run(args, rate, producers, begin, None, stop).await?;
    drop(progress);
    let c = loaded.counters;
    Ok(Report {
        command: "produce",
        settings: args.settings(rate, partitions),
        records: loaded.acks.count(),
        bytes: loaded.acks.count() * args.record_bytes.as_u64(),
        took: loaded.acks.last.unwrap_or(begin).saturating_duration_since(begin + args.warmup),
        latency: loaded.acks.latency(),
        slots: loaded.acks.slots().to_vec(),
        not_written: c.not_written,
        unknown: c.unknown,
        batch_retries: c.batch_retries,
        first_failure: loaded.acks.first_failure,
        ..Report::default()
    })
}
