//! What stands beside a topic's record: whose it is, and whether it is a tombstone.

use serde::{Deserialize, Serialize};

use crate::{TopicId, Version};

/// Who a topic belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Identity of the object that claims: the uid of a custom resource, or a name that the caller keeps the same.
    pub uid: String,
    /// For people, such as `Topic default/orders`. The same owner may undelete what it deleted.
    pub owner: String,
}

/// A deleted topic whose data is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Quorum time of the deletion, ms since the Unix epoch.
    pub deleted_ms: i64,
    /// Quorum time from which on it may be purged.
    pub purge_at_ms: i64,
    /// Whose claim it had.
    pub former: Option<Claim>,
}

/// Claim and tombstone of a topic. A topic without either has no such record, or an empty one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicControl {
    /// The topic.
    pub topic: TopicId,
    /// Goes up with every change of this record.
    pub version: Version,
    /// Whose it is.
    pub claim: Option<Claim>,
    /// Deleted, not yet purged.
    pub tombstone: Option<Tombstone>,
}

/// The operator that holds the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEpoch {
    /// 0 = never acquired.
    pub epoch: u64,
    /// Who acquired it, for people.
    pub holder: String,
}
