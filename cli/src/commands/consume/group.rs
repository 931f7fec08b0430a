//! `consume --group`: as a member, committing what was printed and nothing else.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tidemill_client::{
    At, Client, CommitMode, ErrorCode, Event, GroupConsumer, GroupConsumerConfig, GroupEvent, TopicPartition,
};
use tokio_util::sync::CancellationToken;

use super::{ConsumeArgs, Printer, WAIT, ends::Ends, source};
use crate::{
    commands::connect::{failed, interrupted},
    error::CliError,
    output,
    progress::span,
};

/// What was printed is committed so often.
const COMMIT: Duration = Duration::from_secs(1);
/// Between two looks at what the others of the group have committed.
const LOOK: Duration = Duration::from_millis(200);

/// A member that prints.
struct Member<'a> {
    client: &'a Client,
    group: &'a str,
    consumer: GroupConsumer,
    /// Behind what was given to the printer.
    printed: BTreeMap<TopicPartition, i64>,
    /// Behind what is on standard output and is not committed yet.
    written: BTreeMap<TopicPartition, i64>,
    /// With `--until-end`.
    ends: Option<Ends>,
    /// The same ends, for those that others read.
    all_ends: BTreeMap<TopicPartition, i64>,
    committed_at: Instant,
}

pub(super) async fn read(
    args: &ConsumeArgs,
    group: &str,
    client: &Client,
    what: &str,
    printer: &mut Printer,
    stop: &CancellationToken,
) -> Result<(), CliError> {
    let mut m = join(args, group, client).await?;
    let done = m.run(args, what, printer, stop).await;
    // Whatever ended it: what is on standard output is committed, and the others need not wait for the session.
    let written = m.write(printer);
    let committed = m.commit().await;
    m.consumer.leave().await;
    done.and(written).and(committed)
}

async fn join<'a>(args: &ConsumeArgs, group: &'a str, client: &'a Client) -> Result<Member<'a>, CliError> {
    let mut all_ends = BTreeMap::new();
    for topic in &args.topics {
        // A topic that is not there is told at once; a member of a group would wait for it.
        let parts = source::partitions(client, topic).await?;
        if args.until_end {
            // Ends before starts, as without a group.
            let ends = source::offsets(client, &parts, At::Latest).await?;
            let starts = source::offsets(client, &parts, At::Earliest).await?;
            let bounds = parts.into_iter().zip(starts).zip(ends);
            all_ends.extend(bounds.filter_map(|((p, start), end)| {
                let end = end?;
                (start.unwrap_or(0) < end).then_some((p, end))
            }));
        }
    }
    let config = GroupConsumerConfig {
        start: args.from.start,
        commit: CommitMode::Manual,
        client: format!("tidemill consume {}", std::process::id()),
        ..GroupConsumerConfig::new(group, args.topics.iter())
    };
    let consumer = client.group_consumer(config).await.map_err(|e| failed(&e))?;
    let ends = args.until_end.then(|| Ends::new(all_ends.iter().map(|(p, end)| (p.clone(), -1, *end))));
    let (printed, written) = (BTreeMap::new(), BTreeMap::new());
    Ok(Member { client, group, consumer, printed, written, ends, all_ends, committed_at: Instant::now() })
}

