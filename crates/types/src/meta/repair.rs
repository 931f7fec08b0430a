//! The commands of a repair (R23).

use serde::{Deserialize, Serialize};

use crate::{BookieId, EntryId, LedgerId, Version};

/// Start of a repair (R23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRepair {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its version.
    pub version: Version,
    /// The bookie that gets the copies: a member of a fragment, or any other that is `rw`.
    pub target: BookieId,
    /// The target's limbo count at the choice.
    pub limbo_count: u32,
    /// Who copies.
    pub worker: BookieId,
}

/// End of a repair (R23).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishRepair {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its version.
    pub version: Version,
    /// The target of the repair that ends.
    pub target: BookieId,
    /// What was reached.
    pub outcome: RepairOutcome,
}

/// What a repair reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RepairOutcome {
    /// The target has every entry of these fragments and takes `from`'s place in them.
    Replaced {
        /// The member that leaves.
        from: BookieId,
        /// First entries of the fragments.
        fragments: Vec<EntryId>,
    },
    /// The target has every entry of these fragments of a CLOSED ledger and joins them as one more copy.
    Grown {
        /// First entries of the fragments.
        fragments: Vec<EntryId>,
    },
    /// The target was a member and has been filled up; what is `under` stays listed until `MarkChecked`.
    Filled,
    /// Given up: nothing is known of the copies.
    Abandoned,
}
