//! What can be wrong.

use std::fmt;

use super::Id;

/// A contradiction, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where.
    pub partition: u32,
    /// `None`: it is nowhere.
    pub offset: Option<i64>,
    /// What is wrong.
    pub fault: Fault,
}

/// Which rule is broken; the module's page has the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Acknowledged and not there.
    Lost(Id),
    /// There once more; first at `first_partition`, `first_offset`.
    Duplicate {
        /// The record.
        id: Id,
        /// Where it is first.
        first_partition: u32,
        /// Its offset there.
        first_offset: i64,
    },
    /// There although it is surely not written.
    Unwritten(Id),
    /// Behind a later record of the same producer.
    Reordered {
        /// The earlier record.
        id: Id,
        /// The later one.
        behind: Id,
        /// Its offset.
        behind_offset: i64,
    },
    /// Behind a record that was sent only after this one was acknowledged.
    Inverted {
        /// The earlier record.
        id: Id,
        /// The later one.
        behind: Id,
        /// Its offset.
        behind_offset: i64,
    },
    /// Acknowledged at another place (or sent to another partition, with offset `None`).
    Elsewhere {
        /// The record.
        id: Id,
        /// Where it was acknowledged or sent to.
        partition: u32,
        /// The acknowledged offset.
        offset: Option<i64>,
    },
    /// Never sent; with its id when its bytes name one.
    Phantom(Option<Id>),
    /// The bytes are not those that were sent.
    Damaged(Id),
    /// The two reads give other bytes.
    Differs,
    /// Only one of the two reads has it: the live one or the last one.
    Skipped {
        /// Whether the live read passed over it.
        by_live: bool,
    },
    /// It came behind this offset in one read.
    Unordered {
        /// The larger offset.
        behind: i64,
        /// Whether in the live read.
        live: bool,
    },
    /// Lost or unreadable by the system's own account up to here (exclusive).
    Gap {
        /// Its end, exclusive.
        to: i64,
    },
    /// A read came no further although the partition goes on to here (exclusive).
    Stuck {
        /// The partition's end.
        to: i64,
        /// Whether the live read.
        live: bool,
    },
}

impl Fault {
    /// Stable name for machines.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lost(_) => "lost",
            Self::Duplicate { .. } => "duplicate",
            Self::Unwritten(_) => "unwritten",
            Self::Reordered { .. } => "reordered",
            Self::Inverted { .. } => "inverted",
            Self::Elsewhere { .. } => "elsewhere",
            Self::Phantom(_) => "phantom",
            Self::Damaged(_) => "damaged",
            Self::Differs => "differs",
            Self::Skipped { .. } => "skipped",
            Self::Unordered { .. } => "unordered",
            Self::Gap { .. } => "gap",
            Self::Stuck { .. } => "stuck",
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of producer {}", self.sequence, self.producer)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reader = |live: bool| if live { "the read while writing" } else { "the last read" };
        match self {
            Self::Lost(id) => write!(f, "{id} was acknowledged and is not there"),
            Self::Duplicate { id, first_partition, first_offset } => {
                write!(f, "{id} is there twice, first at {first_partition}@{first_offset}")
            }
            Self::Unwritten(id) => write!(f, "{id} is there although it was reported as not written"),
            Self::Reordered { id, behind, behind_offset } => {
                write!(f, "{id} lies behind the later {behind} at offset {behind_offset}")
            }
            Self::Inverted { id, behind, behind_offset } => {
                write!(f, "{id} was acknowledged before {behind} at offset {behind_offset} was sent")
            }
            Self::Elsewhere { id, partition, offset: Some(offset) } => {
                write!(f, "{id} was acknowledged at {partition}@{offset}")
            }
            Self::Elsewhere { id, partition, offset: None } => {
                write!(f, "{id} was sent to partition {partition}")
            }
            Self::Phantom(Some(id)) => write!(f, "{id} was never sent"),
            Self::Phantom(None) => write!(f, "no producer sent this record"),
            Self::Damaged(id) => write!(f, "the bytes of {id} are not those that were sent"),
            Self::Differs => write!(f, "the two reads gave different bytes"),
            Self::Skipped { by_live } => {
                write!(f, "{} passed over it, {} has it", reader(*by_live), reader(!by_live))
            }
            Self::Unordered { behind, live } => {
                write!(f, "{} gave it after offset {behind}", reader(*live))
            }
            Self::Stuck { to, live } => {
                write!(
                    f,
                    "{} came no further; the partition goes on to {}",
                    reader(*live),
                    to.saturating_sub(1)
                )
            }
            Self::Gap { to } => {
                write!(f, "offsets up to {} are lost or cannot be read", to.saturating_sub(1))
            }
        }
    }
}
