//! Topics: names, configuration, records.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Cleanup, Replication, TopicId, Version};

/// A valid topic name: 1 to 249 characters of `[a-zA-Z0-9._-]`, not `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicName(String);

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "topic name {name:?} is not valid: 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', and not '.' or '..'"
)]
pub struct InvalidTopicName {
    /// The refused name, cut at 64 characters.
    pub name: String,
}

impl TopicName {
    /// Longest name, in bytes.
    pub const MAX_LEN: usize = 249;

    /// Checks `name`.
    ///
    /// # Errors
    /// [`InvalidTopicName`] when it is empty, too long, `.`/`..`, or has a character outside the set.
    pub fn new(name: &str) -> Result<Self, InvalidTopicName> {
        let ok = !name.is_empty()
            && name.len() <= Self::MAX_LEN
            && name != "."
            && name != ".."
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if ok {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidTopicName { name: name.chars().take(64).collect() })
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Names that begin with two underscores belong to the system.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.0.starts_with("__")
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TopicName {
    type Error = InvalidTopicName;
    fn try_from(s: String) -> Result<Self, Self::Error> {
        Self::new(&s)
    }
}

impl From<TopicName> for String {
    fn from(n: TopicName) -> Self {
        n.0
    }
}

/// Effective configuration of a topic. `None` means: the cluster's default. Its bytes: `cleanup.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicConfig {
    /// Copies and ack quorum.
    pub replication: Replication,
    /// Retention time, ms; `None` = default (7 d).
    pub retention_ms: Option<i64>,
    /// Retention size per partition, bytes; `None` = unlimited.
    pub retention_bytes: Option<u64>,
    /// Largest batch, bytes; `None` = default (1 MiB).
    pub max_message_bytes: Option<u32>,
    /// Roll a ledger at this size, bytes; `None` = default (1 GiB).
    pub roll_bytes: Option<u64>,
    /// Roll a non-empty ledger at this age, ms; `None` = default (24 h).
    pub roll_ms: Option<i64>,
    /// What happens to old records.
    pub cleanup: Cleanup,
}

/// The record of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicRecord {
    /// Its id.
    pub id: TopicId,
    /// Goes up with every change.
    pub version: Version,
    /// Its name; unique among live topics.
    pub name: TopicName,
    /// Number of partitions; grows only.
    pub partitions: u32,
    /// Configuration.
    pub config: TopicConfig,
    /// Quorum time at creation, ms since the Unix epoch.
    pub created_ms: i64,
    /// Set while it is being deleted: partitions are gone for clients, ledgers are removed.
    pub deleting: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for ok in ["a", "orders", "a.b_c-D9", &"x".repeat(249)] {
            assert!(TopicName::new(ok).is_ok(), "{ok}");
        }
        for bad in ["", ".", "..", "a b", "a/b", "ü", &"x".repeat(250), "a\0"] {
            assert!(TopicName::new(bad).is_err(), "{bad}");
        }
    }
}
