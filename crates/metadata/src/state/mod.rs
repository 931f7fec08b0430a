//! The state and its accessors.

mod apply;
mod check;
mod control;
mod index;
mod query;
mod session;

use std::sync::Arc;

use tidemill_types::meta::{Change, Command, ControlAction, ControlCommand, Rejection, Reply, Request};
use tidemill_types::{
    BookieId, ClusterId, Epoch, GroupName, GroupRecord, LedgerId, LedgerRecord, Member, MemberId,
    OperatorEpoch, PartitionId, PartitionRecord, Revision, SessionId, TopicControl, TopicId, TopicName,
    TopicRecord,
};

pub(crate) use self::session::Session;
use crate::Snapshot;
use crate::command::compact::COMPACTION_LEVEL;
use crate::cow::CowMap;
use crate::reject::not_found;

/// Highest feature level of this state machine. Raised when a command is added whose effect older code does not know:
/// 1 ledgers and partitions, 2 configurations of groups, 3 control commands, 4 starts of many recoveries in one command,
/// 5 key compaction.
pub const FEATURE_LEVEL: u32 = 5;
/// Level of a state that was never raised.
pub(crate) const FIRST_FEATURE_LEVEL: u32 = 2;

/// Everything that the quorum agrees on. A clone is cheap: it shares all pages until one side writes.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) counters: Counters,
    pub(crate) members: CowMap<MemberId, Arc<Member>>,
    pub(crate) sessions: CowMap<SessionId, Arc<Session>>,
    pub(crate) topics: CowMap<TopicId, Arc<TopicRecord>>,
    pub(crate) partitions: CowMap<PartitionId, Arc<PartitionRecord>>,
    pub(crate) ledgers: CowMap<LedgerId, Arc<LedgerRecord>>,
    pub(crate) groups: CowMap<GroupName, Arc<GroupRecord>>,
    /// Claims and tombstones, of topics that have or had one.
    pub(crate) controls: CowMap<TopicId, Arc<TopicControl>>,
    pub(crate) operator: OperatorEpoch,
    // What follows is derived from the maps above, kept with every change and rebuilt from a snapshot.
    pub(crate) names: CowMap<TopicName, TopicId>,
    /// How many fragments and repairs of a ledger name a bookie.
    pub(crate) named: CowMap<(BookieId, LedgerId), u32>,
    /// Sum of `named` per bookie.
    pub(crate) named_in_all: CowMap<BookieId, u64>,
    /// All ledgers that were created for a partition, linked or not.
    pub(crate) created_for: CowMap<(PartitionId, LedgerId), ()>,
    /// Ledgers with a repair under way.
    pub(crate) repairing: CowMap<LedgerId, ()>,
}

/// The single values of the state.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Counters {
    pub(crate) revision: Revision,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) feature_level: u32,
    /// Quorum time, ms since the Unix epoch.
    pub(crate) wall_ms: i64,
    /// Quorum time of the last tick that was a jump.
    pub(crate) jumped_ms: i64,
    pub(crate) next_session: u64,
    pub(crate) next_topic: u64,
    pub(crate) next_ledger: u64,
    pub(crate) next_producer: i64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            revision: Revision(0),
            cluster: None,
            feature_level: FIRST_FEATURE_LEVEL,
            wall_ms: 0,
            jumped_ms: 0,
            // Zero means "none" for a session, so every count of ids starts at one.
            next_session: 1,
            next_topic: 1,
            next_ledger: 1,
            next_producer: 1,
        }
    }
}

/// The feature level that a request raises to, when this state machine does not know it: applying it would make another
/// state than the other members have, so whoever reads the log must stop here.
#[must_use]
pub fn unknown_level(request: &Request) -> Option<u32> {
    match &request.command {
        Command::Control(ControlCommand { action: ControlAction::RaiseFeatureLevel { level }, .. }) => {
            (*level > FEATURE_LEVEL).then_some(*level)
        }
        _ => None,
    }
}

/// Feature level from which on `StartRecoveries` is known.
pub(crate) const RECOVERIES_LEVEL: u32 = 4;

/// The feature level that a command needs to be read at all: a member of an older binary cannot decode it. The leader MUST NOT put
/// one into the log below that level. (Control commands were there before a member could be older than them; they are judged when
/// they are applied.)
#[must_use]
pub fn needed_level(command: &Command) -> u32 {
    match command {
        Command::StartRecoveries(_) => RECOVERIES_LEVEL,
        Command::Compact(_) => COMPACTION_LEVEL,
        _ => FIRST_FEATURE_LEVEL,
    }
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The answer for its sender. A rejected command changed nothing.
    pub result: Result<Reply, Rejection>,
    /// Changed records for the watches, in order; empty for a rejected command and for a retry.
    pub changes: Vec<Change>,
}

