//! `tidemill bench`: load of a given rate, and the latencies of every record from when it was due.

mod args;
mod consume;
mod e2e;
mod group;
mod load;
mod payload;
mod produce;
mod report;
mod tally;

use std::time::Duration;

use clap::Subcommand;
use tidemill_client::{At, Client, ErrorCode, TopicPartition};

use self::{
    args::{LoadArgs, ReadArgs},
    group::GroupArgs,
    report::Report,
};
use super::{
    connect::{self, failed, interrupted},
    consume::{offsets, partitions},
};
use crate::{args::Global, error::CliError, output};

/// A reader that gets nothing for so long gives up, at least.
const PATIENCE: Duration = Duration::from_secs(10);
/// Records per second of `bench e2e` without `--rate`: far from saturation, so that latency is that of the system and
/// not that of a queue.
const E2E_RATE: u64 = 1_000;

/// Below `tidemill bench`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Write; latency from when a record was due to its acknowledgement.
    Produce(LoadArgs),
    /// Read a topic from its start up to where it ends.
    Consume(ReadArgs),
    /// Write and read at once; latency from when a record was due to its receipt. 1 000 records per second by default.
    E2e(LoadArgs),
    /// Let a member leave its group: time without an owner, pauses of what is not moved, commits per second.
    Group(GroupArgs),
}

/// Runs it.
pub(crate) fn run(global: &Global, command: BenchCommand) -> Result<(), CliError> {
    connect::run_stoppable(global, |client, stop| async move {
        let (report, json) = match &command {
            BenchCommand::Produce(args) => (produce::run(global, args, &client, &stop).await?, args.json),
            BenchCommand::Consume(args) => (consume::run(global, args, &client, &stop).await?, args.json),
            BenchCommand::E2e(args) => (e2e::run(global, args, &client, &stop).await?, args.json),
            BenchCommand::Group(args) => return output::print(&group::run(args, &client, &stop).await?),
        };
        output::print(&if json { report.json()? } else { report.text() })?;
        verdict(&report, stop.is_cancelled())
    })
}

/// Success when nothing failed and nobody interrupted it.
fn verdict(report: &Report, stopped: bool) -> Result<(), CliError> {
    let what = format!("bench {}", report.command);
    if stopped {
        return Err(interrupted(what, "by a signal; the figures are of the time before it"));
    }
    let because = report.first_failure.as_ref().map_or_else(String::new, |e| format!("; first failure: {e}"));
    if report.not_written + report.unknown > 0 {
        let code = if report.unknown > 0 { ErrorCode::OutcomeUnknown } else { ErrorCode::NotWritten };
        let why = format!(
            "{} records were not written, {} are of unknown outcome{because}",
            report.not_written, report.unknown
        );
        return Err(CliError::new(what, why, code));
    }
    if report.missing > 0 {
        let why = format!("{} acknowledged records did not arrive", report.missing);
        return Err(CliError::new(what, why, ErrorCode::DeadlineExceeded));
    }
    match &report.first_failure {
        Some(e) => Err(CliError::new(what, e.clone(), ErrorCode::NotWritten)),
        None => Ok(()),
    }
}

/// The partitions of the topic, which is created when it is missing; each has an owner.
async fn ensure(client: &Client, topic: &str, count: u32) -> Result<Vec<TopicPartition>, CliError> {
    match client.partitions(topic).await {
        Ok(found) if found != count => {
            output::note(&format!("note: topic {topic} exists with {found} partitions"));
        }
        Ok(_) => {}
        Err(e) if e.code == Some(ErrorCode::UnknownTopic) => {
            client.admin().create_topic(topic, count, [], true).await.map_err(|e| failed(&e))?;
        }
        Err(e) => return Err(failed(&e)),
    }
    let all = partitions(client, topic).await?;
    offsets(client, &all, At::Latest).await?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;

    #[test]
    fn success_needs_every_record() {
        let good = || Report { command: "e2e", records: 5, ..Report::default() };
        assert!(verdict(&good(), false).is_ok());
        assert_eq!(verdict(&good(), true).unwrap_err().exit, Exit::Interrupted);
        let unknown = Report { unknown: 1, ..good() };
        assert_eq!(verdict(&unknown, false).unwrap_err().exit, Exit::TimedOut);
        let failed = Report { not_written: 1, first_failure: Some("x".into()), ..good() };
        let e = verdict(&failed, false).unwrap_err();
        assert!(e.exit == Exit::Failed && e.why.ends_with("first failure: x"));
        assert!(verdict(&Report { missing: 1, ..good() }, false).is_err());
        assert!(verdict(&Report { first_failure: Some("x".into()), ..good() }, false).is_err());
    }
}
