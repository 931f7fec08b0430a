//! One function per command that brokers and bookies send, with the reply that belongs to it.

use tidemill_types::{
    BookieState, GroupConfig, GroupName, GroupRecord, LedgerId, LedgerRecord, MemberId, PartitionId,
    PartitionRecord, TopicConfig, TopicId, TopicName, TopicRecord, Version,
    meta::{
        AcquireItem, Answer, CloseLedger, Command, CreateLedger, EnsembleChange, PartitionView, Query,
        Rejection, Release, Reply, Roll, TakeOver,
    },
};

use crate::{MetaClient, MetaError, Session};

/// A command's outcome: its reply, or the rejection that the state machine gave.
pub type Applied<T> = Result<Result<T, Rejection>, MetaError>;

macro_rules! expect_reply {
    ($result:expr, $pattern:pat => $value:expr) => {
        match $result {
            Ok($pattern) => Ok(Ok($value)),
            Ok(other) => Err(MetaError::Malformed { why: format!("a reply of another kind: {other:?}") }),
            Err(rejection) => Ok(Err(rejection)),
        }
    };
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $command:expr, $pattern:pat => $value:expr;)*) => {
        impl Session {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// As [`Session::propose`].
                pub async fn $name(&self, $($arg: $ty),*) -> Applied<$out> {
                    expect_reply!(self.propose($command).await?, $pattern => $value)
                }
            )*
        }
    };
}

commands! {
    /// Creates a topic with its partitions.
    create_topic(name: TopicName, partitions: u32, config: TopicConfig) -> TopicRecord =
        Command::CreateTopic { name, partitions, config }, Reply::Topic(t) => t;
    /// Grows or reconfigures a topic.
    alter_topic(topic: TopicId, version: Option<Version>, partitions: Option<u32>, config: Option<TopicConfig>) -> TopicRecord =
        Command::AlterTopic { topic, version, partitions, config }, Reply::Topic(t) => t;
    /// Deletes a topic.
    delete_topic(topic: TopicId) -> () = Command::DeleteTopic { topic }, Reply::Done => ();
    /// Takes ownership of up to 1 000 partitions; judged one by one.
    acquire(items: Vec<AcquireItem>) -> Vec<Result<PartitionRecord, Rejection>> =
        Command::Acquire(items), Reply::Acquired(each) => each;
    /// Gives ownership of up to 1 000 partitions up; judged one by one.
    release(items: Vec<Release>) -> Vec<Result<(), Rejection>> = Command::Release(items), Reply::Each(each) => each;
    /// Creates a ledger; it is linked by `append`, `roll` or `take_over`.
    create_ledger(ledger: CreateLedger) -> LedgerRecord = Command::CreateLedger(ledger), Reply::Ledger(l) => l;
    /// Stores a writer's ensemble change.
    change_ensemble(change: EnsembleChange) -> LedgerRecord = Command::ChangeEnsemble(change), Reply::Ledger(l) => l;
    /// OPEN to IN_RECOVERY.
    start_recovery(ledger: LedgerId, version: Version) -> LedgerRecord =
        Command::StartRecovery { ledger, version }, Reply::Ledger(l) => l;
    /// Closes a ledger alone; `epoch` for the owner's idle close.
    close_ledger(close: CloseLedger, epoch: Option<tidemill_types::Epoch>) -> LedgerRecord =
        Command::Close { close, epoch }, Reply::Ledger(l) => l;
    /// Closes recovered ledgers and links their successors; judged one by one.
    take_over(items: Vec<TakeOver>) -> Vec<Result<(), Rejection>> = Command::TakeOver(items), Reply::Each(each) => each;
    /// Closes the healthy last ledger and links its successor.
    roll(roll: Roll) -> PartitionRecord = Command::Roll(roll), Reply::Partition(p) => p;
    /// Links a ledger behind a CLOSED one, or the first of a chain.
    append(append: tidemill_types::meta::Append) -> PartitionRecord = Command::Append(append), Reply::Partition(p) => p;
    /// Moves the log start forward.
    advance_log_start(partition: PartitionId, epoch: tidemill_types::Epoch, to: tidemill_types::Offset) -> PartitionRecord =
        Command::AdvanceLogStart { partition, epoch, to }, Reply::Partition(p) => p;
    /// A range of producer ids: first id and count.
    allocate_producer_ids(count: u32) -> (i64, u32) =
        Command::AllocateProducerIds { count }, Reply::ProducerIds { first, count } => (first, count);
    /// Removes the record of a ledger that stands in no chain.
    remove_ledger(ledger: LedgerId, version: Version) -> () =
        Command::RemoveLedger { ledger, version }, Reply::Done => ();
    /// Creates or changes the configuration of a consumer group.
    configure_group(name: GroupName, version: Option<Version>, config: GroupConfig) -> GroupRecord =
        Command::ConfigureGroup { name, version, config }, Reply::Group(g) => g;
    /// Forgets the configuration of a consumer group.
    remove_group(name: GroupName, version: Option<Version>) -> () =
        Command::RemoveGroup { name, version }, Reply::Done => ();
    /// Changes a bookie's state, or announces its restart.
    set_member_state(member: MemberId, state: BookieState, restarting: bool) -> () =
        Command::SetMemberState { member, state, restarting }, Reply::Done => ();
}

impl MetaClient {
    /// A partition with the records of its ledgers; a linearizable read.
    ///
    /// # Errors
    /// As [`MetaClient::read`].
    pub async fn partition(&self, id: PartitionId) -> Result<Option<PartitionView>, MetaError> {
        match self.read(&Query::Partition(id)).await? {
            (Answer::Partition(p), _) => Ok(p),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// A ledger's record; a linearizable read.
    ///
    /// # Errors
    /// As [`MetaClient::read`].
    pub async fn ledger(&self, id: LedgerId) -> Result<Option<LedgerRecord>, MetaError> {
        match self.read(&Query::Ledger(id)).await? {
            (Answer::Ledger(l), _) => Ok(l),
            (other, _) => Err(unexpected(&other)),
        }
    }
}

fn unexpected(answer: &Answer) -> MetaError {
    MetaError::Malformed { why: format!("an answer of another kind: {answer:?}") }
}
