//! The metadata record of a partition (ledger protocol 1.8).

use serde::{Deserialize, Serialize};

use crate::{Epoch, LedgerId, MemberId, Offset, PartitionId, SessionId, Version};

/// One ledger of a partition's chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChainElement {
    /// The ledger.
    pub ledger: LedgerId,
    /// Offset of its first record.
    pub base_offset: Offset,
}

/// The record of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionRecord {
    /// Its id.
    pub id: PartitionId,
    /// Goes up with every change (watch order; commands are conditional on the epoch, not on this).
    pub version: Version,
    /// The broker that holds the epoch, with the session named in its `Acquire`.
    pub owner: Option<Owner>,
    /// Epoch of the last `Acquire`; 0 before the first.
    pub epoch: Epoch,
    /// The broker that the planner wants to own it; it acquires once the old owner released it or its session expired.
    pub assigned: Option<MemberId>,
    /// Ledgers in order; at most the last is not CLOSED.
    pub chain: Vec<ChainElement>,
    /// Records below are gone.
    pub log_start: Offset,
}

/// The holder of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The broker.
    pub broker: MemberId,
    /// The session named in the `Acquire` of this epoch.
    pub session: SessionId,
}
