//! What happens to old records of a topic, and the bytes of a topic's configuration.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, SeqAccess, Visitor},
    ser::SerializeStruct,
};

use crate::{Replication, TopicConfig};

/// What happens to old records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CleanupPolicy {
    /// They go by time and size.
    #[default]
    Delete,
    /// The last record of each key stays, for ever.
    Compact,
    /// Both.
    CompactAndDelete,
}

impl CleanupPolicy {
    /// Whether the last record of a key replaces those before it.
    #[must_use]
    pub fn compacts(self) -> bool {
        self != Self::Delete
    }

    /// Whether records go by time, size, or order.
    #[must_use]
    pub fn deletes(self) -> bool {
        self != Self::Compact
    }
}

/// Cleaning of a topic. `None` means: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cleanup {
    /// What happens to old records.
    pub policy: CleanupPolicy,
    /// Compaction begins when so many thousandths of the closed ledgers' bytes were not compacted yet; `None` = 500.
    pub min_dirty_permille: Option<u16>,
    /// Tombstones live so long after they were first compacted, ms; `None` = 24 h.
    pub delete_horizon_ms: Option<u64>,
}

/// Set in the first byte when the fields of [`Cleanup`] follow the others: a configuration without them has the bytes that
/// it had before they existed.
const WITH_CLEANUP: u8 = 0x80;
const FIELDS: [&str; 8] = [
    "copies",
    "ack_quorum",
    "retention_ms",
    "retention_bytes",
    "max_message_bytes",
    "roll_bytes",
    "roll_ms",
    "cleanup",
];

impl Serialize for TopicConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let more = self.cleanup != Cleanup::default();
        if self.replication.copies & WITH_CLEANUP != 0 {
            return Err(serde::ser::Error::custom("copies is above 127"));
        }
        let mut s = serializer.serialize_struct("TopicConfig", FIELDS.len() - usize::from(!more))?;
        let flag = if more { WITH_CLEANUP } else { 0 };
        s.serialize_field(FIELDS[0], &(self.replication.copies | flag))?;
        s.serialize_field(FIELDS[1], &self.replication.ack_quorum)?;
        s.serialize_field(FIELDS[2], &self.retention_ms)?;
        s.serialize_field(FIELDS[3], &self.retention_bytes)?;
        s.serialize_field(FIELDS[4], &self.max_message_bytes)?;
        s.serialize_field(FIELDS[5], &self.roll_bytes)?;
        s.serialize_field(FIELDS[6], &self.roll_ms)?;
        if more {
            s.serialize_field(FIELDS[7], &self.cleanup)?;
        }
        s.end()
    }
}

impl<'de> Deserialize<'de> for TopicConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("TopicConfig", &FIELDS, Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = TopicConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a topic's configuration in order")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TopicConfig, A::Error> {
        let (copies, ack_quorum): (u8, u8) = (next(&mut seq, 0)?, next(&mut seq, 1)?);
        let mut config = TopicConfig {
            replication: Replication { copies: copies & !WITH_CLEANUP, ack_quorum },
            retention_ms: next(&mut seq, 2)?,
            retention_bytes: next(&mut seq, 3)?,
            max_message_bytes: next(&mut seq, 4)?,
            roll_bytes: next(&mut seq, 5)?,
            roll_ms: next(&mut seq, 6)?,
            cleanup: Cleanup::default(),
        };
        if copies & WITH_CLEANUP != 0 {
            config.cleanup = next(&mut seq, 7)?;
            if config.cleanup == Cleanup::default() {
                return Err(de::Error::custom("fields of the cleanup that need not be there"));
            }
        }
        Ok(config)
    }
}

fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(seq: &mut A, at: usize) -> Result<T, A::Error> {
    seq.next_element()?.ok_or_else(|| de::Error::invalid_length(at, &"a field more"))
}