impl State {
    /// The empty state, before `Init`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The state as of now, to be written out while later commands are applied: a few reference counts.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.clone())
    }

    /// Revision of the last applied command.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.counters.revision
    }

    /// The cluster's id; `None` before `Init`.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.counters.cluster
    }

    /// Quorum time, ms since the Unix epoch; 0 before the first tick.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        self.counters.wall_ms
    }

    /// Quorum time of the last tick that was a jump: purge and retention by time wait until enough ticks came after it.
    #[must_use]
    pub fn jumped_ms(&self) -> i64 {
        self.counters.jumped_ms
    }

    /// The live sessions with their members, in order of id: what a new leader starts with a full TTL.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, MemberId)> {
        self.sessions.iter().map(|(id, s)| (*id, s.member))
    }

    /// Whether a session is live.
    #[must_use]
    pub fn is_live(&self, session: SessionId) -> bool {
        self.sessions.contains(&session)
    }

    /// A member.
    #[must_use]
    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.get(&id).map(AsRef::as_ref)
    }

    /// All members in order of id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().map(|(_, m)| m.as_ref())
    }

    /// A topic.
    #[must_use]
    pub fn topic(&self, id: TopicId) -> Option<&TopicRecord> {
        self.topics.get(&id).map(AsRef::as_ref)
    }

    /// All topics in order of id.
    pub fn topics(&self) -> impl Iterator<Item = &TopicRecord> {
        self.topics.iter().map(|(_, t)| t.as_ref())
    }

    /// The configuration of a consumer group.
    #[must_use]
    pub fn group(&self, name: &GroupName) -> Option<&GroupRecord> {
        self.groups.get(name).map(AsRef::as_ref)
    }

    /// All configured consumer groups in order of name.
    pub fn groups(&self) -> impl Iterator<Item = &GroupRecord> {
        self.groups.iter().map(|(_, g)| g.as_ref())
    }

    /// Claim and tombstone of a topic; `None` when it never had one.
    #[must_use]
    pub fn topic_control(&self, id: TopicId) -> Option<&TopicControl> {
        self.controls.get(&id).map(AsRef::as_ref)
    }

    /// All claims and tombstones in order of their topics' ids.
    pub fn topic_controls(&self) -> impl Iterator<Item = &TopicControl> {
        self.controls.iter().map(|(_, c)| c.as_ref())
    }

    /// The operator that holds the epoch.
    #[must_use]
    pub fn operator(&self) -> &OperatorEpoch {
        &self.operator
    }

    /// The feature level in force.
    #[must_use]
    pub fn feature_level(&self) -> u32 {
        self.counters.feature_level
    }

    /// A partition.
    #[must_use]
    pub fn partition(&self, id: PartitionId) -> Option<&PartitionRecord> {
        self.partitions.get(&id).map(AsRef::as_ref)
    }

    /// All partitions in order of id.
    pub fn partitions(&self) -> impl Iterator<Item = &PartitionRecord> {
        self.partitions.iter().map(|(_, p)| p.as_ref())
    }

    /// A ledger.
    #[must_use]
    pub fn ledger(&self, id: LedgerId) -> Option<&LedgerRecord> {
        self.ledgers.get(&id).map(AsRef::as_ref)
    }

    /// All ledgers in order of id.
    pub fn ledgers(&self) -> impl Iterator<Item = &LedgerRecord> {
        self.ledgers.iter().map(|(_, l)| l.as_ref())
    }

    /// How many fragments and repairs name a bookie; it may be retired at zero.
    #[must_use]
    pub fn named_count(&self, bookie: BookieId) -> u64 {
        self.named_in_all.get(&bookie).copied().unwrap_or(0)
    }

    pub(crate) fn find_partition(&self, id: PartitionId) -> Result<&PartitionRecord, Rejection> {
        self.partition(id).ok_or_else(|| not_found("partition", id))
    }

    pub(crate) fn find_ledger(&self, id: LedgerId) -> Result<&LedgerRecord, Rejection> {
        self.ledger(id).ok_or_else(|| not_found("ledger", id))
    }

    /// The partition, when the sender's session holds the named epoch; everything else is "not owner" (1.8).
    pub(crate) fn owned(
        &self,
        id: PartitionId,
        epoch: Epoch,
        session: SessionId,
    ) -> Result<&PartitionRecord, Rejection> {
        let p = self.find_partition(id)?;
        if p.epoch == epoch && p.owner.is_some_and(|o| o.session == session) {
            Ok(p)
        } else {
            Err(Rejection::EpochMismatch { current: p.epoch })
        }
    }
}
