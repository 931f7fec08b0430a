//! The records of the offsets topic. Bytes in `docs/formats/offsets.md`, pinned by golden bytes.
//!
//! The last record of a key counts, one without a value deletes it. A replay therefore needs no order between keys, and the
//! log may be cut in front of any place behind which every live key is written again.

mod codec;
pub(crate) mod snapshot;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemill_types::{GroupName, PartitionId, TopicId};

use crate::{Committed, Declaration, GroupState, Member, MemberId};

pub use codec::{MAX_KEY_LEN, MAX_VALUE_LEN, RECORD_VERSION, RecordError, decode, encode};

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    /// The group itself. Without a value: the group and all of it is gone.
    Group(GroupName),
    /// A member.
    Member(GroupName, String),
    /// A committed offset.
    Offset(GroupName, PartitionId),
    /// What was declared of the group.
    Declared(GroupName),
}

/// What is known of it. The same order as [`Key`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    /// Of a group.
    Group(GroupValue),
    /// Of a member.
    Member(Box<Member>),
    /// Of a committed offset.
    Offset(Committed),
    /// A declaration.
    Declared(Declaration),
}

/// A group without its members and offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupValue {
    /// Its epoch.
    pub epoch: u64,
    /// Since when it has no members, ms since the Unix epoch.
    pub empty_since_ms: Option<i64>,
    /// Topics with the partition counts that the targets were made from.
    pub topics: BTreeMap<TopicId, u32>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is about.
    pub key: Key,
    /// What is known of it from here on; `None`: nothing.
    pub value: Option<Value>,
}

impl Key {
    /// The group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        match self {
            Self::Group(g) | Self::Member(g, _) | Self::Offset(g, _) | Self::Declared(g) => g,
        }
    }
}

impl Record {
    pub(crate) fn group(name: &GroupName, g: &GroupState) -> Self {
        let value = GroupValue { epoch: g.epoch, empty_since_ms: g.empty_since_ms, topics: g.topics.clone() };
        Self { key: Key::Group(name.clone()), value: Some(Value::Group(value)) }
    }

    pub(crate) fn gone(name: &GroupName) -> Self {
        Self { key: Key::Group(name.clone()), value: None }
    }

    pub(crate) fn member(name: &GroupName, id: &MemberId, m: Option<&Member>) -> Self {
        let value = m.map(|m| Value::Member(Box::new(m.clone())));
        Self { key: Key::Member(name.clone(), id.to_string()), value }
    }

    pub(crate) fn offset(name: &GroupName, p: PartitionId, c: Option<&Committed>) -> Self {
        Self { key: Key::Offset(name.clone(), p), value: c.map(|c| Value::Offset(c.clone())) }
    }

    /// An empty declaration is no record.
    pub(crate) fn declared(name: &GroupName, d: &Declaration) -> Self {
        let value = (*d != Declaration::default()).then(|| Value::Declared(d.clone()));
        Self { key: Key::Declared(name.clone()), value }
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        let value = match &self.value {
            None => 0,
            Some(Value::Group(g)) => 32 + g.topics.len() * 8,
            Some(Value::Member(m)) => {
                let names: usize = m.subscription.topics.iter().map(|t| t.as_str().len() + 2).sum();
                let parts = m.target.len() + m.assigned.len() + m.revoking.len();
                128 + names
                    + m.client.len()
                    + m.subscription.pattern.as_ref().map_or(0, String::len)
                    + parts * 12
            }
            Some(Value::Offset(c)) => 40 + c.metadata.len(),
            Some(Value::Declared(d)) => {
                let names: usize = d.topics.iter().map(|t| t.as_str().len() + 2).sum();
                let resets: usize = d.resets.iter().map(|r| r.id.len() + r.to.len() + 12).sum();
                8 + names + resets + d.claim.as_ref().map_or(0, |c| c.uid.len() + c.owner.len() + 4)
            }
        };
        let key = match &self.key {
            Key::Member(_, id) => id.len(),
            _ => 12,
        };
        48 + self.key.group().as_str().len() + key + value
    }
}
