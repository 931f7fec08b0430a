//! `tidemill consume`: records to standard output, one per line.

mod format;
mod start;

use std::{
    collections::HashMap,
    io::{BufWriter, Write},
    time::Duration,
};

use clap::Args;
use tidemill_client::{Client, Consumer, ConsumerConfig, Event, TopicPartition};
use tidemill_types::ErrorCode;
use tokio::time::Instant;

use self::{format::Format, start::From};
use super::connect::{self, failed};
use crate::{
    args::Global,
    error::{CliError, Exit},
    output,
};

/// `tidemill consume TOPIC...`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// The topics.
    #[arg(required = true)]
    topics: Vec<String>,
    /// Not in this version: committed offsets of groups.
    #[arg(long)]
    group: Option<String>,
    /// Only this partition (of one topic).
    #[arg(long)]
    partition: Option<u32>,
    /// Where to begin: earliest, latest, an offset, or @TIME (ms since the Unix epoch, or RFC 3339).
    #[arg(long, default_value = "earliest", value_parser = From::parse)]
    from: From,
    /// End at the end that the partitions had at the start.
    #[arg(long)]
    until_end: bool,
    /// End after so many records.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
    /// End with exit code 5 when nothing came for so long.
    #[arg(long = "idle-timeout", visible_alias = "wait", value_parser = humantime::parse_duration)]
    idle: Option<Duration>,
    /// value, json, or a format of %t topic, %p partition, %o offset, %k key, %v value, %h headers, %T timestamp, %%, \n, \t.
    #[arg(long, short, default_value = "value", value_parser = Format::parse)]
    output: Format,
}

/// Runs it.
pub(crate) fn run(global: &Global, args: ConsumeArgs) -> Result<(), CliError> {
    if let Some(group) = &args.group {
        return Err(CliError::new(
            format!("consume --group {group}"),
            "this version keeps no committed offsets",
            ErrorCode::Unsupported,
        )
        .exit(Exit::Usage)
        .help("read all partitions without a group: --from earliest, or --from OFFSET with --partition"));
    }
    if args.partition.is_some() && args.topics.len() > 1 {
        return Err(CliError::usage("--partition", "goes with one topic"));
    }
    connect::run(global, |client| consume(client, args))
}

async fn consume(client: Client, args: ConsumeArgs) -> Result<(), CliError> {
    let mut consumer = client.consumer(ConsumerConfig::default());
    let from = args.from.start();
    match args.partition {
        Some(p) => {
            let count = client.partitions(&args.topics[0]).await.map_err(|e| failed(&e))?;
            if p >= count {
                return Err(CliError::new(
                    format!("partition {p}"),
                    format!("topic {} has {count} partitions, 0 to {}", args.topics[0], count - 1),
                    ErrorCode::UnknownPartition,
                )
                .exit(Exit::NotFound));
            }
            consumer.assign([(args.topics[0].as_str(), p, from)]).map_err(|e| failed(&e))?;
        }
        None => {
            let all = args.topics.iter().map(|t| (t.as_str(), from));
            consumer.assign_topics(all).await.map_err(|e| failed(&e))?;
        }
    }
    let ends = if args.until_end { Some(Ends::of(&client, &consumer, &args).await?) } else { None };
    read(&mut consumer, ends, &args).await
}

/// Where each partition ends, and how far it was read.
struct Ends {
    left: HashMap<TopicPartition, i64>,
}

impl Ends {
    async fn of(client: &Client, consumer: &Consumer, args: &ConsumeArgs) -> Result<Self, CliError> {
        let ends = consumer.end_offsets().await.map_err(|e| failed(&e))?;
        let starts = start::positions(client, consumer, args.from).await?;
        let mut left = HashMap::new();
        for e in ends {
            let source = TopicPartition { topic: e.topic.clone(), partition: e.partition };
            let end = e.offset.unwrap_or(0);
            if starts.get(&source).copied().unwrap_or(0) < end {
                left.insert(source, end);
            }
        }
        Ok(Self { left })
    }

    fn read_to(&mut self, source: &TopicPartition, next: i64) {
        if self.left.get(source).is_some_and(|end| next >= *end) {
            self.left.remove(source);
        }
    }
}

async fn read(consumer: &mut Consumer, mut ends: Option<Ends>, args: &ConsumeArgs) -> Result<(), CliError> {
    const POLL: Duration = Duration::from_millis(500);
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut line = Vec::new();
    let mut printed = 0u64;
    let mut last = Instant::now();
    while ends.as_ref().is_none_or(|e| !e.left.is_empty()) {
        let events = consumer.poll(POLL).await.map_err(|e| failed(&e))?;
        if events.is_empty() {
            if let Some(limit) = args.idle
                && last.elapsed() >= limit
            {
                flush(&mut out)?;
                return Err(CliError::new("consume", format!("nothing came for {limit:?}"), ErrorCode::DeadlineExceeded)
                    .exit(Exit::TimedOut));
            }
            continue;
        }
        last = Instant::now();
        for event in events {
            match event {
                Event::Batch(batch) => {
                    let end = ends.as_ref().and_then(|e| e.left.get(&batch.source).copied());
                    if ends.is_some() && end.is_none() {
                        continue;
                    }
                    let mut next = 0;
                    for r in &batch.records {
                        next = r.offset + 1;
                        if end.is_some_and(|e| r.offset >= e) {
                            break;
                        }
                        line.clear();
                        args.output.put(&mut line, &batch.source, r);
                        write(&mut out, &line)?;
                        printed += 1;
                        if args.max.is_some_and(|m| printed >= m) {
                            return flush(&mut out);
                        }
                    }
                    if let Some(e) = &mut ends {
                        e.read_to(&batch.source, next);
                    }
                }
                Event::Gap(g) => {
                    output::note(&format!("{}: offsets {} to {} are not there ({:?})", g.source, g.from, g.to - 1, g.kind));
                    if let Some(e) = &mut ends {
                        e.read_to(&g.source, g.to);
                    }
                }
                Event::Corrupt { source, offset, next_offset, message } => {
                    flush(&mut out)?;
                    return Err(CliError::new(format!("{source} at offset {offset}"), message, ErrorCode::Corrupt)
                        .help(format!("--partition {} --from {next_offset} reads on behind it", source.partition)));
                }
                Event::OutOfRange { source, offset, log_start, log_end } => {
                    flush(&mut out)?;
                    return Err(CliError::new(
                        format!("{source}"),
                        format!("offset {offset} is outside of the log, which goes from {log_start} to {log_end}"),
                        ErrorCode::OffsetOutOfRange,
                    ));
                }
                Event::Failed { source, error } => output::note(&format!("{source}: {error}")),
            }
        }
        // Flushed when nothing more is at hand, so that a follower sees each record at once.
        flush(&mut out)?;
    }
    flush(&mut out)
}

fn write(out: &mut impl Write, bytes: &[u8]) -> Result<(), CliError> {
    match out.write_all(bytes) {
        Ok(()) => Ok(()),
        Err(e) => closed(&e),
    }
}

fn flush(out: &mut impl Write) -> Result<(), CliError> {
    match out.flush() {
        Ok(()) => Ok(()),
        Err(e) => closed(&e),
    }
}

/// A closed pipe (`| head`) ends quietly.
fn closed(e: &std::io::Error) -> Result<(), CliError> {
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    Err(CliError::new("standard output", e.to_string(), ErrorCode::Internal))
}
