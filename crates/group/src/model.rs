//! What the coordinator keeps, and what goes in and out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tidemill_types::{Assignor, Claim, GroupConfig, GroupName, PartitionId, StartAt, TopicId, TopicName};

/// Id of a member within its group.
pub type MemberId = Arc<str>;

/// Both clocks at the time of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic: sessions and time-outs.
    pub mono: Duration,
    /// Wall time, ms since the Unix epoch: commit times and the expiry of offsets.
    pub wall_ms: i64,
}

/// Rules that the model in `sim/` switches off one by one, to see that it finds what each protects from. Everything else has
/// all of them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A partition is granted only while nobody has it assigned or is revoking it.
    pub grants_wait: bool,
    /// A heartbeat confirms revocations only of the newest revision.
    pub confirmations_name_their_revision: bool,
    /// A join that is repeated is the same join.
    pub repeated_joins_are_known: bool,
    /// Nothing of an epoch before the member's join counts.
    pub earlier_lives_are_void: bool,
    /// A commit counts only for the grant under which it was made (KIP-1251).
    pub commits_belong_to_a_grant: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            grants_wait: true,
            confirmations_name_their_revision: true,
            repeated_joins_are_known: true,
            earlier_lives_are_void: true,
            commits_belong_to_a_grant: true,
        }
    }
}

/// Numbers of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Session time-out unless the group or the member says otherwise.
    pub session: Duration,
    /// Rebalance time-out unless the group or the member says otherwise.
    pub rebalance: Duration,
    /// Offsets of an empty group are forgotten after, unless the group says otherwise.
    pub offsets_retention: Duration,
    /// Members of one group.
    pub max_members: usize,
    /// Groups of one coordinator.
    pub max_groups: usize,
    /// Topics named by one subscription.
    pub max_topics: usize,
    /// Bytes of the metadata of a committed offset.
    pub max_metadata: usize,
    /// All on, outside of the model.
    pub rules: Rules,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session: Duration::from_secs(45),
            rebalance: Duration::from_secs(60),
            offsets_retention: Duration::from_secs(7 * 24 * 3600),
            max_members: 1_000,
            max_groups: 1_000_000,
            max_topics: 1_000,
            max_metadata: 4_096,
            rules: Rules::default(),
        }
    }
}

/// What a member wants to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Topics by name; they need not exist yet.
    pub topics: BTreeSet<TopicName>,
    /// Topics whose whole name matches.
    pub pattern: Option<String>,
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The next record to be read.
    pub offset: i64,
    /// Ownership epoch of the partition that the reader knew; 0 = not told.
    pub epoch: u64,
    /// For the reader alone.
    pub metadata: String,
    /// When it was committed, ms since the Unix epoch.
    pub commit_ms: i64,
}

/// A member, as it stands in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Static membership: who it is across restarts.
    pub instance: Option<String>,
    /// Name and address for people.
    pub client: String,
    /// Drawn by the process; 0 = not told.
    pub incarnation: u64,
    /// Number of the process's join, ascending; tells a repeated join from a new one.
    pub attempt: u64,
    /// What it wants.
    pub subscription: Subscription,
    /// Its session time-out, ms.
    pub session_ms: u32,
    /// Its rebalance time-out, ms.
    pub rebalance_ms: u32,
    /// The group's epoch when it joined: nothing of an earlier life counts.
    pub joined_epoch: u64,
    /// The epoch that it takes part in.
    pub epoch: u64,
    /// Goes up with every change of `assigned` or `revoking`.
    pub revision: u64,
    /// What it shall have.
    pub target: BTreeSet<PartitionId>,
    /// What it has, with the epoch at which it got it.
    pub assigned: BTreeMap<PartitionId, u64>,
    /// What it had and has not given up yet, with the epoch at which it got it.
    pub revoking: BTreeMap<PartitionId, u64>,
    /// A static member that left to come back: its partitions wait for it until its session is over.
    pub away: bool,
}

/// The durable part of a group: exactly what a replay of the log gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    /// Goes up with every change of members, subscriptions, topics or target.
    pub epoch: u64,
    /// Since when it has no members, ms since the Unix epoch; `None` while it has some.
    pub empty_since_ms: Option<i64>,
    /// Topics with the partition counts that the targets were made from.
    pub topics: BTreeMap<TopicId, u32>,
    /// Its members.
    pub members: BTreeMap<MemberId, Member>,
    /// Committed offsets.
    pub offsets: BTreeMap<PartitionId, Committed>,
    /// What was declared of it.
    pub declared: Declaration,
}

/// What an object, such as a ConsumerGroup, declared of a group. A group that nobody declared has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Whose group it is; `None`: nobody's, or nobody's any more.
    pub claim: Option<Claim>,
    /// Topics that it reads.
    pub topics: BTreeSet<TopicName>,
    /// Declared resets that were carried out, the newest last; the oldest of more than [`MAX_RESETS`] are forgotten.
    pub resets: Vec<ResetDone>,
}

/// Declared resets that a group remembers.
pub const MAX_RESETS: usize = 32;

/// A declared reset that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetDone {
    /// Its id: each is carried out once.
    pub id: String,
    /// Where the offsets went, as it was asked for; for people.
    pub to: String,
    /// When, ms since the Unix epoch.
    pub at_ms: i64,
}

