//! `tidemill ledger` and `tidemill partition`.

use clap::Subcommand;
use serde_json::json;
use tidemill_client::{Client, v1};

use super::{
    Output,
    connect::{self, failed},
    table::{self, Row},
};
use crate::{args::Global, error::CliError};

/// Most ledgers that one call returns.
const PAGE: u32 = 1_000;

/// Below `tidemill ledger`.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// List ledgers.
    List {
        /// Only those of this topic.
        #[arg(long)]
        topic: Option<String>,
        /// Only those of this partition.
        #[arg(long, requires = "topic")]
        partition: Option<u32>,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Show one ledger: state, end, fragments, missing copies.
    Inspect {
        /// The ledger's id.
        id: u64,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
}

/// Below `tidemill partition`.
#[derive(Debug, Subcommand)]
pub(crate) enum PartitionCommand {
    /// Show owner, state, ends and chain of a partition.
    Describe {
        /// The topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
}

/// Runs `tidemill ledger`.
pub(crate) fn run(global: &Global, command: LedgerCommand) -> Result<(), CliError> {
    connect::run(global, |client| async move {
        match command {
            LedgerCommand::List { topic, partition, output } => {
                let ledgers = all(&client, topic.unwrap_or_default(), partition).await?;
                print(output, &ledgers)
            }
            LedgerCommand::Inspect { id, output } => {
                let request =
                    v1::ListLedgersRequest { ledger: id, limit: 1, ..v1::ListLedgersRequest::default() };
                let answer = client.admin().list_ledgers(request).await.map_err(|e| failed(&e))?;
                match answer.ledgers.first() {
                    Some(l) => table::object(output, &l.id.to_string(), &text(l), &json_of(l)),
                    None => Err(CliError::new(
                        format!("ledger {id}"),
                        "there is no such ledger",
                        tidemill_types::ErrorCode::UnknownLedger,
                    )),
                }
            }
        }
    })
}

/// Runs `tidemill partition`.
pub(crate) fn run_partition(global: &Global, command: PartitionCommand) -> Result<(), CliError> {
    let PartitionCommand::Describe { topic, partition, output } = command;
    connect::run(global, |client| async move {
        let d = client.admin().describe_partition(&topic, partition).await.map_err(|e| failed(&e))?;
        let p = d.partition.clone().unwrap_or_default();
        let high = if d.high_watermark < 0 { "unknown".to_owned() } else { d.high_watermark.to_string() };
        let text = format!(
            "partition: {topic}/{partition}\nowner: {} ({})\nepoch: {}\nstate: {}\nlog start: {}\nhigh watermark: {high}\n\n{}",
            p.owner_name,
            p.owner,
            p.epoch,
            d.state,
            d.log_start,
            listing(&d.chain)
        );
        let value = json!({
            "topic": topic, "partition": partition, "owner": p.owner, "ownerName": p.owner_name, "epoch": p.epoch,
            "state": d.state, "logStart": d.log_start, "highWatermark": d.high_watermark,
            "chain": d.chain.iter().map(json_of).collect::<Vec<_>>(),
        });
        table::object(output, &format!("{topic}/{partition}"), &text, &value)
    })
}

async fn all(client: &Client, topic: String, partition: Option<u32>) -> Result<Vec<v1::Ledger>, CliError> {
    let mut out: Vec<v1::Ledger> = Vec::new();
    loop {
        let request = v1::ListLedgersRequest {
            topic: topic.clone(),
            partition,
            after: out.last().map_or(0, |l| l.id),
            limit: PAGE,
            ledger: 0,
        };
        let page = client.admin().list_ledgers(request).await.map_err(|e| failed(&e))?.ledgers;
        let full = page.len() == PAGE as usize;
        out.extend(page);
        if !full {
            return Ok(out);
        }
    }
}

fn end(l: &v1::Ledger) -> String {
    l.last_entry.map_or_else(|| "-".to_owned(), |e| e.to_string())
}

fn under(l: &v1::Ledger) -> bool {
    l.unchecked || l.fragments.iter().any(|f| !f.under.is_empty())
}

const HEADS: [&str; 8] = ["LEDGER", "PARTITION", "STATE", "BASE", "LAST ENTRY", "RECORDS", "BYTES", "COPIES"];

fn columns(l: &v1::Ledger) -> Vec<String> {
    let copies = l.fragments.last().map_or(0, |f| f.ensemble.len());
    vec![
        l.id.to_string(),
        format!("{}/{}", l.topic, l.partition),
        l.state.clone(),
        if l.base_offset < 0 { "-".to_owned() } else { l.base_offset.to_string() },
        end(l),
        l.records.map_or_else(|| "-".to_owned(), |r| r.to_string()),
        l.length.map_or_else(|| "-".to_owned(), |r| r.to_string()),
        if under(l) { format!("{copies} (to be checked)") } else { copies.to_string() },
    ]
}

fn listing(ledgers: &[v1::Ledger]) -> String {
    table::columns(&HEADS, ledgers.iter().map(columns).collect())
}

fn print(form: Output, ledgers: &[v1::Ledger]) -> Result<(), CliError> {
    let rows = ledgers
        .iter()
        .map(|l| Row {
            name: l.id.to_string(),
            columns: columns(l),
            wide: vec![
                l.epoch.to_string(),
                l.fragments.last().map(|f| f.names.join(",")).unwrap_or_default(),
            ],
            json: json_of(l),
        })
        .collect();
    table::print(form, &HEADS, &["EPOCH", "BOOKIES"], rows)
}

fn text(l: &v1::Ledger) -> String {
    let rows = l
        .fragments
        .iter()
        .map(|f| {
            let under: Vec<String> =
                f.under.chunks(2).map(|r| format!("{}-{}", r[0], r[r.len() - 1])).collect();
            vec![f.first_entry.to_string(), f.names.join(","), f.ensemble.join(","), under.join(",")]
        })
        .collect();
    format!(
        "ledger: {}\npartition: {}/{}\nepoch: {}\nstate: {}\nack quorum: {}\nlast entry: {}\nunchecked: {}\nversion: {}\n\n{}",
        l.id,
        l.topic,
        l.partition,
        l.epoch,
        l.state,
        l.ack_quorum,
        end(l),
        l.unchecked,
        l.version,
        table::columns(&["FIRST ENTRY", "BOOKIES", "UUIDS", "UNDER-REPLICATED"], rows)
    )
}

fn json_of(l: &v1::Ledger) -> serde_json::Value {
    json!({
        "ledger": l.id, "topic": l.topic, "partition": l.partition, "epoch": l.epoch, "state": l.state,
        "ackQuorum": l.ack_quorum, "lastEntry": l.last_entry, "bytes": l.length, "records": l.records,
        "baseOffset": l.base_offset, "unchecked": l.unchecked, "version": l.version, "createdMs": l.created_ms,
        "fragments": l.fragments.iter().map(|f| json!({
            "firstEntry": f.first_entry, "ensemble": f.ensemble, "names": f.names, "under": f.under,
        })).collect::<Vec<_>>(),
    })
}
