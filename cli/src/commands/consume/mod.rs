//! `tidemill consume`: records to standard output.

mod ends;
mod format;
pub(super) mod from;
mod group;
mod idle;
mod json;
mod source;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use tidemill_client::{Client, ConsumedBatch, ErrorCode, Event, Gap, GapKind};
use tokio_util::sync::CancellationToken;

pub(crate) use source::{Source, Step, offsets, partitions};

use self::{format::Format, from::From, idle::IdleArgs};
use super::connect::{self, failed, interrupted};
use crate::{
    args::Global,
    error::{CliError, Exit},
    output,
    progress::{Progress, count, per_second, span},
};

/// Output is written once there is so much of it, and whenever nothing more is there.
const OUT_BYTES: usize = 64 << 10;
/// Longest wait for records before signals and time-outs are looked at again.
const WAIT: Duration = Duration::from_secs(1);

/// `tidemill consume`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// The topics.
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Read this partition only, of one topic.
    #[arg(long)]
    partition: Option<u32>,
    /// Read as a member of this group: from its committed offsets on, committing what was printed and nothing else.
    #[arg(long, conflicts_with = "partition")]
    group: Option<String>,
    /// Where to begin (with --group: in partitions without a committed offset): earliest, latest, an offset, or @TIMESTAMP (ms since 1970 or 2026-01-31T12:00:00Z).
    #[arg(long, default_value = "earliest", value_parser = from::parse, allow_hyphen_values = true)]
    from: From,
    /// End where the partitions ended at the start.
    #[arg(long)]
    until_end: bool,
    /// End after so many records.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
    #[command(flatten)]
    idle: IdleArgs,
    /// value, json, or a format: %t topic, %p partition, %o offset, %k key, %v value, %h headers, %T timestamp in ms,
    /// %% a per cent sign, \n \t \r \0 \\ escapes. One record per line.
    #[arg(long, short, default_value = "value", value_name = "value|json|FORMAT", value_parser = format::parse)]
    output: Format,
}

/// Runs it.
pub(crate) fn run(global: &Global, args: ConsumeArgs) -> Result<(), CliError> {
    check(&args)?;
    connect::run_stoppable(global, |client, stop| consume(global, args, client, stop))
}

fn check(args: &ConsumeArgs) -> Result<(), CliError> {
    if args.partition.is_some() && args.topics.len() != 1 {
        let why = format!("{} topics were named, it goes with one", args.topics.len());
        return Err(CliError::usage("--partition", why));
    }
    let mut names: Vec<_> = args.topics.iter().collect();
    names.sort();
    match names.windows(2).find(|w| w[0] == w[1]) {
        Some(twice) => Err(CliError::usage("consume", format!("topic {:?} is named twice", twice[0]))),
        None => Ok(()),
    }
}

async fn consume(
    global: &Global,
    args: ConsumeArgs,
    client: Client,
    stop: CancellationToken,
) -> Result<(), CliError> {
    let what = format!("consume {}", args.topics.join(", "));
    let begin = Instant::now();
    let done = Arc::new(AtomicU64::new(0));
    let progress = {
        let done = done.clone();
        Progress::start(global, true, args.max, move || done.load(Ordering::Relaxed))
    };
    let mut printer = Printer {
        form: args.output.clone(),
        left: args.max,
        printed: done.clone(),
        out: Vec::new(),
        broken: None,
        lost: 0,
    };
    let result = match &args.group {
        // It has something to finish: what was printed is committed.
        Some(group) => group::read(&args, group, &client, &what, &mut printer, &stop).await,
        None => tokio::select! {
            result = read(&args, &client, &what, &mut printer, &stop) => result,
            () = stop.cancelled() => Err(interrupted(&*what, "by a signal")),
        },
    };
    printer.write()?;
    drop(progress);
    let (n, took) = (done.load(Ordering::Relaxed), begin.elapsed());
    if !global.quiet && (n > 0 || result.is_ok()) {
        output::note(&format!("{} records in {} ({}/s)", count(n), span(took), count(per_second(n, took))));
    }
    result?;
    match printer.lost {
        0 => Ok(()),
        lost => Err(CliError::new(what, format!("{lost} offsets are lost"), ErrorCode::DataLoss)
            .help("the gaps are named above; `tidemill partition describe` shows the ledgers")),
    }
}

