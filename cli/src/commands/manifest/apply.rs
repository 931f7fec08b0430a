//! `apply`.

use std::{path::PathBuf, time::Duration};

use serde_json::json;
use tidemill_client::Client;
use tidemill_types::ErrorCode;

use super::{
    Kind, cluster, groups, observe,
    read::{self, Manifest},
    topics::{self, Done},
};
use crate::{
    commands::{
        Output,
        table::{self, Row},
    },
    error::{CliError, Exit},
    output,
};

/// Applies everything that can be; what was refused is told at the end.
pub(super) async fn apply(
    client: &Client,
    manifests: &[Manifest],
    dry_run: bool,
    wait: Duration,
    form: Output,
) -> Result<(), CliError> {
    cluster::warn(manifests);
    let seen = observe::named(client, topics::names(manifests)).await?;
    let plans = topics::plans(manifests, &seen, false);
    for (m, plan) in &plans {
        for warning in &plan.warnings {
            output::note(&format!("warning: {}: {}: {warning}", m.at, m.full_name()));
        }
    }
    let clusters = manifests.iter().filter(|m| m.kind() == Kind::Cluster).map(|m| (m, Done::Unchanged));
    let mut done: Vec<(&Manifest, Done)> = clusters.collect();
    done.extend(topics::apply(client, plans, dry_run, wait).await?);
    done.extend(groups::apply(client, manifests, dry_run).await?);
    print(&done, dry_run, form)?;
    refusals(&done)
}

/// As `tidemill apply -f`, for `tidemill up -f`.
pub(crate) async fn apply_files(client: &Client, files: &[PathBuf]) -> Result<(), CliError> {
    let manifests = read::all(files, "default")?;
    apply(client, &manifests, false, Duration::from_secs(10), Output::Table).await
}

fn word(done: &Done) -> Option<&'static str> {
    Some(match done {
        Done::Created => "created",
        Done::Configured(_) | Done::Undeleted => "configured",
        Done::Unchanged => "unchanged",
        Done::Refused(..) => return None,
    })
}

/// One line per object, in kubectl's words.
fn print(done: &[(&Manifest, Done)], dry_run: bool, form: Output) -> Result<(), CliError> {
    let suffix = if dry_run { " (dry run)" } else { "" };
    if form == Output::Table || form == Output::Wide {
        let lines: String = done
            .iter()
            .filter_map(|(m, d)| word(d).map(|w| format!("{} {w}{suffix}\n", m.full_name())))
            .collect();
        output::print(&lines)?;
        for (m, _) in done.iter().filter(|(_, d)| *d == Done::Undeleted) {
            output::note(&format!("note: {} was deleted and has its records back", m.full_name()));
        }
        return Ok(());
    }
    let rows = done
        .iter()
        .map(|(m, d)| {
            let (reason, message) = match d {
                Done::Refused(reason, message) => (Some(reason.clone()), Some(message.clone())),
                _ => (None, None),
            };
            let changes = if let Done::Configured(c) = d { c.clone() } else { Vec::new() };
            Row {
                name: m.full_name(),
                columns: Vec::new(),
                wide: Vec::new(),
                json: json!({
                    "kind": m.kind().full(),
                    "name": m.name,
                    "namespace": m.namespace,
                    "result": word(d).unwrap_or("refused"),
                    "dryRun": dry_run,
                    "changes": changes,
                    "reason": reason,
                    "message": message,
                }),
            }
        })
        .collect();
    table::print(form, &[], &[], rows)
}

/// All refusals in one error, with the exit code of the worst.
pub(super) fn refusals(done: &[(&Manifest, Done)]) -> Result<(), CliError> {
    let refused: Vec<(&Manifest, &str, &str)> = done
        .iter()
        .filter_map(|(m, d)| match d {
            Done::Refused(reason, message) => Some((*m, reason.as_str(), message.as_str())),
            _ => None,
        })
        .collect();
    let Some((first, reason, _)) = refused.first() else { return Ok(()) };
    let kind = first.kind();
    let code = match *reason {
        "InvalidSpec" | "PartitionsShrink" => ErrorCode::InvalidArgument,
        "Unsupported" => ErrorCode::Unsupported,
        "Tombstoned" => ErrorCode::TopicTombstoned,
        "Conflict" if kind == Kind::ConsumerGroup => ErrorCode::GroupClaimed,
        "WaitingForEmptyGroup" => ErrorCode::GroupNotEmpty,
        "WaitingForTopic" => ErrorCode::UnknownTopic,
        "Conflict" | "Exists" => ErrorCode::TopicClaimed,
        "NotEmpty" => ErrorCode::TopicNotEmpty,
        _ => ErrorCode::QuorumUnavailable,
    };
    let exit = if refused.iter().any(|(_, r, _)| *r == "ClusterUnavailable") {
        Exit::Failed
    } else {
        Exit::Conflict
    };
    let lines: Vec<String> = refused
        .iter()
        .map(|(m, reason, message)| format!("{} ({}): {reason}: {message}", m.full_name(), m.at))
        .collect();
    let (what, why) = match &lines[..] {
        [one] => {
            let (what, why) = one.split_once(": ").unwrap_or(("apply", one));
            (what.to_owned(), why.to_owned())
        }
        many => (format!("{} objects were refused", many.len()), format!("\n  {}", many.join("\n  "))),
    };
    Err(CliError::new(what, why, code).exit(exit).help("the rest was done; applying again does what is left"))
}
