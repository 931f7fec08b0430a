//! The metadata record of a ledger (ledger protocol 1.2).

use serde::{Deserialize, Serialize};

use crate::{BookieId, EntryId, Epoch, FragmentSeq, LedgerId, PartitionId, Version};

/// Where a ledger stands in its life. CLOSED is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LedgerState {
    /// One writer adds to it.
    Open,
    /// A recoverer decides its end.
    InRecovery,
    /// Its end never changes any more.
    Closed,
}

/// Inclusive range of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryRange {
    /// First entry.
    pub first: EntryId,
    /// Last entry, inclusive.
    pub last: EntryId,
}

/// A run of entries with one ensemble. An entry belongs to the last fragment whose `first_entry` is not above it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fragment {
    /// First entry of the fragment.
    pub first_entry: EntryId,
    /// Bookie uuids, E of them, in index order (R26).
    pub ensemble: Vec<BookieId>,
    /// Entries that are on fewer than Qw bookies.
    pub under: Vec<EntryRange>,
}

/// A repair under way (R23).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Repair {
    /// The bookie that gets the copies.
    pub target: BookieId,
    /// The target's limbo count when it was chosen.
    pub limbo_count: u32,
    /// Who copies.
    pub worker: BookieId,
    /// Quorum time of the start, ms since the Unix epoch.
    pub since_ms: i64,
}

/// The record of a ledger. Every change is conditional on `version` (R9).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LedgerRecord {
    /// Its id.
    pub id: LedgerId,
    /// Goes up with every change.
    pub version: Version,
    /// The partition that it was created for.
    pub partition: PartitionId,
    /// The epoch in which it was created.
    pub epoch: Epoch,
    /// Qa.
    pub ack_quorum: u8,
    /// OPEN, IN_RECOVERY, CLOSED.
    pub state: LedgerState,
    /// Set when CLOSED: the last entry, [`EntryId::NONE`] when it closed empty.
    pub last_entry: Option<EntryId>,
    /// Set when CLOSED: sum of the payload bytes of all entries.
    pub length: Option<u64>,
    /// Set when CLOSED: number of offsets that it covers, so that the next base offset can be checked. That is the number of
    /// records in its `data` entries, unless compaction wrote it: then records are missing between.
    pub records: Option<u64>,
    /// At least one.
    pub fragments: Vec<Fragment>,
    /// Number of ensemble changes so far; also goes up when a fragment's ensemble is replaced in place.
    pub fragment_seq: FragmentSeq,
    /// Nobody has looked below recovery's base yet: work for the auditor (1.6).
    pub unchecked: bool,
    /// A repair that is under way.
    pub repair: Option<Repair>,
    /// Quorum time at creation, ms since the Unix epoch.
    pub created_ms: i64,
}

impl LedgerRecord {
    /// The last fragment.
    ///
    /// `None` only for a record that breaks its own invariant (no fragment).
    #[must_use]
    pub fn last_fragment(&self) -> Option<&Fragment> {
        self.fragments.last()
    }

    /// The fragment that `entry` belongs to.
    #[must_use]
    pub fn fragment_of(&self, entry: EntryId) -> Option<&Fragment> {
        self.fragments.iter().rev().find(|f| f.first_entry <= entry)
    }

    /// Whether a fragment or the repair names this uuid.
    #[must_use]
    pub fn names(&self, bookie: BookieId) -> bool {
        self.fragments.iter().any(|f| f.ensemble.contains(&bookie))
            || self.repair.as_ref().is_some_and(|r| r.target == bookie)
    }
}
