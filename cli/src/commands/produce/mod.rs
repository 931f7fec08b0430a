//! `tidemill produce`: one record per line, acknowledged before the command says so.

mod json;
mod lines;
mod report;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use tidemill_client::{Client, Compression, HeaderRef, ProducerConfig, SendRecord};
use tokio::{sync::mpsc, time::Instant};

use self::{
    lines::{Line, Source},
    report::Report,
};
use super::connect::{self, failed};
use crate::{args::Global, error::CliError, meter::Progress};

/// `tidemill produce TOPIC`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProduceArgs {
    /// The topic.
    topic: String,
    /// Read from this file instead of standard input.
    #[arg(long)]
    file: Option<PathBuf>,
    /// What stands before this is the key; a line without it has no key.
    #[arg(long, value_name = "TEXT", conflicts_with = "json")]
    key_separator: Option<String>,
    /// A header of every record; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Write to this partition instead of choosing by key.
    #[arg(long)]
    partition: Option<u32>,
    /// Lines are JSON objects with key, value, headers, timestamp (ms).
    #[arg(long)]
    json: bool,
    /// How batches are compressed.
    #[arg(long, value_enum, default_value = "none")]
    compression: Codec,
    /// A batch is sent at this size.
    #[arg(long, default_value = "64KiB")]
    batch_bytes: bytesize::ByteSize,
    /// A batch that is not full waits so long.
    #[arg(long, default_value = "5ms", value_parser = humantime::parse_duration)]
    linger: Duration,
    /// At most so many records a second.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Print partition and offset of each record.
    #[arg(long)]
    print_offsets: bool,
}

/// `--compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    None,
    Lz4,
    Zstd,
    Snappy,
    Gzip,
}

impl From<Codec> for Compression {
    fn from(c: Codec) -> Self {
        match c {
            Codec::None => Self::None,
            Codec::Lz4 => Self::Lz4,
            Codec::Zstd => Self::Zstd,
            Codec::Snappy => Self::Snappy,
            Codec::Gzip => Self::Gzip,
        }
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    text.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())).ok_or_else(|| "KEY=VALUE expected".to_owned())
}

/// Runs it. SIGINT stops reading; what was read is still delivered and reported.
pub(crate) fn run(global: &Global, args: ProduceArgs) -> Result<(), CliError> {
    connect::run_to_the_end(global, |client| produce(global, client, args))
}

async fn produce(global: &Global, client: Client, args: ProduceArgs) -> Result<(), CliError> {
    let config = ProducerConfig {
        linger: args.linger,
        batch_bytes: usize::try_from(args.batch_bytes.as_u64()).unwrap_or(usize::MAX),
        compression: args.compression.into(),
        ..ProducerConfig::default()
    };
    let producer = client.producer(config).await.map_err(|e| failed(&e))?;
    let topic = producer.topic(&args.topic).await.map_err(|e| failed(&e))?;
    let mut source = Source::open(&args)?;
    let fixed: Vec<(&str, &[u8])> = args.header.iter().map(|(k, v)| (k.as_str(), v.as_bytes())).collect();
    let mut report = Report::start(args.print_offsets);
    let mut progress = Progress::start(global, "records");
    let started = Instant::now();
    let mut stopped: Option<CliError> = None;
    'read: loop {
        let lines = tokio::select! {
            lines = source.next() => lines,
            interrupted = tokio::signal::ctrl_c() => {
                stopped = Some(report::interrupted(interrupted.is_ok()));
                break;
            }
        };
        let lines = match lines {
            Ok(Some(lines)) => lines,
            Ok(None) => break,
            Err(e) => {
                stopped = Some(e);
                break;
            }
        };
        for line in &lines {
            if let Some(rate) = args.rate {
                tokio::time::sleep_until(started + Duration::from_secs_f64(report.taken() as f64 / f64::from(rate))).await;
            }
            let mut headers: Vec<HeaderRef<'_>> =
                fixed.iter().map(|(key, value)| HeaderRef { key, value: Some(value) }).collect();
            headers.extend(line.headers());
            let record = SendRecord {
                partition: args.partition,
                key: line.key(),
                value: line.value(),
                headers: &headers,
                timestamp: line.timestamp(),
            };
            match producer.send(&topic, record).await {
                Ok(delivery) => report.took(delivery)?,
                Err(e) => {
                    let number = report.taken() + 1;
                    stopped = Some(CliError::new(format!("line {number}"), e.to_string(), e.code()));
                    break 'read;
                }
            }
        }
        progress.at(report.taken());
    }
    producer.flush().await;
    progress.end();
    report.end(global, &producer.counters(), started.elapsed(), stopped)
}

/// Lines that the reading thread hands over at once.
type Lines = Vec<Line>;
/// Handed-over groups of lines that may wait.
const WAITING: usize = 4;

fn channel() -> (mpsc::Sender<Result<Lines, CliError>>, mpsc::Receiver<Result<Lines, CliError>>) {
    mpsc::channel(WAITING)
}
