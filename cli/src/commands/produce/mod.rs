//! `tidemill produce`: records from standard input or a file.

mod json;
mod lines;
mod options;
mod parse;
mod pump;
mod verdict;

use std::{fs::File, io::Read, path::PathBuf, time::Instant};

use clap::Args;
use tidemill_client::{Client, HeaderRef};
use tidemill_types::ErrorCode;
use tokio_util::sync::CancellationToken;

pub(crate) use options::ProducerArgs;

use self::{
    parse::Form,
    pump::Pump,
    verdict::{Counts, Stop},
};
use super::connect::{self, failed};
use crate::{
    args::Global,
    error::{CliError, Exit},
    output,
    progress::{Pace, Progress, bytes, count, per_second, span},
};

/// `tidemill produce`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProduceArgs {
    /// The topic.
    topic: String,
    /// Read this file; standard input without it.
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// What stands before its first occurrence in a line is the key; a line without it is an error.
    #[arg(long, value_name = "TEXT", value_parser = not_empty, conflicts_with = "json")]
    key_separator: Option<String>,
    /// A header of every record; repeatable.
    #[arg(long = "header", value_name = "KEY=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Write to this partition; without it the key decides.
    #[arg(long)]
    partition: Option<u32>,
    /// Each line is an object: {"key", "value", "headers", "timestamp", "partition"}, all optional.
    ///
    /// Key and value are strings, null, or {"base64": "..."} for other bytes; headers are an object or an array of
    /// {"key", "value"}; the timestamp is in ms since 1970. What `consume -o json` prints is taken as it is: topic,
    /// offset and appendTime are ignored.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    producer: ProducerArgs,
    /// Records per second; 0 = as fast as possible.
    #[arg(long, default_value_t = 0, value_name = "N")]
    rate: u64,
    /// Print partition and offset of each record, separated by a space, in the order of the input.
    #[arg(long)]
    print_offsets: bool,
}

fn not_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("at least one character expected".to_owned()) } else { Ok(text.to_owned()) }
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE expected".to_owned()),
    }
}

impl ProduceArgs {
    fn form(&self) -> Form {
        match &self.key_separator {
            _ if self.json => Form::Json,
            Some(separator) => Form::Keyed(separator.clone().into_bytes()),
            None => Form::Plain,
        }
    }

    fn open(&self) -> Result<Box<dyn Read + Send>, CliError> {
        let Some(path) = &self.file else { return Ok(Box::new(std::io::stdin())) };
        match File::open(path) {
            Ok(file) => Ok(Box::new(file)),
            Err(e) => {
                let e = CliError::new(path.display().to_string(), e.to_string(), ErrorCode::InvalidArgument);
                Err(e.exit(Exit::Failed))
            }
        }
    }
}

/// Runs it.
pub(crate) fn run(global: &Global, args: ProduceArgs) -> Result<(), CliError> {
    let input = args.open()?;
    connect::run_stoppable(global, |client, stop| produce(global, args, client, stop, input))
}

async fn produce(
    global: &Global,
    args: ProduceArgs,
    client: Client,
    stop: CancellationToken,
    input: Box<dyn Read + Send>,
) -> Result<(), CliError> {
    let producer = client.producer(args.producer.config()).await.map_err(|e| failed(&e))?;
    let topic = producer.topic(&args.topic).await.map_err(|e| failed(&e))?;
    let headers: Vec<HeaderRef<'_>> =
        args.headers.iter().map(|(key, value)| HeaderRef { key, value: Some(value.as_bytes()) }).collect();
    let begin = Instant::now();
    let mut pump = Pump::new(&producer, &topic);
    pump.form = args.form();
    pump.headers = &headers;
    pump.partition = args.partition;
    pump.pace = (args.rate > 0).then(|| Pace::new(begin, args.rate));
    pump.print = args.print_offsets;
    let progress = {
        let producer = producer.clone();
        Progress::start(global, args.print_offsets, None, move || producer.counters().acked)
    };
    let why = pump.run(lines::start(input)?, &stop).await?;
    producer.close().await;
    pump.settle().await?;
    drop(progress);
    let counts = Counts::new(producer.counters());
    if !global.quiet {
        let took = begin.elapsed();
        output::note(&format!(
            "{} of {} records acknowledged by {} in {} ({}/s, {} read)",
            count(counts.acked),
            count(counts.sent),
            args.topic,
            span(took),
            count(per_second(counts.acked, took)),
            bytes(pump.bytes),
        ));
    }
    let why = if matches!(why, Stop::End) && stop.is_cancelled() { Stop::Interrupted } else { why };
    verdict::verdict(&args.topic, &why, pump.lines, counts, pump.first.as_ref())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ProduceArgs,
    }

    fn parse(words: &[&str]) -> Result<ProduceArgs, clap::Error> {
        Line::try_parse_from(["x"].iter().chain(words)).map(|l| l.args)
    }

    #[test]
    fn flags() {
        let args = parse(&["t", "--header", "a=b=c", "--header", "d=", "--key-separator", "::"]).unwrap();
        assert_eq!(args.headers, [("a".into(), "b=c".into()), ("d".into(), String::new())]);
        assert_eq!(args.form(), Form::Keyed(b"::".to_vec()));
        assert_eq!(parse(&["t", "--json"]).unwrap().form(), Form::Json);
        for bad in [&["t", "--header", "x"][..], &["t", "--header", "=x"], &["t", "--key-separator", ""], &[]]
        {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(parse(&["t", "--json", "--key-separator", ":"]).is_err());
    }
}
