//! Commands (ledger protocol 1.8, metadata page). Each is atomic; a rejected one changes nothing.

use serde::{Deserialize, Serialize};

use crate::{
    BookieId, BookieState, ClusterId, EntryId, EntryRange, Epoch, Fragment, GroupConfig, GroupName,
    Incarnation, LanePosition, LedgerId, MemberId, MemberRole, Offset, PartitionId, RequestId, SessionId,
    TopicConfig, TopicId, TopicName, Version,
    member::Endpoint,
    meta::{Compaction, ControlCommand, FinishRepair, StartRepair},
};

/// Most elements of a batch command.
pub const MAX_BATCH: usize = 1_000;

/// A command with who sends it. A retry carries the same session and request id and gets the first try's answer (R9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The sender's session; [`SessionId::NONE`] only for `Init`, `BookieBoot`, `OpenSession`, `EndSession`,
    /// an operator's `SetMemberState` (drain, and its end) and the quorum leader's own commands.
    pub session: SessionId,
    /// Unique within the session, increasing.
    pub request: RequestId,
    /// What to do.
    pub command: Command,
}

/// Everything that changes the metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// First command of a cluster. Refused when an id is set already (the same id again is success).
    Init {
        /// Fresh id.
        cluster: ClusterId,
    },
    /// Step two of a bookie's boot: the quorum learns the pending incarnation (R16). Creates the member on first sight.
    BookieBoot(BookieSpec),
    /// Opens a session; for a bookie also the last step of its boot. The same (member, incarnation) again returns the
    /// same session; another incarnation while a session is live is refused with `Conflict`, except for brokers and meta,
    /// where it waits for expiry likewise.
    OpenSession(MemberSpec),
    /// Ends the sender's session in order: owned partitions are released.
    CloseSession,
    /// By the leader: ends a session that was not renewed in time. A no-op unless it is still that session.
    ExpireSession {
        /// The session.
        session: SessionId,
        /// Its member.
        member: MemberId,
    },
    /// By the leader: quorum time.
    Tick {
        /// Median of the members' clocks, ms since the Unix epoch; never decreases in the state.
        wall_ms: i64,
        /// Moved further than twice the monotonic time since the last tick, or first of a leader.
        jump: bool,
    },
    /// By the leader: synced positions and free space of bookies, at most one command a second (R16).
    ReportBookies(Vec<BookieReport>),
    /// Changes a bookie's state along the table of metadata, Members.
    SetMemberState {
        /// The member.
        member: MemberId,
        /// The wished state.
        state: BookieState,
        /// Restart announced (R28).
        restarting: bool,
    },
    /// Creates a topic with its partitions.
    CreateTopic {
        /// Name.
        name: TopicName,
        /// Partition count, 1..=`limits`.
        partitions: u32,
        /// Configuration.
        config: TopicConfig,
    },
    /// Grows or reconfigures a topic.
    AlterTopic {
        /// The topic.
        topic: TopicId,
        /// Its version, when the change is conditional.
        version: Option<Version>,
        /// New count, at least the old one.
        partitions: Option<u32>,
        /// New configuration.
        config: Option<TopicConfig>,
    },
    /// Deletes a topic: its name is free at once, its partitions and ledger records are removed.
    DeleteTopic {
        /// The topic.
        topic: TopicId,
    },
    /// By the leader: the planner's assignment.
    Assign(Vec<Assignment>),
    /// Takes ownership for the sender's broker; needs: assigned to it, old owner released or expired. Elements are judged one by one.
    Acquire(Vec<AcquireItem>),
    /// Gives ownership up. Elements are judged one by one.
    Release(Vec<Release>),
    /// Creates a ledger for a partition in an epoch; it is linked by `Append`, `Roll` or `TakeOver`.
    CreateLedger(CreateLedger),
    /// Stores a writer's ensemble change (1.4).
    ChangeEnsemble(EnsembleChange),
    /// OPEN to IN_RECOVERY (1.6 step 1). IN_RECOVERY already: success.
    StartRecovery {
        /// The ledger.
        ledger: LedgerId,
        /// Its version.
        version: Version,
    },
    /// Closes recovered ledgers and links their successors. Elements are judged one by one.
    TakeOver(Vec<TakeOver>),
    /// Closes the healthy last ledger and links its successor.
    Roll(Roll),
    /// Closes a ledger alone: idle close by the owner (epoch given), or by auditor or admin (no epoch).
    Close {
        /// What to close.
        close: CloseLedger,
        /// The owner's epoch.
        epoch: Option<Epoch>,
    },
    /// Links a ledger behind a CLOSED one, or the first of a chain.
    Append(Append),
    /// Moves the log start forward (retention, delete records).
    AdvanceLogStart {
        /// The partition.
        partition: PartitionId,
        /// The owner's epoch.
        epoch: Epoch,
        /// New start; ledgers wholly below leave the chain.
        to: Offset,
    },
    /// Hands out a range of producer ids.
    AllocateProducerIds {
        /// How many, 1..=1 000 000.
        count: u32,
    },
    /// Removes the record of a ledger that stands in no chain and is not of its partition's current epoch.
    RemoveLedger {
        /// The ledger.
        ledger: LedgerId,
        /// Its version.
        version: Version,
    },
    /// By the auditor: records a repair before anything is copied (R23).
    StartRepair(StartRepair),
    /// By the auditor: ends the recorded repair in one change (R23).
    FinishRepair(FinishRepair),
    /// By the auditor, after a pass in which every member that is not lost answered: nothing of a CLOSED ledger is
    /// `under` or `unchecked` any more (1.6).
    MarkChecked {
        /// The ledger.
        ledger: LedgerId,
        /// Its version.
        version: Version,
    },
    /// Creates or changes the configuration of a consumer group.
    ConfigureGroup {
        /// Its name.
        name: GroupName,
        /// Its version, when the change is conditional; 0 = it must not be configured yet.
        version: Option<Version>,
        /// New configuration.
        config: GroupConfig,
    },
    /// Forgets the configuration of a consumer group; its committed offsets stay.
    RemoveGroup {
        /// Its name.
        name: GroupName,
        /// Its version, when the change is conditional.
        version: Option<Version>,
    },
    /// By whoever started a process and can prove that it is gone: ends its session now instead of when its TTL is over.
    /// Nothing happens unless it is still that session of that member, opened by that incarnation: a process that lives is
    /// never meant.
    EndSession {
        /// The session.
        session: SessionId,
        /// Its member.
        member: MemberId,
        /// The boot that is proven to be over.
        incarnation: Incarnation,
    },
    /// Declared wishes and what operators need.
    Control(ControlCommand),
    /// `StartRecovery` of many ledgers: what a broker sends that takes many partitions over. Elements are judged one by one.
    /// From feature level 4 on.
    StartRecoveries(Vec<RecoveryStart>),
    /// Key compaction of one partition, by its owner (2.7). From feature level 5 on.
    Compact(Compaction),
}

