//! What the engine tells about itself.

use std::path::PathBuf;

use tidemill_types::{BookieId, ClusterId, EntryId, Incarnation, LanePosition, LedgerId, MemberId};

/// One finding that says "data may be gone" (R15, R16, R19): the bookie must go into limbo.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The cookies name a lane that is not there.
    #[error("lane {lane} is missing")]
    LaneMissing {
        /// Its uuid.
        lane: MemberId,
    },
    /// A lane's cookie is of an older boot than the others'.
    #[error("{path} is of an older boot than the other lanes", path = path.display())]
    LaneFromOtherBoot {
        /// The lane folder.
        path: PathBuf,
    },
    /// A lane of a bookie that has served has no control file.
    #[error("{path} has no control file", path = path.display())]
    ControlMissing {
        /// The lane folder.
        path: PathBuf,
    },
    /// The control file names a segment that is not there.
    #[error("segment {path} is missing", path = path.display())]
    SegmentMissing {
        /// The file.
        path: PathBuf,
    },
    /// A segment with groups that the control file does not name.
    #[error("segment {path} is not listed but holds data", path = path.display())]
    SegmentUnlisted {
        /// The file.
        path: PathBuf,
    },
    /// A bad group with a valid later one, or fewer groups than were synced.
    #[error("segment {path} is damaged: {what}", path = path.display())]
    SegmentDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A ledger on two lanes.
    #[error("ledger {ledger} lies on two lanes")]
    LedgerOnTwoLanes {
        /// The ledger.
        ledger: LedgerId,
    },
}

/// What a scan at boot found.
#[derive(Clone, Debug)]
pub struct BootReport {
    /// True when all lanes were empty: the bookie has no identity yet but the one drawn just now.
    pub fresh: bool,
    /// The bookie's uuid.
    pub bookie: BookieId,
    /// The cluster in the cookies; `None` when fresh.
    pub cluster: Option<ClusterId>,
    /// Incarnation of the last boot that got to the end of R16's third step.
    pub incarnation: Option<Incarnation>,
    /// Incarnation that a boot announced and did not confirm.
    pub pending: Option<Incarnation>,
    /// The durable limbo flag.
    pub limbo: bool,
    /// Findings that ask for limbo.
    pub losses: Vec<Loss>,
    /// Recovered position of each lane, to be compared with the quorum's.
    pub positions: Vec<LanePosition>,
    /// Ledgers held.
    pub ledgers: usize,
    /// Segments that were scanned (the others were opened by their footers).
    pub scanned_segments: usize,
    /// Torn groups that were dropped.
    pub torn_groups: usize,
}

impl BootReport {
    /// Whether something may be gone: the bookie must boot into limbo.
    #[must_use]
    pub fn found_loss(&self) -> bool {
        !self.losses.is_empty()
    }

    /// R16: whether the cookies belong to what the quorum has for this bookie: its incarnation, or the one that it announced when the
    /// process died between the third and the fourth step. Anything else is an older copy of the disks.
    #[must_use]
    pub fn agrees_with(&self, confirmed: Incarnation, announced: Option<Incarnation>) -> bool {
        self.incarnation == Some(confirmed) || (self.incarnation.is_some() && self.incarnation == announced)
    }
}

/// The last step of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishBoot {
    /// Whether the bookie starts in limbo; made durable before anything is served.
    pub limbo: bool,
    /// First-touch mark: the next ledger id that the quorum would hand out (R27); `None` asks for every unknown ledger.
    pub mark: Option<LedgerId>,
}

/// Whether a lane takes adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpaceState {
    /// All.
    ReadWrite,
    /// Recovery adds and fences only.
    ReadOnly,
    /// Fences and collections only.
    Full,
}

/// One lane.
#[derive(Clone, Debug)]
pub struct LaneInfo {
    /// Its folder.
    pub path: PathBuf,
    /// Last synced group.
    pub position: LanePosition,
    /// Segments, the active one included.
    pub segments: usize,
    /// Bytes of all segments.
    pub segment_bytes: u64,
    /// Bytes of records that are live.
    pub live_bytes: u64,
    /// What it takes.
    pub space: SpaceState,
    /// Free bytes of its file system, as last looked at.
    pub free_bytes: u64,
    /// Size of its file system.
    pub total_bytes: u64,
    /// Bytes kept for fences, collections and recovery adds on a full disk.
    pub reserve_bytes: u64,
}

/// The engine as a whole.
#[derive(Clone, Debug)]
pub struct EngineInfo {
    /// The bookie.
    pub bookie: BookieId,
    /// The cluster.
    pub cluster: ClusterId,
    /// This boot.
    pub incarnation: Incarnation,
    /// Durable limbo flag.
    pub limbo: bool,
    /// Set read-only by hand.
    pub read_only: bool,
    /// First-touch mark.
    pub mark: Option<LedgerId>,
    /// Ledgers held.
    pub ledgers: usize,
    /// The lanes.
    pub lanes: Vec<LaneInfo>,
}

/// One ledger in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerSummary {
    /// Its id.
    pub ledger: LedgerId,
    /// Whether it is fenced, durably.
    pub fenced: bool,
    /// Highest LAC known.
    pub lac: EntryId,
    /// Highest entry held.
    pub last_entry: EntryId,
    /// Bytes of its entries on disk.
    pub bytes: u64,
}
