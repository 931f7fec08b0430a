//! `tidemill cluster`.

use clap::Subcommand;
use serde_json::json;
use tidemill_client::v1;

use super::{
    Output,
    connect::{self, failed},
    table::{self, Row},
};
use crate::{args::Global, error::CliError};

/// Below `tidemill cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// What works and what does not: quorum, members, partitions without an owner, ledgers with missing copies.
    Status {
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// All members with their role, state and load.
    Members {
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
}

/// Runs it.
pub(crate) fn run(global: &Global, command: ClusterCommand) -> Result<(), CliError> {
    connect::run(global, |client| async move {
        let status = client.admin().cluster_status().await.map_err(|e| failed(&e))?;
        match command {
            ClusterCommand::Status { output } => print_status(output, &status),
            ClusterCommand::Members { output } => print_members(output, &status),
        }
    })
}

fn print_status(form: Output, s: &v1::ClusterStatusResponse) -> Result<(), CliError> {
    let count = |role: &str| {
        let all = s.members.iter().filter(|m| m.role == role);
        (all.clone().filter(|m| m.live).count(), all.count())
    };
    let (bookies, brokers) = (count("bookie"), count("broker"));
    let leader = s.quorum.iter().find(|q| q.role == "leader");
    let reachable = s.quorum.iter().filter(|q| q.reachable).count();
    let text = format!(
        "cluster:                   {}\nquorum:                    {reachable} of {} reachable, leader {}\nbookies:                   {} of {} live\nbrokers:                   {} of {} live\ntopics:                    {}\npartitions:                {} ({} without an owner)\nledgers:                   {} ({} with missing or unchecked copies)\n",
        s.cluster,
        s.quorum.len(),
        leader.map_or("unknown", |l| l.address.as_str()),
        bookies.0,
        bookies.1,
        brokers.0,
        brokers.1,
        s.topics,
        s.partitions,
        s.partitions_without_owner,
        s.ledgers,
        s.under_replicated,
    ) + &repairs_text(s);
    let value = json!({
        "cluster": s.cluster,
        "topics": s.topics,
        "partitions": s.partitions,
        "partitionsWithoutOwner": s.partitions_without_owner,
        "ledgers": s.ledgers,
        "underReplicated": s.under_replicated,
        "quorumTimeMs": s.quorum_time_ms,
        "repair": s.repair.as_ref().map(|r| json!({
            "ledgers": r.ledgers, "oldestMs": r.oldest_ms, "bytes": r.bytes, "inProgress": r.in_progress,
            "etaMs": r.eta_ms, "stuck": r.stuck,
        })),
        "quorum": s.quorum.iter().map(|q| json!({
            "address": q.address, "role": q.role, "term": q.term, "applied": q.applied, "reachable": q.reachable,
        })).collect::<Vec<_>>(),
        "members": s.members.iter().map(member_json).collect::<Vec<_>>(),
    });
    table::object(form, &s.cluster, &text, &value)
}

/// What is being repaired, how long it will take, and which bookies are on their way out.
fn repairs_text(s: &v1::ClusterStatusResponse) -> String {
    let mut text = match &s.repair {
        None => "repairs:                   unknown, the quorum's leader does not answer\n".to_owned(),
        Some(r) if r.ledgers == 0 => "repairs:                   nothing to do\n".to_owned(),
        Some(r) => {
            let age = age(s.quorum_time_ms, r.oldest_ms);
            let eta = match r.eta_ms {
                ms if ms < 0 => "not known yet".to_owned(),
                ms => short(ms),
            };
            let stuck = match r.stuck {
                0 => String::new(),
                n => format!(", {n} of them wait for a writable bookie"),
            };
            format!(
                "repairs:                   {} ledgers ({}) to do, oldest since {age}, {} in progress, ready in {eta}{stuck}\n",
                r.ledgers,
                bytesize::ByteSize(r.bytes),
                r.in_progress,
            )
        }
    };
    for m in s
        .members
        .iter()
        .filter(|m| m.role == "bookie" && ["draining", "lost", "limbo"].contains(&m.state.as_str()))
    {
        let needed = match m.load {
            0 => "nothing needs it".to_owned(),
            n => format!("{n} ledgers name it"),
        };
        text.push_str(&format!("  {} ({}) is {}: {needed}\n", m.name, m.id, m.state));
    }
    text
}

fn age(now_ms: i64, since_ms: i64) -> String {
    short((now_ms - since_ms).max(0))
}

fn short(ms: i64) -> String {
    let seconds = u64::try_from(ms.max(0)).unwrap_or(0).div_ceil(1_000);
    humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string()
}

fn member_json(m: &v1::Member) -> serde_json::Value {
    json!({
        "id": m.id, "role": m.role, "name": m.name, "address": m.address, "zone": m.zone, "state": m.state,
        "live": m.live, "freeBytes": m.free_bytes, "load": m.load,
    })
}

fn print_members(form: Output, s: &v1::ClusterStatusResponse) -> Result<(), CliError> {
    let rows = s
        .members
        .iter()
        .map(|m| Row {
            name: m.name.clone(),
            columns: vec![
                m.name.clone(),
                m.role.clone(),
                m.state.clone(),
                if m.live { "yes" } else { "no" }.to_owned(),
                m.load.to_string(),
                m.address.clone(),
            ],
            wide: vec![m.id.clone(), m.zone.clone(), bytesize::ByteSize(m.free_bytes).to_string()],
            json: member_json(m),
        })
        .collect();
    table::print(form, &["NAME", "ROLE", "STATE", "LIVE", "LOAD", "ADDRESS"], &["ID", "ZONE", "FREE"], rows)
}
