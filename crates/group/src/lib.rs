//! Consumer groups: the coordinator of one partition of the offsets topic as a pure state machine (2.2, 2.3).
//!
//! ```text
//!  heartbeats, commits, topics, ticks ──> Coordinator ──> answer
//!                                             │     └───> members that have news
//!                                             └─────────> records: appended before the answer is given
//!  records of the log, in order ──> Coordinator::replay ──> the very same state
//! ```
//!
//! Nothing here does I/O or reads a clock. The loop around it appends what an operation returned as one entry of the
//! partition's log and holds the answer back until that is durable; when the append fails it throws the coordinator away
//! and replays the log. Two things therefore need no further proof: what a client was told survives a failover, and an
//! answer without records is given only behind a check of ownership (metadata, Sessions).
//!
//! Who owns a partition of a topic within a group is decided by three fields of each member: its *target*, what it has
//! *assigned*, and what it is *revoking*. A partition is granted only while no member has it assigned or revoking, and a
//! member takes part in an epoch only after it confirmed every revocation. A confirmation names the *revision* of the
//! assignment that it is about, so that one which was delayed on the network confirms nothing.

pub mod assignor;
mod coordinator;
mod error;
pub mod log;
mod model;
mod ops;
mod settle;
mod topics;

pub use coordinator::{Coordinator, Effects, Outcome};
pub use error::GroupError;
pub use model::{
    Assignment, Commit, Committed, Declaration, Declare, Group, GroupState, Heartbeat, Join, Leave,
    MAX_RESETS, Member, MemberId, Now, Release, Released, Reset, ResetDone, ResetOutcome, Rules, Settings,
    Subscription, Summary,
};
pub use topics::{TopicEntry, Topics};