/// One ledger of a `StartRecoveries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryStart {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its version.
    pub version: Version,
}

/// Report of one bookie, taken from its renewals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookieReport {
    /// The bookie.
    pub bookie: BookieId,
    /// Its session.
    pub session: SessionId,
    /// Synced positions per lane.
    pub lanes: Vec<LanePosition>,
    /// Free bytes.
    pub free_bytes: u64,
}

/// What a booting bookie tells (R16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookieSpec {
    /// The cluster in its cookies; `None` for empty disks.
    pub cluster: Option<ClusterId>,
    /// Its uuid (drawn by itself when its disks are all empty, R15).
    pub id: BookieId,
    /// Name for people.
    pub name: String,
    /// The incarnation that the last finished boot left in the cookies; `None` on first boot.
    pub last_incarnation: Option<Incarnation>,
    /// Drawn for this boot, pending.
    pub incarnation: Incarnation,
    /// Lanes with the positions recovered from disk.
    pub lanes: Vec<LanePosition>,
    /// The bookie found a loss by itself (bad group in the middle, lane lost, missing segment).
    pub found_loss: bool,
}

/// What a process tells when it opens its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpec {
    /// The cluster that it belongs to; `None` when it does not know yet (brokers).
    pub cluster: Option<ClusterId>,
    /// Identity.
    pub id: MemberId,
    /// Role.
    pub role: MemberRole,
    /// Name for people.
    pub name: String,
    /// This boot.
    pub incarnation: Incarnation,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Failure zone.
    pub zone: String,
    /// Bookies: free bytes.
    pub free_bytes: u64,
    /// Bookies: start as `Ro` (disk above the high-water mark).
    pub read_only: bool,
}

