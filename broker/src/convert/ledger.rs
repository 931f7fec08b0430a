//! Ledgers for people.

use std::collections::HashMap;

use tidemill_proto::v1;
use tidemill_types::{LedgerRecord, LedgerState, MemberId, Offset};

/// A ledger as the admin API tells it. `base`: its base offset in the chain, if it stands in one.
pub(crate) fn to_proto(
    r: &LedgerRecord,
    topic: &str,
    base: Option<Offset>,
    names: &HashMap<MemberId, String>,
) -> v1::Ledger {
    v1::Ledger {
        id: r.id.0,
        topic: topic.to_owned(),
        partition: r.partition.index,
        epoch: r.epoch.0,
        state: state(r.state).to_owned(),
        ack_quorum: r.ack_quorum.into(),
        last_entry: r.last_entry.map(|e| e.0),
        length: r.length,
        records: r.records,
        fragments: r
            .fragments
            .iter()
            .map(|f| v1::LedgerFragment {
                first_entry: f.first_entry.0,
                ensemble: f.ensemble.iter().map(ToString::to_string).collect(),
                names: f.ensemble.iter().map(|b| names.get(b).cloned().unwrap_or_default()).collect(),
                under: f.under.iter().flat_map(|u| [u.first.0, u.last.0]).collect(),
            })
            .collect(),
        unchecked: r.unchecked,
        created_ms: r.created_ms,
        version: r.version.0,
        base_offset: base.map_or(-1, |b| b.0),
        repair: r.repair.as_ref().map(|p| v1::Repair {
            target: p.target.to_string(),
            worker: p.worker.to_string(),
            since_ms: p.since_ms,
        }),
    }
}

/// Whether ranges lack copies or nobody has looked yet.
pub(crate) fn under_replicated(r: &LedgerRecord) -> bool {
    r.unchecked || r.fragments.iter().any(|f| !f.under.is_empty())
}

fn state(s: LedgerState) -> &'static str {
    match s {
        LedgerState::Open => "open",
        LedgerState::InRecovery => "in_recovery",
        LedgerState::Closed => "closed",
    }
}
