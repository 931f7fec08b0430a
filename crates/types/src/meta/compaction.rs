//! The command of key compaction (2.7).

use serde::{Deserialize, Serialize};

use crate::{Epoch, LedgerId, PartitionId};

/// One step of key compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The partition.
    pub partition: PartitionId,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// What to do.
    pub step: CompactionStep,
}

/// See [`Compaction`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompactionStep {
    /// `new` takes the place of `old`, with which the chain must begin; the records of `old` go (R20). The last ledger of the
    /// chain is never among them.
    Swap {
        /// CLOSED ledgers, in the order of the chain.
        old: Vec<LedgerId>,
        /// CLOSED ledgers of this epoch that stand in no chain and cover the same offsets.
        new: Vec<LedgerId>,
    },
    /// Removes the records of ledgers of this epoch that stand in no chain: what a compaction that did not end left. Ledgers
    /// that do not exist are passed over.
    Discard {
        /// The ledgers.
        ledgers: Vec<LedgerId>,
    },
}
