//! Linearizable reads.

use serde::{Deserialize, Serialize};

use crate::{
    BookieId, ClusterId, GroupName, GroupRecord, LedgerId, LedgerRecord, Member, PartitionId,
    PartitionRecord, Revision, TopicId, TopicName, TopicRecord,
};

/// A question. Lists come in pages of at most `limit` (1..=10 000) elements after the named one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// Ids, time, counters.
    Cluster,
    /// All members.
    Members,
    /// A topic by name.
    TopicByName(TopicName),
    /// A topic by id.
    Topic(TopicId),
    /// Topics in order of id.
    Topics {
        /// After this one.
        after: Option<TopicId>,
        /// At most so many.
        limit: u32,
    },
    /// A partition with the records of its ledgers.
    Partition(PartitionId),
    /// A ledger; its absence is an answer.
    Ledger(LedgerId),
    /// Ledgers that name the bookie, in order of id (GC, boot out of limbo).
    LedgersOf {
        /// The bookie.
        bookie: BookieId,
        /// After this one.
        after: Option<LedgerId>,
        /// At most so many.
        limit: u32,
    },
    /// All ledgers in order of id.
    Ledgers {
        /// After this one.
        after: Option<LedgerId>,
        /// At most so many.
        limit: u32,
    },
    /// Everything that a watch follows, as of one revision.
    View,
    /// The configuration of a consumer group.
    Group(GroupName),
    /// Configured consumer groups in order of name.
    Groups {
        /// After this one.
        after: Option<GroupName>,
        /// At most so many.
        limit: u32,
    },
    /// Claims, tombstones, the operator epoch, dry runs.
    Control(super::ControlQuery),
    /// Ledgers with a repair under way, in order of id; answered by `Ledgers`.
    Repairs {
        /// Only those that this bookie works at.
        worker: Option<BookieId>,
        /// After this one.
        after: Option<LedgerId>,
        /// At most so many.
        limit: u32,
    },
}

/// The answer, with the revision as of which it is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// `Cluster`.
    Cluster(ClusterInfo),
    /// `Members`.
    Members(Vec<Member>),
    /// `TopicByName`, `Topic`.
    Topic(Option<TopicRecord>),
    /// `Topics`.
    Topics(Vec<TopicRecord>),
    /// `Partition`.
    Partition(Option<PartitionView>),
    /// `Ledger`.
    Ledger(Option<LedgerRecord>),
    /// `LedgersOf`, `Ledgers`, `Repairs`. Fewer than `limit` elements: the end was reached.
    Ledgers(Vec<LedgerRecord>),
    /// `View`.
    View(MetaView),
    /// `Group`.
    Group(Option<GroupRecord>),
    /// `Groups`.
    Groups(Vec<GroupRecord>),
    /// `Control`.
    Control(super::ControlAnswer),
}

/// Ids, time, counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterInfo {
    /// `None` before `Init`.
    pub cluster: Option<ClusterId>,
    /// Feature level of the state machine.
    pub feature_level: u32,
    /// Next ledger id to be handed out (R27).
    pub next_ledger: LedgerId,
    /// Quorum time, ms since the Unix epoch; 0 before the first tick.
    pub wall_ms: i64,
    /// As of this revision.
    pub revision: Revision,
    /// Number of topics, partitions, ledgers.
    pub counts: (u64, u64, u64),
}

/// A partition and its ledgers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionView {
    /// The partition.
    pub partition: PartitionRecord,
    /// One record per chain element, same order.
    pub ledgers: Vec<LedgerRecord>,
    /// Whether the owner's session is live.
    pub owner_live: bool,
}

/// All that a watch follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetaView {
    /// As of this revision.
    pub revision: Revision,
    /// The cluster.
    pub cluster: Option<ClusterId>,
    /// Quorum time, ms.
    pub wall_ms: i64,
    /// Members.
    pub members: Vec<Member>,
    /// Topics.
    pub topics: Vec<TopicRecord>,
    /// Partitions.
    pub partitions: Vec<PartitionRecord>,
    /// Configured consumer groups.
    pub groups: Vec<GroupRecord>,
}
