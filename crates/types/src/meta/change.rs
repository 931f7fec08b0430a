//! What a watch delivers.

use serde::{Deserialize, Serialize};

use crate::{
    GroupName, GroupRecord, Member, MemberId, PartitionId, PartitionRecord, Revision, TopicControl, TopicId,
    TopicRecord,
};

/// One changed record; the whole new value, so that applying a change twice is harmless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// New or changed topic.
    Topic(TopicRecord),
    /// Topic gone.
    TopicRemoved(TopicId),
    /// New or changed partition.
    Partition(PartitionRecord),
    /// Partition gone.
    PartitionRemoved(PartitionId),
    /// New or changed member.
    Member(Member),
    /// Member forgotten.
    MemberRemoved(MemberId),
    /// Quorum time moved, ms.
    Time(i64),
    /// New or changed configuration of a consumer group.
    Group(GroupRecord),
    /// Configuration of a consumer group gone.
    GroupRemoved(GroupName),
    /// New or changed claim or tombstone of a topic; it goes with the topic.
    TopicControl(TopicControl),
}

/// The changes of one command: one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Revision of the command.
    pub revision: Revision,
    /// Its changes in order.
    pub changes: Vec<Change>,
}