async fn read(
    args: &ConsumeArgs,
    client: &Client,
    what: &str,
    printer: &mut Printer,
    stop: &CancellationToken,
) -> Result<(), CliError> {
    let mut source = open(args, client).await?;
    let mut last = Instant::now();
    loop {
        if stop.is_cancelled() {
            return Err(interrupted(what, "by a signal"));
        }
        let wait = args.idle.timeout.map_or(WAIT, |t| t.saturating_sub(last.elapsed()).min(WAIT));
        match source.next(wait).await? {
            Step::Done => return Ok(()),
            Step::Events(events) => {
                if !events.is_empty() {
                    last = Instant::now();
                }
                for event in events {
                    if printer.event(event)? {
                        return Ok(());
                    }
                }
                printer.write()?;
            }
        }
        if let Some(timeout) = args.idle.timeout
            && last.elapsed() >= timeout
        {
            let why = format!("nothing came for {}", span(timeout));
            return Err(CliError::new(what, why, ErrorCode::DeadlineExceeded)
                .help("--timeout sets how long to wait; `tidemill partition describe` shows whether there is an owner"));
        }
    }
}

/// What is to be read.
async fn open(args: &ConsumeArgs, client: &Client) -> Result<Source, CliError> {
    let start = args.from.start;
    let Some(one) = args.partition else {
        if !args.until_end {
            return Source::follow(client, &args.topics, start).await;
        }
        let mut all = Vec::new();
        for topic in &args.topics {
            all.extend(partitions(client, topic).await?);
        }
        return Source::until_end(client, all, start).await;
    };
    let topic = &args.topics[0];
    let all = partitions(client, topic).await?;
    let count = all.len();
    let Some(found) = all.into_iter().find(|p| p.partition == one) else {
        let why = format!("the topic has {count} partitions");
        return Err(CliError::new(format!("partition {topic}/{one}"), why, ErrorCode::UnknownPartition)
            .exit(Exit::NotFound));
    };
    if args.until_end {
        Source::until_end(client, vec![found], start).await
    } else {
        Source::one(client, topic, one, start)
    }
}

/// `earliest`, `latest`, an offset or `@TIMESTAMP`, for other commands.
pub(crate) fn parse_start(text: &str) -> Result<tidemill_client::Start, String> {
    from::parse(text).map(|f| f.start)
}

/// Turns events into output.
struct Printer {
    form: Format,
    /// Records that may still be printed.
    left: Option<u64>,
    printed: Arc<AtomicU64>,
    out: Vec<u8>,
    /// Why standard output takes no more: what was given since is printed by nobody.
    broken: Option<CliError>,
    /// Offsets of gaps by data loss.
    lost: u64,
}

impl Printer {
    /// Prints it; true when it was the last one wanted.
    fn event(&mut self, event: Event) -> Result<bool, CliError> {
        match event {
            Event::Batch(batch) => self.batch(&batch),
            Event::Gap(gap) => {
                if gap.kind == GapKind::DataLoss {
                    self.lost = self.lost.saturating_add(gap.to.abs_diff(gap.from));
                }
                self.write()?;
                output::note(&gap_text(&gap));
                Ok(false)
            }
            other => {
                self.write()?;
                trouble(other).map(|()| false)
            }
        }
    }

    fn batch(&mut self, batch: &ConsumedBatch) -> Result<bool, CliError> {
        let mut n = 0u64;
        for record in &batch.records {
            if self.left.is_some_and(|left| n >= left) {
                break;
            }
            self.form.write(&mut self.out, batch, record);
            n += 1;
            if self.out.len() >= OUT_BYTES {
                self.write()?;
            }
        }
        self.printed.fetch_add(n, Ordering::Relaxed);
        if let Some(left) = &mut self.left {
            *left -= n;
        }
        Ok(self.left == Some(0))
    }

    /// Everything given so far is on standard output.
    fn write(&mut self) -> Result<(), CliError> {
        if let Some(e) = &self.broken {
            return Err(e.clone());
        }
        if self.out.is_empty() {
            return Ok(());
        }
        let done = output::write_to(&mut std::io::stdout().lock(), &self.out);
        self.out.clear();
        self.broken = done.as_ref().err().cloned();
        done
    }
}