/// A group with what is derived and volatile.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// What stands in the log.
    pub state: GroupState,
    /// Who has a partition assigned or is revoking it.
    pub(crate) owners: BTreeMap<PartitionId, MemberId>,
    /// Liveness of members.
    pub(crate) alive: BTreeMap<MemberId, Alive>,
    pub(crate) config: Option<Arc<GroupConfig>>,
}

/// Liveness of one member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alive {
    /// Not heard until then: removed.
    pub(crate) expires: Duration,
    /// Revocations not confirmed until then: removed.
    pub(crate) confirm_until: Option<Duration>,
}

/// A join.
#[derive(Clone, Debug)]
pub struct Join {
    /// The group.
    pub group: GroupName,
    /// The member's id.
    pub member: MemberId,
    /// Drawn by the process; 0 = not told.
    pub incarnation: u64,
    /// Number of this join within the process.
    pub attempt: u64,
    /// Static membership.
    pub instance: Option<String>,
    /// For people.
    pub client: String,
    /// What it wants.
    pub subscription: Subscription,
    /// Session time-out, ms; `None` = the group's.
    pub session_ms: Option<u32>,
    /// Rebalance time-out, ms; `None` = the group's.
    pub rebalance_ms: Option<u32>,
}

/// A sign of life.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The group.
    pub group: GroupName,
    /// The member.
    pub member: MemberId,
    /// The last epoch that it heard.
    pub epoch: u64,
    /// The revision of the assignment that it acts upon.
    pub revision: u64,
    /// All partitions that it still reads or has results of to commit; `None`: not told, confirms nothing.
    pub owned: Option<BTreeSet<PartitionId>>,
    /// A changed subscription.
    pub subscription: Option<Subscription>,
}

/// A farewell.
#[derive(Clone, Debug)]
pub struct Leave {
    /// The group.
    pub group: GroupName,
    /// The member.
    pub member: MemberId,
    /// The last epoch that it heard.
    pub epoch: u64,
    /// A static member that comes back: its partitions wait.
    pub comes_back: bool,
}

/// Offsets to be committed.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The group.
    pub group: GroupName,
    /// The member with its epoch; `None`: somebody outside, allowed while the group has no members.
    pub member: Option<(MemberId, u64)>,
    /// Partitions and what to commit; judged one by one.
    pub offsets: Vec<(PartitionId, Committed)>,
}

/// A declaration.
#[derive(Clone, Debug)]
pub struct Declare {
    /// The group.
    pub group: GroupName,
    /// Who declares it.
    pub claim: Claim,
    /// A holder whose object is known to be gone: its claim is taken over.
    pub from_uid: Option<String>,
    /// Topics that the group reads.
    pub topics: BTreeSet<TopicName>,
}

/// The end of a declaration.
#[derive(Clone, Debug)]
pub struct Release {
    /// The group.
    pub group: GroupName,
    /// Only when this uid holds the claim.
    pub uid: String,
    /// The group and its committed offsets go too.
    pub delete: bool,
}

/// What became of the end of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// The claim is free, or the group is gone.
    Done,
    /// There is no such group.
    Absent,
    /// It is somebody else's, or nobody's; nothing was changed.
    NotHolder(Option<Claim>),
}

/// A reset of committed offsets.
#[derive(Clone, Debug)]
pub struct Reset {
    /// The group.
    pub group: GroupName,
    /// A declared reset: its id, carried out once, and where it goes to, for people.
    pub once: Option<(String, String)>,
    /// New positions.
    pub set: Vec<(PartitionId, Committed)>,
    /// Positions to be forgotten.
    pub forget: Vec<PartitionId>,
    /// Removes the members first: they join again and begin at the new positions. Without it the group has to be empty.
    pub evict: bool,
}

/// What became of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetOutcome {
    /// Carried out by this operation.
    Done,
    /// One with this id was carried out before; nothing was changed.
    Already,
}

/// What a member is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The group.
    pub group: GroupName,
    /// The member.
    pub member: MemberId,
    /// Its epoch.
    pub epoch: u64,
    /// Revision of this assignment.
    pub revision: u64,
    /// What it has, with the epoch at which it got it.
    pub assigned: Vec<(PartitionId, u64)>,
    /// What it has to give up: stop, commit, then confirm.
    pub revoking: Vec<(PartitionId, u64)>,
    /// Its session time-out, ms.
    pub session_ms: u32,
    /// Its rebalance time-out, ms.
    pub rebalance_ms: u32,
    /// The configured start in partitions without a committed offset.
    pub start_at: Option<StartAt>,
}

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its name.
    pub name: GroupName,
    /// Its epoch.
    pub epoch: u64,
    /// Number of members.
    pub members: usize,
    /// Whether every member has what it shall have.
    pub settled: bool,
    /// Number of committed offsets.
    pub offsets: usize,
    /// How partitions are shared out.
    pub assignor: Assignor,
    /// Whose it is.
    pub claim: Option<Claim>,
}

impl Group {
    /// Its assignor.
    #[must_use]
    pub fn assignor(&self) -> Assignor {
        self.config.as_ref().map_or(Assignor::default(), |c| c.assignor)
    }

    /// Whether every member has what it shall have, and nothing else.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.members.values().all(|m| {
            m.epoch == self.state.epoch && m.revoking.is_empty() && m.assigned.keys().eq(m.target.iter())
        })
    }
}