/// One wish of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The partition.
    pub partition: PartitionId,
    /// Who shall own it.
    pub broker: Option<MemberId>,
}

/// One partition of an `Acquire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcquireItem {
    /// The partition.
    pub partition: PartitionId,
    /// The epoch that the sender saw; refused when another `Acquire` came in between.
    pub seen: Epoch,
}

/// One partition of a `Release`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The partition.
    pub partition: PartitionId,
    /// The epoch that is given up.
    pub epoch: Epoch,
}

/// A new ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateLedger {
    /// Created for this partition.
    pub partition: PartitionId,
    /// In this epoch, which must be current and the sender's.
    pub epoch: Epoch,
    /// E = Qw bookies, all `rw`.
    pub ensemble: Vec<BookieId>,
    /// Qa.
    pub ack_quorum: u8,
}

/// A writer's ensemble change (1.4 step 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsembleChange {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its version.
    pub version: Version,
    /// Start of the new fragment: LAC + 1 at the sending.
    pub first_entry: EntryId,
    /// Whole new ensemble, same length.
    pub ensemble: Vec<BookieId>,
    /// `(index, uuid)` pairs that are replaced and must still stand there.
    pub replaced: Vec<(u8, BookieId)>,
    /// Entries of the fragment before that are on fewer than Qw bookies.
    pub under: Vec<EntryRange>,
}

/// The closing half of `Close`, `Roll` and `TakeOver`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseLedger {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its version.
    pub version: Version,
    /// Last entry, or [`EntryId::NONE`].
    pub last_entry: EntryId,
    /// Cumulative length at the end.
    pub length: u64,
    /// Records in its `data` entries.
    pub records: u64,
    /// Recovery only: the whole list of fragments with the ensembles that the recoverer used (R8); empty = keep.
    pub fragments: Vec<Fragment>,
    /// `under` ranges to add to the fragment they lie in.
    pub under: Vec<EntryRange>,
    /// Limbo counts of the bookies that `fragments` names newly, as seen at the choice (R8).
    pub limbo_counts: Vec<(BookieId, u32)>,
}

/// The linking half: L' and its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkLedger {
    /// L'.
    pub ledger: LedgerId,
    /// Base offset: base and records of the ledger before it.
    pub base_offset: Offset,
}

/// Take-over of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeOver {
    /// The partition.
    pub partition: PartitionId,
    /// The sender's epoch.
    pub epoch: Epoch,
    /// The recovered last ledger.
    pub close: CloseLedger,
    /// L', when wanted at once.
    pub append: Option<LinkLedger>,
}

/// Roll of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roll {
    /// The partition.
    pub partition: PartitionId,
    /// The sender's epoch.
    pub epoch: Epoch,
    /// The healthy last ledger.
    pub close: CloseLedger,
    /// L'.
    pub append: LinkLedger,
}

/// First ledger after a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Append {
    /// The partition.
    pub partition: PartitionId,
    /// The sender's epoch.
    pub epoch: Epoch,
    /// The last of the chain, CLOSED; `None` when the chain is empty (M22).
    pub prev: Option<LedgerId>,
    /// L'.
    pub append: LinkLedger,
}
