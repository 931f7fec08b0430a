//! Consumer groups as the quorum knows them: names and configuration. Members, assignments and committed offsets are not
//! here, they lie in the internal topic [`OFFSETS_TOPIC`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{TopicName, Version};

/// The internal topic that holds members, assignments and committed offsets of all groups.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// A valid group name: 1 to 249 printable ASCII characters without a space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupName(String);

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group name {name:?} is not valid: 1 to 249 printable ASCII characters without a space")]
pub struct InvalidGroupName {
    /// The refused name, cut at 64 characters.
    pub name: String,
}

impl GroupName {
    /// Longest name, in bytes.
    pub const MAX_LEN: usize = 249;

    /// Checks `name`.
    ///
    /// # Errors
    /// [`InvalidGroupName`] when it is empty, too long, or has a character outside the set.
    pub fn new(name: &str) -> Result<Self, InvalidGroupName> {
        if !name.is_empty() && name.len() <= Self::MAX_LEN && name.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidGroupName { name: name.chars().take(64).collect() })
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for GroupName {
    type Error = InvalidGroupName;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        Self::new(&s)
    }
}

impl From<GroupName> for String {
    fn from(n: GroupName) -> Self {
        n.0
    }
}

/// What a group delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupMode {
    /// Partitions are assigned to members, positions are committed offsets.
    #[default]
    Stream,
    /// Messages are leased and acknowledged one by one.
    Queue,
    /// The same, in order per message group.
    FifoQueue,
}

/// How partitions are shared out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assignor {
    /// Per topic: neighbouring partitions to members in order of their ids. The same index of two topics goes to one
    /// member.
    Range,
    /// All partitions as evenly as can be, counts within one.
    Uniform,
    /// As `Uniform`, and a partition stays where it is unless that is too many.
    #[default]
    CooperativeSticky,
    /// What the configuration says, by instance id; the other partitions are not assigned.
    Static,
}

/// Where a member begins in a partition without a committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartAt {
    /// At the log start.
    Earliest,
    /// Behind the last record.
    Latest,
    /// At the first record whose timestamp is at or after this, ms since the Unix epoch.
    Timestamp(i64),
}

/// What one instance gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticAssignment {
    /// The instance id of the member.
    pub instance: String,
    /// The topic.
    pub topic: TopicName,
    /// Its partitions.
    pub partitions: Vec<u32>,
}

/// Configuration of a group. `None` means: the cluster's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupConfig {
    /// What it delivers.
    pub mode: GroupMode,
    /// How partitions are shared out.
    pub assignor: Assignor,
    /// With [`Assignor::Static`]: who gets what. A partition stands in it once.
    pub static_assignment: Vec<StaticAssignment>,
    /// Where to begin without a committed offset; `None`: the member decides.
    pub start_at: Option<StartAt>,
    /// A member that is not heard for so long is removed, ms.
    pub session_ms: Option<u32>,
    /// A member that does not confirm a revocation for so long is removed, ms.
    pub rebalance_ms: Option<u32>,
    /// Committed offsets of an empty group are forgotten after, ms.
    pub offsets_retention_ms: Option<u64>,
    /// Id of the last reset that was asked for declaratively: each new id is carried out once.
    pub last_reset: Option<String>,
}

/// The record of a configured group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Its name.
    pub name: GroupName,
    /// Goes up with every change.
    pub version: Version,
    /// Configuration.
    pub config: GroupConfig,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for ok in ["a", "billing", "a.b_c-D9", "team/app:v1", &"x".repeat(249)] {
            assert!(GroupName::new(ok).is_ok(), "{ok}");
        }
        for bad in ["", "a b", "a\n", "ü", &"x".repeat(250)] {
            assert!(GroupName::new(bad).is_err(), "{bad}");
        }
    }
}
