//! Newtypes for every id and position.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(v: $inner) -> Self {
                Self(v)
            }
        }
    };
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(s).map(Self)
            }
        }
    };
}

uuid_id!(
    /// Identity of a cluster, drawn once at bootstrap; stands in the quorum, in every cookie and in every stream's opening.
    ClusterId
);
uuid_id!(
    /// Identity of a process's volume (meta, bookie) or of a broker's configured name; survives restarts.
    MemberId
);

/// A bookie's uuid. Fragments name bookies by it, never by address (R26).
pub type BookieId = MemberId;

number!(
    /// A ledger. Handed out by the quorum, increasing, never reused.
    LedgerId(u64)
);
number!(
    /// A topic. Handed out by the quorum, increasing, never reused.
    TopicId(u64)
);
number!(
    /// Ownership epoch of a partition; every `Acquire` raises it by one.
    Epoch(u64)
);
number!(
    /// Random per boot of a process; never persisted before the boot that drew it.
    Incarnation(u64)
);
number!(
    /// A session of a broker or bookie with the quorum. Zero is "no session".
    SessionId(u64)
);
number!(
    /// Id of one request within a session; a retry carries the same one (R9).
    RequestId(u64)
);
number!(
    /// Version of a metadata record; goes up by one with every change.
    Version(u64)
);
number!(
    /// Revision of the whole metadata state: the raft log index of the command that made it.
    Revision(u64)
);
number!(
    /// Number of ensemble changes of a ledger so far (R10).
    FragmentSeq(u32)
);
number!(
    /// Offset of a record in a partition, from 0.
    Offset(i64)
);
number!(
    /// Position of an entry in a ledger, from 0. [`EntryId::NONE`] (-1) stands for "no entry yet".
    EntryId(i64)
);

impl SessionId {
    /// No session: bootstrap and admin commands sent by the quorum itself.
    pub const NONE: Self = Self(0);
}

impl EntryId {
    /// Before the first entry.
    pub const NONE: Self = Self(-1);
    /// The first entry of a ledger.
    pub const FIRST: Self = Self(0);

    /// The entry after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The entry before this one ([`EntryId::NONE`] before the first).
    #[must_use]
    pub fn prev(self) -> Self {
        Self((self.0 - 1).max(-1))
    }
}

/// A partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId {
    /// The topic.
    pub topic: TopicId,
    /// Index within the topic, from 0.
    pub index: u32,
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.index)
    }
}
