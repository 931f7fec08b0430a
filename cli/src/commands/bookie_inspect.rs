//! `tidemill bookie inspect`: the files of a stopped bookie.

use std::{path::PathBuf, sync::Arc};

use serde_json::json;
use tidemill_runtime::io::RealDisk;
use tidemill_storage::{Inspection, OpenError, inspect};
use tidemill_types::ErrorCode;

use super::{Output, table};
use crate::error::CliError;

/// Reads and prints.
pub(crate) fn run(lanes: &[PathBuf], check: bool, form: Output) -> Result<(), CliError> {
    let look = if check { tidemill_storage::check } else { inspect };
    let found = look(Arc::new(RealDisk), lanes).map_err(|e| refused(&e))?;
    table::object(form, &found.boot.bookie.to_string(), &text(&found), &json_of(&found))
}

fn refused(e: &OpenError) -> CliError {
    let code = match e {
        OpenError::Locked { .. } => ErrorCode::Conflict,
        OpenError::BadFile { .. } => ErrorCode::Corrupt,
        _ => ErrorCode::InvalidArgument,
    };
    CliError::new("bookie inspect", e.to_string(), code)
}

fn text(i: &Inspection) -> String {
    let b = &i.boot;
    let or_none = |s: Option<String>| s.unwrap_or_else(|| "none".to_owned());
    let mut out = format!(
        "bookie: {}\ncluster: {}\nincarnation: {}\nlimbo: {}\ntorn groups dropped: {}\n",
        b.bookie,
        or_none(b.cluster.map(|c| c.to_string())),
        or_none(b.incarnation.map(|c| format!("{c}"))),
        b.limbo,
        b.torn_groups,
    );
    if b.losses.is_empty() && i.segments.iter().all(|s| s.damage.is_none() && s.damaged.is_empty()) {
        out.push_str("damage: none\n");
    }
    for loss in &b.losses {
        out.push_str(&format!("damage: {loss}\n"));
    }
    for s in &i.segments {
        if let Some(part) = &s.damage {
            out.push_str(&format!("damage: {}: its {part} is damaged\n", s.path.display()));
        }
        for (ledger, entry) in &s.damaged {
            let path = s.path.display();
            out.push_str(&format!("damage: {path}: entry {entry} of ledger {ledger} fails its check\n"));
        }
    }
    let segments = i
        .segments
        .iter()
        .map(|s| {
            vec![
                s.path.display().to_string(),
                if s.sealed { "sealed" } else { "open" }.to_owned(),
                format!("{}-{}", s.groups.0, s.groups.1),
                s.entries.to_string(),
                s.bytes.to_string(),
                s.live_bytes.to_string(),
            ]
        })
        .collect();
    let ledgers = i
        .ledgers
        .iter()
        .map(|l| {
            vec![
                l.ledger.to_string(),
                l.last_entry.to_string(),
                l.lac.to_string(),
                if l.fenced { "fenced" } else { "" }.to_owned(),
                l.bytes.to_string(),
            ]
        })
        .collect();
    out.push('\n');
    out.push_str(&table::columns(&["SEGMENT", "STATE", "GROUPS", "ENTRIES", "BYTES", "LIVE"], segments));
    out.push('\n');
    out.push_str(&table::columns(&["LEDGER", "LAST ENTRY", "LAC", "STATE", "BYTES"], ledgers));
    out
}

fn json_of(i: &Inspection) -> serde_json::Value {
    let b = &i.boot;
    json!({
        "bookie": b.bookie.to_string(),
        "cluster": b.cluster.map(|c| c.to_string()),
        "incarnation": b.incarnation.map(|c| c.0),
        "limbo": b.limbo,
        "tornGroups": b.torn_groups,
        "damage": b.losses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "segments": i.segments.iter().map(|s| json!({
            "path": s.path, "number": s.number, "sealed": s.sealed, "rewritten": s.rewritten, "bytes": s.bytes,
            "liveBytes": s.live_bytes, "firstGroup": s.groups.0, "lastGroup": s.groups.1, "entries": s.entries, "damage": s.damage,
            "damagedEntries": s.damaged.iter()
                .map(|(ledger, entry)| json!({"ledger": ledger.0, "entry": entry.0})).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "ledgers": i.ledgers.iter().map(|l| json!({
            "ledger": l.ledger.0, "lastEntry": l.last_entry.0, "lac": l.lac.0, "fenced": l.fenced, "bytes": l.bytes,
        })).collect::<Vec<_>>(),
    })
}
