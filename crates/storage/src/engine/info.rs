//! What the engine tells about itself.

use std::sync::atomic::Ordering;

use tidemill_types::{ClusterId, EntryId, Incarnation, MemberId};
use uuid::Uuid;

use crate::{
    ledger::Ledger,
    report::{EngineInfo, LaneInfo, LedgerSummary},
    shared::Shared,
};

/// `None` for a ledger that was collected just now.
pub(super) fn summary(ledger: &Ledger) -> Option<LedgerSummary> {
    let state = ledger.state.lock();
    (!state.dead).then(|| LedgerSummary {
        ledger: ledger.id,
        fenced: state.fence_durable,
        lac: state.lac(),
        last_entry: EntryId(state.last),
        bytes: state.bytes(),
    })
}

pub(super) fn info(shared: &Shared) -> EngineInfo {
    let cookie = shared.cookies.lock().first().cloned();
    let lanes = shared
        .lanes
        .iter()
        .map(|lane| {
            let segments = lane.segments.read();
            LaneInfo {
                path: lane.dir.clone(),
                position: *lane.position.lock(),
                segments: segments.len(),
                segment_bytes: segments.values().map(|s| s.len.load(Ordering::Relaxed)).sum(),
                live_bytes: segments.values().map(|s| s.live()).sum(),
                space: lane.space_state(),
                free_bytes: lane.free_bytes.load(Ordering::Relaxed),
                total_bytes: lane.total_bytes.load(Ordering::Relaxed),
                reserve_bytes: lane.reserve_bytes.load(Ordering::Relaxed),
            }
        })
        .collect();
    EngineInfo {
        bookie: cookie.as_ref().map_or(MemberId(Uuid::nil()), |c| c.bookie),
        cluster: cookie.as_ref().map_or(ClusterId(Uuid::nil()), |c| c.cluster),
        incarnation: cookie.and_then(|c| c.incarnation).unwrap_or(Incarnation(0)),
        limbo: shared.limbo(),
        read_only: shared.read_only.load(Ordering::Relaxed),
        mark: shared.ledgers.mark(),
        ledgers: shared.ledgers.len(),
        lanes,
    }
}
