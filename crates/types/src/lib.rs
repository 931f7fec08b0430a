//! The words of Tidemill as types: ids and positions, quorum arithmetic, the records that the metadata quorum keeps,
//! the format of a ledger entry, and the error codes that reach a user.
//!
//! Nothing here does I/O, reads a clock or knows a transport.

pub mod claim;
pub mod cleanup;
pub mod entry;
pub mod error;
pub mod group;
pub mod ids;
pub mod ledger;
pub mod member;
pub mod meta;
pub mod partition;
pub mod quorum;
pub mod topic;

pub use claim::{Claim, OperatorEpoch, Tombstone, TopicControl};
pub use cleanup::{Cleanup, CleanupPolicy};
pub use entry::{Entry, EntryError, EntryHeader};
pub use error::{ErrorCode, StatusClass};
pub use group::{
    Assignor, GroupConfig, GroupMode, GroupName, GroupRecord, OFFSETS_TOPIC, StartAt, StaticAssignment,
};
pub use ids::{
    BookieId, ClusterId, EntryId, Epoch, FragmentSeq, Incarnation, LedgerId, MemberId, Offset, PartitionId,
    RequestId, Revision, SessionId, TopicId, Version,
};
pub use ledger::{EntryRange, Fragment, LedgerRecord, LedgerState, Repair};
pub use member::{BookieState, Endpoint, LanePosition, Member, MemberRole};
pub use partition::{ChainElement, Owner, PartitionRecord};
pub use quorum::{Coverage, Replication};
pub use topic::{TopicConfig, TopicName, TopicRecord};
