//! What is said to the metadata quorum: commands, replies, queries, changes.
//!
//! These types are the vocabulary between the quorum and its clients; how they are applied stands in the crate
//! `tidemill-metadata`. They are encoded with postcard; variants and fields are only ever appended, and golden bytes in
//! `tidemill-metadata` pin them.

mod change;
mod command;
mod compaction;
mod control;
mod query;
mod repair;
mod reply;

pub use change::{Change, Watched};
pub use command::{
    AcquireItem, Append, Assignment, BookieReport, BookieSpec, CloseLedger, Command, CreateLedger,
    EnsembleChange, LinkLedger, MAX_BATCH, MemberSpec, RecoveryStart, Release, Request, Roll, TakeOver,
};
pub use compaction::{Compaction, CompactionStep};
pub use control::{
    Adoption, BookieStanding, ClaimRelease, ControlAction, ControlAnswer, ControlCommand, ControlQuery,
    ControlReply, TombstoneRef, TopicApplied, TopicDeletion, TopicDone, TopicTombstoned, TopicWish,
};
pub use query::{Answer, ClusterInfo, MetaView, PartitionView, Query};
pub use repair::{FinishRepair, RepairOutcome, StartRepair};
pub use reply::{Rejection, Reply};
