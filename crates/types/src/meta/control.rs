//! Declared wishes and what operators need: one command, one reply, one query and one answer, each with variants of its own.

use serde::{Deserialize, Serialize};

use super::Rejection;
use crate::{
    Claim, MemberId, OperatorEpoch, TopicConfig, TopicControl, TopicId, TopicName, TopicRecord, Version,
};

/// A control command. With an operator epoch it is refused unless that epoch is the current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlCommand {
    /// The sender's operator epoch; `None`: not an operator.
    pub epoch: Option<u64>,
    /// What to do.
    pub action: ControlAction,
}

/// What a control command does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlAction {
    /// Raises the operator epoch by one.
    AcquireOperatorEpoch {
        /// Who acquires it, for people; 1..=253 bytes.
        holder: String,
    },
    /// Makes topics be as wished. Elements are judged one by one.
    ApplyTopics(Vec<TopicWish>),
    /// Turns topics into tombstones and frees their claims. Elements are judged one by one.
    TombstoneTopics(Vec<TopicDeletion>),
    /// Takes tombstones back, as long as they are the ones that are named. Elements are judged one by one.
    RestoreTopics(Vec<TombstoneRef>),
    /// Removes tombstones and their data, as long as they are the ones that are named. Elements are judged one by one.
    PurgeTopics(Vec<TombstoneRef>),
    /// Frees claims.
    ReleaseClaims(Vec<ClaimRelease>),
    /// Announces a bookie's restart (R28), or takes that back.
    AnnounceRestart {
        /// The bookie.
        member: MemberId,
        /// Whether it restarts.
        restarting: bool,
    },
    /// Raises the feature level. Proposed by the leader alone, after every voter said that it knows the level.
    RaiseFeatureLevel {
        /// The new level.
        level: u32,
    },
    /// Checks the epoch and does nothing else.
    CheckEpoch,
}

/// What happens when a topic is there and nobody claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Adoption {
    /// A conflict.
    Fail,
    /// Claimed when it is as wished.
    IfMatches,
    /// Claimed and changed.
    Take,
}

/// How a topic shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicWish {
    /// Name.
    pub name: TopicName,
    /// Partition count.
    pub partitions: u32,
    /// The whole configuration.
    pub config: TopicConfig,
    /// Who wishes it.
    pub claim: Option<Claim>,
    /// Of a topic that nobody claims.
    pub adoption: Adoption,
}

/// A topic to be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicDeletion {
    /// Name.
    pub name: TopicName,
    /// Only when this uid holds the claim; `None`: only when nobody does.
    pub uid: Option<String>,
    /// How long the data is kept, ms.
    pub purge_after_ms: i64,
}

/// A tombstone, exactly this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TombstoneRef {
    /// The topic.
    pub topic: TopicId,
    /// Version of its control record.
    pub version: Version,
    /// Of a purge: only when its time has passed.
    pub due: bool,
}

/// A claim to be freed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRelease {
    /// The topic.
    pub name: TopicName,
    /// Who holds it.
    pub uid: String,
}

/// Answer to a control command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlReply {
    /// `AcquireOperatorEpoch`.
    Epoch(OperatorEpoch),
    /// `ApplyTopics`, per wish.
    Applied(Vec<Result<TopicApplied, Rejection>>),
    /// `TombstoneTopics`, per deletion.
    Tombstoned(Vec<Result<TopicTombstoned, Rejection>>),
    /// `RestoreTopics`, `PurgeTopics`: per element.
    Each(Vec<Result<(), Rejection>>),
    /// `ReleaseClaims`: per element whether it was freed.
    Released(Vec<bool>),
    /// `RaiseFeatureLevel`: the level in force.
    FeatureLevel(u32),
    /// `AnnounceRestart`, `CheckEpoch`.
    Done,
}

/// What was done for a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopicDone {
    /// It was not there.
    Created,
    /// Partitions, configuration or claim changed.
    Changed,
    /// It was as wished.
    Unchanged,
    /// It was a tombstone.
    Undeleted,
}

/// A wish that was fulfilled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicApplied {
    /// What was done.
    pub done: TopicDone,
    /// The topic before it, unless it was created.
    pub before: Option<TopicRecord>,
    /// The topic after it.
    pub topic: TopicRecord,
    /// Claim and tombstone after it.
    pub control: TopicControl,
}

/// What became of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "an answer is sent once and not kept")]
pub enum TopicTombstoned {
    /// It is a tombstone now, or was one already (`news` false).
    Tombstone {
        /// The topic.
        topic: TopicRecord,
        /// With the tombstone.
        control: TopicControl,
        /// Made by this command.
        news: bool,
    },
    /// No such topic.
    Absent,
    /// Somebody else's, or nobody's.
    NotHolder(Option<Claim>),
}

/// A control query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlQuery {
    /// The operator epoch.
    Operator,
    /// Topics with claims and tombstones, in order of id.
    Topics {
        /// After this one.
        after: Option<TopicId>,
        /// At most so many, 1..=10 000.
        limit: u32,
    },
    /// Topics by name; those that do not exist are left out. At most 1 000.
    TopicsNamed(Vec<TopicName>),
    /// What a command would answer now; it changes nothing.
    Try(Box<ControlCommand>),
    /// What stands against stopping a bookie, as far as the records tell.
    BookieStanding(MemberId),
}

/// Answer to a control query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlAnswer {
    /// `Operator`.
    Operator(OperatorEpoch),
    /// `Topics`, `TopicsNamed`.
    Topics(Vec<(TopicRecord, Option<TopicControl>)>),
    /// `Try`.
    Tried(Result<ControlReply, Rejection>),
    /// `BookieStanding`; `None`: no such bookie.
    BookieStanding(Option<BookieStanding>),
}

/// What the records of ledgers say of a bookie and of its peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookieStanding {
    /// Fragments and repairs that name it.
    pub named: u64,
    /// Ledgers, any, with entries that are on fewer bookies than wanted.
    pub under: u64,
    /// Ledgers, any, that are unchecked after a recovery.
    pub unchecked: u64,
    /// Repairs under way, anywhere.
    pub repairs: u64,
    /// Ledgers in recovery.
    pub in_recovery: u64,
    /// Ledgers, any, that name another bookie that is in limbo, lost, or not live.
    pub with_dead: u64,
    /// Bookies other than it that may be newly named and are live.
    pub other_writable: u64,
    /// The largest number of copies that a topic wants.
    pub largest_copies: u64,
}
