//! `tidemill bench consume`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use tidemill_client::{Client, ConsumedRecord, ErrorCode, Event, Start};
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, args::ReadArgs, report::Report};
use crate::{
    args::Global,
    commands::consume::{Source, Step, gap_text, partitions, trouble},
    error::CliError,
    output,
    progress::Progress,
};

/// Runs it.
pub(super) async fn run(
    global: &Global,
    args: &ReadArgs,
    client: &Client,
    stop: &CancellationToken,
) -> Result<Report, CliError> {
    let all = partitions(client, &args.topic)
        .await
        .map_err(|e| e.help(format!("`tidemill bench produce --topic {}` makes and fills it", args.topic)))?;
    let settings = args.settings(all.len());
    let patience = global.timeout.max(PATIENCE);
    let mut source = Source::until_end(client, all, Start::Earliest).await?;
    let records = Arc::new(AtomicU64::new(0));
    let progress = {
        let records = records.clone();
        Progress::start(global, false, args.bound.records, move || records.load(Ordering::Relaxed))
    };
    let begin = Instant::now();
    let (mut bytes, mut last) = (0, begin);
    let most = args.bound.records.unwrap_or(u64::MAX);
    while !args.bound.over(begin.elapsed()) && records.load(Ordering::Relaxed) < most {
        let step = tokio::select! {
            step = source.next(patience) => step?,
            () = stop.cancelled() => break,
        };
        let Step::Events(events) = step else { break };
        if events.is_empty() && last.elapsed() > patience {
            let why = format!("nothing came for {} s before the ends of the partitions", patience.as_secs());
            return Err(CliError::new("bench consume", why, ErrorCode::DeadlineExceeded));
        }
        for event in events {
            last = Instant::now();
            match event {
                Event::Batch(batch) => {
                    let left = most - records.load(Ordering::Relaxed);
                    let taken = batch.records.iter().take(usize::try_from(left).unwrap_or(usize::MAX));
                    let mut n = 0;
                    for record in taken {
                        bytes += size(record);
                        n += 1;
                    }
                    records.fetch_add(n, Ordering::Relaxed);
                }
                Event::Gap(gap) => output::note(&gap_text(&gap)),
                other => trouble(other)?,
            }
        }
    }
    drop(progress);
    Ok(Report {
        command: "consume",
        settings,
        records: records.load(Ordering::Relaxed),
        bytes,
        took: last.saturating_duration_since(begin),
        ..Report::default()
    })
}

fn size(record: &ConsumedRecord) -> u64 {
    let parts = [&record.key, &record.value];
    let headers = record.headers.iter().map(|h| h.key.len() + h.value.as_ref().map_or(0, bytes::Bytes::len));
    let all = parts.into_iter().flatten().map(bytes::Bytes::len).sum::<usize>() + headers.sum::<usize>();
    all as u64
}