impl Member<'_> {
    async fn run(
        &mut self,
        args: &ConsumeArgs,
        what: &str,
        printer: &mut Printer,
        stop: &CancellationToken,
    ) -> Result<(), CliError> {
        let mut last = Instant::now();
        loop {
            let step = if self.ends.is_some() { LOOK } else { WAIT };
            let wait = args.idle.timeout.map_or(step, |t| t.saturating_sub(last.elapsed()).min(step));
            let events = tokio::select! {
                events = self.consumer.poll(wait) => events.map_err(|e| failed(&e))?,
                () = stop.cancelled() => return Err(interrupted(what, "by a signal")),
            };
            if !events.is_empty() {
                last = Instant::now();
            }
            let nothing = events.is_empty();
            for event in events {
                if self.event(event, printer).await? {
                    return Ok(());
                }
            }
            // On standard output first, committed then.
            self.write(printer)?;
            if self.committed_at.elapsed() >= COMMIT {
                self.commit().await?;
            }
            if nothing && self.at_the_end().await? {
                return Ok(());
            }
            if let Some(timeout) = args.idle.timeout
                && last.elapsed() >= timeout
            {
                let why = format!("nothing came for {}", span(timeout));
                return Err(CliError::new(what, why, ErrorCode::DeadlineExceeded).help(
                    "--timeout sets how long to wait; `tidemill group describe` shows members and lag",
                ));
            }
        }
    }

    /// Prints it; true when it was the last record wanted.
    async fn event(&mut self, event: GroupEvent, printer: &mut Printer) -> Result<bool, CliError> {
        match event {
            GroupEvent::Assigned(_) => Ok(false),
            GroupEvent::Revoking(parts) => {
                self.write(printer)?;
                self.commit().await?;
                for p in parts {
                    self.printed.remove(&p);
                    self.written.remove(&p);
                }
                Ok(false)
            }
            GroupEvent::Lost(parts) => {
                for p in &parts {
                    self.printed.remove(p);
                    self.written.remove(p);
                }
                let n = parts.len();
                output::note(&format!("warning: {n} partitions went to other members before a commit"));
                Ok(false)
            }
            GroupEvent::Read(event) => self.print(event, printer),
        }
    }

    fn print(&mut self, event: Event, printer: &mut Printer) -> Result<bool, CliError> {
        let (event, ended) = match &mut self.ends {
            Some(ends) => ends.cut(event),
            None => (Some(event), None),
        };
        if let Some(p) = &ended {
            self.consumer.pause(&p.topic, p.partition).map_err(|e| failed(&e))?;
        }
        let Some(event) = event else { return Ok(false) };
        let before = printer.left;
        let next = match &event {
            Event::Batch(b) => {
                let n = before.map_or(b.records.len(), |left| {
                    b.records.len().min(usize::try_from(left).unwrap_or(usize::MAX))
                });
                let last = n.checked_sub(1).and_then(|i| b.records.get(i));
                last.map(|r| (b.source.clone(), r.offset + 1))
            }
            Event::Gap(gap) => Some((gap.source.clone(), gap.to)),
            _ => None,
        };
        let done = printer.event(event)?;
        self.printed.extend(next);
        Ok(done)
    }

    fn write(&mut self, printer: &mut Printer) -> Result<(), CliError> {
        printer.write()?;
        self.written.append(&mut self.printed);
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), CliError> {
        self.committed_at = Instant::now();
        let written = std::mem::take(&mut self.written);
        match self.consumer.commit_offsets(written).await {
            Ok(()) => Ok(()),
            // Somebody else reads them again: printed twice, never lost.
            Err(e) if matches!(e.code, Some(ErrorCode::FencedMember | ErrorCode::UnknownMember)) => {
                output::note(&format!("warning: {e}"));
                Ok(())
            }
            Err(e) => Err(failed(&e)),
        }
    }

    /// Whether the group is through: this member with what it has, the others with theirs by what they committed.
    async fn at_the_end(&mut self) -> Result<bool, CliError> {
        if self.ends.is_none() {
            return Ok(false);
        }
        let held = self.consumer.assignment();
        let here =
            |p: &TopicPartition| held.contains(p).then(|| self.consumer.position(&p.topic, p.partition));
        // One whose start is not found yet, or that is not through.
        if held.iter().any(|p| {
            let end = self.all_ends.get(p).copied().unwrap_or(-1);
            here(p).flatten().is_none_or(|at| at < end)
        }) {
            return Ok(false);
        }
        let open: Vec<TopicPartition> = self.all_ends.keys().filter(|p| !held.contains(p)).cloned().collect();
        self.commit().await?;
        if open.is_empty() {
            return Ok(true);
        }
        let found = self.client.groups().committed(self.group, &open).await.map_err(|e| failed(&e))?;
        Ok(found.iter().all(|c| c.offset >= self.all_ends.get(&c.source).copied()))
    }
}
