//! `tidemill bench e2e`: the time of each record from when it was due to when a consumer has it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tidemill_client::{At, Client, Consumer, ConsumerConfig, ErrorCode, Event, Start};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{E2E_RATE, PATIENCE, args::LoadArgs, ensure, load, payload::Stamp, report::Report, tally::Tally};
use crate::{
    args::Global,
    commands::{
        connect::failed,
        consume::{gap_text, offsets, trouble},
    },
    error::CliError,
    output,
    progress::Progress,
};

/// Between two looks at whether all has come.
const LOOK: Duration = Duration::from_millis(100);

/// Runs it.
pub(super) async fn run(
    global: &Global,
    args: &LoadArgs,
    client: &Client,
    stop: &CancellationToken,
) -> Result<Report, CliError> {
    let partitions = ensure(client, &args.topic, args.partitions).await?;
    let rate = args.rate.unwrap_or(E2E_RATE);
    let producers = load::producers(client, args).await?;
    // From where the topic ends now: nothing of this run is missed.
    let ends = offsets(client, &partitions, At::Latest).await?;
    let mut consumer = client.consumer(ConsumerConfig::default());
    let from =
        partitions.iter().zip(ends).map(|(p, end)| (&*p.topic, p.partition, Start::Offset(end.unwrap_or(0))));
    consumer.assign(from).map_err(|e| failed(&e))?;

    let received = Arc::new(AtomicU64::new(0));
    let progress = {
        let received = received.clone();
        Progress::start(global, false, args.bound.records, move || received.load(Ordering::Relaxed))
    };
    let begin = Instant::now();
    let stamp = Stamp { run: uuid::Uuid::new_v4().as_u64_pair().1, begin };
    let (acked, expected) = watch::channel(None);
    let warm = begin + args.warmup;
    let patience = global.timeout.max(PATIENCE);
    let reading = tokio::spawn(read(consumer, (stamp, warm), expected, received, patience));
    let loaded = load::run(args, rate, producers, begin, Some(stamp), stop).await?;
    acked.send_replace(Some(loaded.acks.count()));
    let tally = reading
        .await
        .map_err(|e| CliError::new("bench e2e", format!("the reader ended: {e}"), ErrorCode::Internal))??;
    drop(progress);
    let c = loaded.counters;
    Ok(Report {
        command: "e2e",
        settings: args.settings(rate, partitions.len()),
        records: tally.count(),
        bytes: tally.count() * args.record_bytes.as_u64(),
        took: tally.last.unwrap_or(begin).saturating_duration_since(warm),
        latency: tally.latency(),
        ack_latency: loaded.acks.latency(),
        slots: tally.slots().to_vec(),
        not_written: c.not_written,
        unknown: c.unknown,
        missing: loaded.acks.count().saturating_sub(tally.count()),
        batch_retries: c.batch_retries,
        first_failure: loaded.acks.first_failure,
    })
}

/// Reads until as many records of the run have come as were acknowledged, or nothing comes any more.
async fn read(
    mut consumer: Consumer,
    (stamp, warm): (Stamp, Instant),
    mut expected: watch::Receiver<Option<u64>>,
    received: Arc<AtomicU64>,
    patience: Duration,
) -> Result<Tally, CliError> {
    let mut tally = Tally::new(warm)?;
    let mut quiet = Instant::now();
    loop {
        let events = tokio::select! {
            events = consumer.poll(LOOK) => events.map_err(|e| failed(&e))?,
            // Counts from here: before, nothing had to come.
            Ok(()) = expected.changed() => {
                quiet = Instant::now();
                Vec::new()
            }
        };
        let now = Instant::now();
        for event in events {
            match event {
                Event::Batch(batch) => {
                    let due = batch.records.iter().filter_map(|r| stamp.read(r.value.as_ref()));
                    let due = due.map(|due| stamp.begin + due).filter(|due| *due >= warm);
                    due.for_each(|due| tally.record(due, now));
                    quiet = now;
                }
                Event::Gap(gap) => output::note(&gap_text(&gap)),
                other => trouble(other)?,
            }
        }
        received.store(tally.count(), Ordering::Relaxed);
        if let Some(expected) = *expected.borrow()
            && (tally.count() >= expected || quiet.elapsed() > patience)
        {
            return Ok(tally);
        }
    }
}
