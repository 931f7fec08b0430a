//! Room on the disks.

use tidemill_storage::{EngineInfo, SpaceState};

/// Plain adds are refused: by wish, or because no lane has room for them. One full lane of several refuses its own ledgers
/// only, but a new ledger may hash to it, so the bookie as a whole says read-only.
pub(crate) fn is_read_only(info: &EngineInfo) -> bool {
    info.read_only || info.lanes.iter().any(|l| l.space != SpaceState::ReadWrite)
}

/// Free bytes of the fullest lane times their number: what ledgers that are spread evenly can still get.
pub(crate) fn free_bytes(info: &EngineInfo) -> u64 {
    let least = info.lanes.iter().map(|l| l.free_bytes).min().unwrap_or(0);
    least.saturating_mul(info.lanes.len() as u64)
}

/// Bytes of all lanes' file systems.
pub(crate) fn total_bytes(info: &EngineInfo) -> u64 {
    info.lanes.iter().map(|l| l.total_bytes).sum()
}
