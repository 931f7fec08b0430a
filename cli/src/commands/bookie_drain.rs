//! `tidemill bookie drain` and `describe`: emptying a bookie before it goes.

use std::time::Duration;

use serde_json::json;
use tidemill_client::{Client, v1};

use super::{
    Output,
    connect::{self, failed},
    table,
};
use crate::{args::Global, error::CliError, output};

/// Between two looks at the progress.
const LOOK: Duration = Duration::from_secs(1);

/// Runs `drain`.
pub(crate) fn run(global: &Global, bookie: &str, undo: bool, wait: bool) -> Result<(), CliError> {
    let quiet = global.quiet;
    connect::run(global, |client| async move {
        let now = client.admin().drain_bookie(bookie, undo).await.map_err(|e| failed(&e))?;
        if undo {
            return output::print(&format!("bookie {} is {} again\n", name(&now), state(&now)));
        }
        if wait {
            return until_empty(&client, now, quiet).await;
        }
        output::print(&line(&now))
    })
}

/// Runs `describe`.
pub(crate) fn describe(global: &Global, bookie: &str, form: Output) -> Result<(), CliError> {
    connect::run(global, |client| async move {
        let b = client.admin().describe_bookie(bookie).await.map_err(|e| failed(&e))?;
        table::object(form, &name(&b), &text(&b), &json_of(&b))
    })
}

async fn until_empty(client: &Client, mut now: v1::BookieNeeds, quiet: bool) -> Result<(), CliError> {
    let id = now.member.as_ref().map(|m| m.id.clone()).unwrap_or_default();
    let mut told = None;
    while now.named > 0 && state(&now) == "draining" {
        if !quiet && told != Some(now.named) {
            output::note(line(&now).trim_end());
            told = Some(now.named);
        }
        tokio::time::sleep(LOOK).await;
        now = client.admin().describe_bookie(&id).await.map_err(|e| failed(&e))?;
    }
    match state(&now).as_str() {
        "draining" | "retired" => output::print(&format!(
            "bookie {} is empty; `tidemill admin bookie retire {id}` retires it for good\n",
            name(&now)
        )),
        other => Err(CliError::new(
            format!("drain bookie {}", name(&now)),
            format!("it is {other} now: somebody else changed its state"),
            tidemill_types::ErrorCode::WrongState,
        )),
    }
}

fn name(b: &v1::BookieNeeds) -> String {
    b.member.as_ref().map(|m| m.name.clone()).unwrap_or_default()
}

fn state(b: &v1::BookieNeeds) -> String {
    b.member.as_ref().map(|m| m.state.clone()).unwrap_or_default()
}

fn line(b: &v1::BookieNeeds) -> String {
    let first = b.needs.first().map_or_else(String::new, |n| {
        format!("; first: ledger {} of {}/{}, {}", n.ledger, n.topic, n.partition, n.why)
    });
    format!(
        "bookie {} is {}: {} ledgers with {} name it{first}\n",
        name(b),
        state(b),
        b.ledgers,
        bytesize::ByteSize(b.bytes)
    )
}

/// For people: state, counts and what is in the way.
pub(super) fn text(b: &v1::BookieNeeds) -> String {
    let m = b.member.clone().unwrap_or_default();
    let rows = b
        .needs
        .iter()
        .map(|n| vec![n.ledger.to_string(), format!("{}/{}", n.topic, n.partition), n.why.clone()])
        .collect();
    format!(
        "name: {}\nid: {}\nstate: {}\nlive: {}\nnamed: {}\nledgers: {} ({} at most)\n\n{}",
        m.name,
        m.id,
        m.state,
        if m.live { "yes" } else { "no" },
        b.named,
        b.ledgers,
        bytesize::ByteSize(b.bytes),
        table::columns(&["LEDGER", "PARTITION", "WHY"], rows)
    )
}

fn json_of(b: &v1::BookieNeeds) -> serde_json::Value {
    let m = b.member.clone().unwrap_or_default();
    json!({
        "name": m.name, "id": m.id, "state": m.state, "live": m.live, "address": m.address, "zone": m.zone,
        "named": b.named, "ledgers": b.ledgers, "bytes": b.bytes,
        "needs": b.needs.iter().map(|n| json!({
            "ledger": n.ledger, "topic": n.topic, "partition": n.partition, "why": n.why,
        })).collect::<Vec<_>>(),
    })
}
