//! Answers to commands.

use serde::{Deserialize, Serialize};

use crate::{
    Epoch, GroupRecord, LedgerId, LedgerRecord, LedgerState, PartitionRecord, SessionId, TopicRecord, Version,
};

/// What an applied command returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Nothing to say.
    Done,
    /// `OpenSession`.
    Session {
        /// The session.
        session: SessionId,
        /// The cluster.
        cluster: crate::ClusterId,
        /// The next ledger id that the quorum would hand out: a bookie's first-touch mark (R27).
        next_ledger: LedgerId,
        /// The state in which a bookie serves.
        state: crate::BookieState,
    },
    /// `BookieBoot`.
    BookieBoot {
        /// The cluster, to be written into the cookies.
        cluster: crate::ClusterId,
        /// Boot into limbo (R15, R16).
        limbo: bool,
        /// The uuid was declared lost: before it serves, the bookie marks fenced every ledger that it holds and that is
        /// not OPEN, and reads (R27) before the first plain add of this boot to any ledger (1.6).
        was_lost: bool,
    },
    /// `CreateTopic`, `AlterTopic`.
    Topic(TopicRecord),
    /// `Acquire`: per element the record after it, or why not.
    Acquired(Vec<Result<PartitionRecord, Rejection>>),
    /// `Release`, `TakeOver`, `Assign`: per element.
    Each(Vec<Result<(), Rejection>>),
    /// `CreateLedger`, `ChangeEnsemble`, `StartRecovery`, `Close`, the repair commands: the record after it.
    Ledger(LedgerRecord),
    /// `Append`, `Roll`, `AdvanceLogStart`: the partition after it.
    Partition(PartitionRecord),
    /// `AllocateProducerIds`: first id of the range.
    ProducerIds {
        /// First id.
        first: i64,
        /// How many.
        count: u32,
    },
    /// `ConfigureGroup`: the record after it.
    Group(GroupRecord),
    /// `Control`.
    Control(super::ControlReply),
    /// `StartRecoveries`: per element the record after it, or why not.
    Ledgers(Vec<Result<LedgerRecord, Rejection>>),
}

/// Why a command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// The session is not live; what earlier requests of it did is unknown to the sender.
    #[error("the session is not live")]
    SessionExpired,
    /// The request id is older than what the quorum remembers of this session: executed or not, nobody knows (R9).
    #[error("the outcome of this request is no longer known")]
    OutcomeUnknown,
    /// The cluster has no id yet.
    #[error("the cluster is not initialised")]
    NotInitialised,
    /// Another cluster's id.
    #[error("this is cluster {have}, not {named}")]
    WrongCluster {
        /// This cluster.
        have: crate::ClusterId,
        /// The named one.
        named: crate::ClusterId,
    },
    /// The record does not exist.
    #[error("{what} does not exist")]
    NotFound {
        /// Kind and id.
        what: String,
    },
    /// The name is taken.
    #[error("{what} exists already")]
    Exists {
        /// Kind and name.
        what: String,
    },
    /// The sender does not hold the epoch. The only rejection that means "not owner".
    #[error("epoch is {current}, not the one that the command names")]
    EpochMismatch {
        /// The current epoch.
        current: Epoch,
    },
    /// Somebody changed the record: read it again and retry.
    #[error("version is {current}, not the one that the command names")]
    VersionMismatch {
        /// The current version.
        current: Version,
    },
    /// The ledger is in another state than the command needs.
    #[error("ledger {ledger} is {state:?}")]
    LedgerState {
        /// The ledger.
        ledger: LedgerId,
        /// Its state.
        state: LedgerState,
    },
    /// CLOSED with another end; CLOSED is final.
    #[error("ledger {ledger} is closed with another end")]
    OtherEnd {
        /// The ledger.
        ledger: LedgerId,
    },
    /// The old owner still holds it, or somebody else is assigned.
    #[error("not available: {why}")]
    NotAvailable {
        /// Why.
        why: String,
    },
    /// A newly named bookie may not be named (state or limbo count).
    #[error("bookie {bookie} may not be named: {why}")]
    BookieNotEligible {
        /// The bookie.
        bookie: crate::BookieId,
        /// Why.
        why: String,
    },
    /// A precondition that has no case of its own.
    #[error("conflict: {why}")]
    Conflict {
        /// Which.
        why: String,
    },
    /// A field outside what is allowed.
    #[error("{field}: {why}")]
    Invalid {
        /// The field.
        field: String,
        /// What is allowed.
        why: String,
    },
    /// Another operator acquired the epoch.
    #[error("the operator epoch is {current}, acquired by {holder}")]
    StaleOperatorEpoch {
        /// The current one.
        current: u64,
        /// Who holds it.
        holder: String,
    },
    /// The topic belongs to somebody else, or is there and may not be adopted.
    #[error("{why}")]
    Claimed {
        /// Who holds it; `None`: nobody, it is only there.
        holder: Option<crate::Claim>,
        /// The topic, and what stands against it.
        why: String,
    },
    /// The topic is a tombstone.
    #[error("{why}")]
    Tombstoned {
        /// The topic, who deleted it, when it is purged.
        why: String,
    },
    /// The cluster's feature level does not allow it.
    #[error("this needs feature level {needed}, the cluster is at {level}")]
    FeatureLevel {
        /// The level needed.
        needed: u32,
        /// The level in force.
        level: u32,
    },
}