/// What is said about a gap.
pub(crate) fn gap_text(gap: &Gap) -> String {
    let why = match gap.kind {
        GapKind::Trimmed => "removed by retention",
        GapKind::Compacted => "removed by compaction",
        GapKind::DataLoss => "lost",
    };
    format!("gap: {}: offsets {} to {} were {why}", gap.source, gap.from, gap.to.saturating_sub(1))
}

/// What an event that is neither records nor a gap comes to: an error, or a note when the client goes on trying.
pub(crate) fn trouble(event: Event) -> Result<(), CliError> {
    match event {
        Event::Batch(_) | Event::Gap(_) => Ok(()),
        Event::Corrupt { source, offset, next_offset, message } => {
            Err(CliError::new(format!("read {source} at offset {offset}"), message, ErrorCode::Corrupt)
                .help(format!("`--partition {} --from {next_offset}` goes on behind it", source.partition)))
        }
        Event::OutOfRange { source, offset, log_start, log_end } => Err(CliError::new(
            format!("read {source} at offset {offset}"),
            format!("the partition has offsets {log_start} to {log_end} (exclusive)"),
            ErrorCode::OffsetOutOfRange,
        )
        .help("--from earliest begins at the first record, --from latest behind the last one")),
        Event::Failed { source, error } if error.retryable => {
            output::note(&format!("warning: {source}: {error}; trying further"));
            Ok(())
        }
        Event::Failed { error, .. } => Err(failed(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use clap::Parser;
    use tidemill_client::{ConsumedRecord, TopicPartition};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ConsumeArgs,
    }

    fn parse(words: &[&str]) -> ConsumeArgs {
        Line::try_parse_from(["x"].iter().chain(words)).map(|l| l.args).unwrap()
    }

    #[test]
    fn one_partition_of_one_topic() {
        assert!(check(&parse(&["a", "--partition", "1"])).is_ok());
        assert_eq!(check(&parse(&["a", "b", "--partition", "1"])).unwrap_err().exit, Exit::Usage);
        assert_eq!(check(&parse(&["a", "a"])).unwrap_err().exit, Exit::Usage);
        assert!(Line::try_parse_from(["x"]).is_err());
        assert!(Line::try_parse_from(["x", "a", "--max", "0"]).is_err());
    }

    fn source() -> TopicPartition {
        TopicPartition { topic: "t".into(), partition: 3 }
    }

    #[test]
    fn a_maximum_ends_within_a_batch() {
        let record = |offset| ConsumedRecord {
            offset,
            timestamp: 1,
            key: None,
            value: Some(format!("v{offset}").into()),
            headers: Vec::new(),
        };
        let batch = |from| {
            let records = (from..from + 3).map(record).collect();
            Event::Batch(ConsumedBatch { source: source(), append_time: 0, high_watermark: 9, records })
        };
        let printed = Arc::new(AtomicU64::new(0));
        let form = format::parse("value").unwrap();
        let mut p =
            Printer { form, left: Some(4), printed: printed.clone(), out: Vec::new(), broken: None, lost: 0 };
        assert!(!p.event(batch(0)).unwrap());
        assert!(p.event(batch(3)).unwrap());
        assert_eq!(p.out, b"v0\nv1\nv2\nv3\n");
        assert_eq!(printed.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn troubles_name_place_and_way_on() {
        let e =
            trouble(Event::Corrupt { source: source(), offset: 5, next_offset: 9, message: "crc".into() });
        let e = e.unwrap_err();
        assert_eq!(e.code, "CORRUPT");
        assert!(e.to_string().contains("t/3 at offset 5") && e.to_string().contains("--from 9"));
        let e = trouble(Event::OutOfRange { source: source(), offset: 50, log_start: 2, log_end: 9 });
        assert_eq!(e.unwrap_err().code, "OFFSET_OUT_OF_RANGE");
        let gap = Gap { source: source(), kind: GapKind::DataLoss, from: 2, to: 5 };
        assert_eq!(gap_text(&gap), "gap: t/3: offsets 2 to 4 were lost");
    }
}
