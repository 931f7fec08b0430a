//! A state with its log position, and the few phrases that the tests are made of.

use tidemill_metadata::{Applied, State};
use tidemill_types::meta::{
    AcquireItem, Append, Assignment, BookieSpec, Change, CloseLedger, Command, ControlAction, ControlCommand,
    ControlReply, CreateLedger, EnsembleChange, LinkLedger, MemberSpec, Rejection, Reply, Request, Roll,
    TakeOver,
};
use tidemill_types::{
    Assignor, BookieId, BookieState, Claim, ClusterId, Endpoint, EntryId, Epoch, GroupConfig, GroupMode,
    GroupName, Incarnation, LanePosition, LedgerId, LedgerRecord, MemberId, MemberRole, Offset, PartitionId,
    PartitionRecord, RequestId, Revision, SessionId, StartAt, StaticAssignment, TopicConfig, TopicId,
    TopicName, Version,
};
use uuid::Uuid;

pub(crate) const CLUSTER: ClusterId = ClusterId(Uuid::from_u128(0xC));

pub(crate) fn member(n: u32) -> MemberId {
    MemberId(Uuid::from_u128(u128::from(n)))
}

pub(crate) fn lane(n: u32) -> MemberId {
    member(1_000_000 + n)
}

pub(crate) fn at(n: u32, segment: u64, group: u64) -> LanePosition {
    LanePosition { lane: lane(n), segment, group }
}

pub(crate) fn name(s: &str) -> TopicName {
    TopicName::new(s).unwrap()
}

pub(crate) fn group_name(s: &str) -> GroupName {
    GroupName::new(s).unwrap()
}

pub(crate) fn group_config() -> GroupConfig {
    GroupConfig {
        mode: GroupMode::Stream,
        assignor: Assignor::Static,
        static_assignment: vec![StaticAssignment {
            instance: "billing-0".into(),
            topic: name("t"),
            partitions: vec![0, 1],
        }],
        start_at: Some(StartAt::Timestamp(1_700_000_000_000)),
        session_ms: Some(10_000),
        rebalance_ms: Some(60_000),
        offsets_retention_ms: Some(604_800_000),
        last_reset: Some("r1".into()),
    }
}

pub(crate) fn claim(n: u32) -> Claim {
    Claim { uid: format!("uid-{n}"), owner: format!("Topic default/t{n}") }
}

pub(crate) fn boot_spec(n: u32, last: Option<u64>, incarnation: u64) -> BookieSpec {
    BookieSpec {
        cluster: last.map(|_| CLUSTER),
        id: member(n),
        name: format!("bookie-{n}"),
        last_incarnation: last.map(Incarnation),
        incarnation: Incarnation(incarnation),
        lanes: vec![at(n, 0, 0)],
        found_loss: false,
    }
}

pub(crate) fn member_spec(n: u32, role: MemberRole, incarnation: u64) -> MemberSpec {
    MemberSpec {
        cluster: Some(CLUSTER),
        id: member(n),
        role,
        name: format!("{role:?}-{n}"),
        incarnation: Incarnation(incarnation),
        endpoint: Endpoint { host: "127.0.0.1".into(), port: 7450 },
        zone: format!("z{}", n % 3),
        free_bytes: 1 << 40,
        read_only: false,
    }
}

/// Records, ledgers, sessions, single values.
type Content = (Vec<Change>, Vec<LedgerRecord>, Vec<(SessionId, MemberId)>, Vec<u64>);

pub(crate) struct Cluster {
    pub(crate) state: State,
    pub(crate) revision: u64,
    request: u64,
}

impl Cluster {
    pub(crate) fn empty() -> Self {
        Self { state: State::new(), revision: 0, request: 0 }
    }

    /// Initialised, with four bookies (1 to 4), two brokers (11 and 12), and a topic `t` of two partitions.
    pub(crate) fn new() -> Self {
        let mut c = Self::empty();
        c.ok(SessionId::NONE, Command::Init { cluster: CLUSTER });
        for n in 1..=4 {
            c.bookie(n);
        }
        c.broker(11);
        c.broker(12);
        let s = c.session(11);
        let config = TopicConfig::default();
        c.ok(s, Command::CreateTopic { name: name("t"), partitions: 2, config });
        c
    }

    pub(crate) fn apply(&mut self, request: &Request) -> Applied {
        self.revision += 1;
        let before = self.content();
        let applied = self.state.apply(Revision(self.revision), request);
        assert_eq!(self.state.check(), Ok(()), "after {request:?}");
        if applied.result.is_err() {
            assert_eq!(before, self.content(), "a rejected command changed something: {request:?}");
            assert!(applied.changes.is_empty());
        }
        applied
    }

    /// All that a rejected command must leave alone.
    fn content(&self) -> Content {
        let v = self.state.view();
        let changes = (v.members.into_iter().map(Change::Member))
            .chain(v.topics.into_iter().map(Change::Topic))
            .chain(v.partitions.into_iter().map(Change::Partition))
            .chain(v.groups.into_iter().map(Change::Group));
        let mut numbers = vec![v.wall_ms.cast_unsigned(), u64::from(v.cluster.is_some())];
        if let tidemill_types::meta::Answer::Cluster(i) =
            self.state.query(&tidemill_types::meta::Query::Cluster)
        {
            numbers.push(i.next_ledger.0);
            numbers.push(i.feature_level.into());
        }
        numbers.push(self.state.operator().epoch);
        let changes = changes.chain(self.state.topic_controls().cloned().map(Change::TopicControl));
        (changes.collect(), self.state.ledgers().cloned().collect(), self.state.sessions().collect(), numbers)
    }

    pub(crate) fn send(&mut self, session: SessionId, command: Command) -> Applied {
        self.request += 1;
        self.apply(&Request { session, request: RequestId(self.request), command })
    }

    pub(crate) fn ok(&mut self, session: SessionId, command: Command) -> Reply {
        self.send(session, command).result.unwrap()
    }

    pub(crate) fn no(&mut self, session: SessionId, command: Command) -> Rejection {
        self.send(session, command).result.unwrap_err()
    }

    /// By the quorum's leader.
    pub(crate) fn lead(&mut self, command: Command) -> Reply {
        self.ok(SessionId::NONE, command)
    }

    pub(crate) fn bookie(&mut self, n: u32) -> SessionId {
        self.lead(Command::BookieBoot(boot_spec(n, None, 100)));
        self.open(n, MemberRole::Bookie, 100)
    }

    pub(crate) fn broker(&mut self, n: u32) -> SessionId {
        self.open(n, MemberRole::Broker, 1)
    }

    pub(crate) fn open(&mut self, n: u32, role: MemberRole, incarnation: u64) -> SessionId {
        match self.lead(Command::OpenSession(member_spec(n, role, incarnation))) {
            Reply::Session { session, .. } => session,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn control(&mut self, action: ControlAction) -> ControlReply {
        match self.lead(Command::Control(ControlCommand { epoch: None, action })) {
            Reply::Control(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// As [`Self::new`], at the newest feature level, with a first tick.
    pub(crate) fn controlled() -> Self {
        let mut c = Self::new();
        c.control(ControlAction::RaiseFeatureLevel { level: tidemill_metadata::FEATURE_LEVEL });
        c.lead(Command::Tick { wall_ms: 1_000_000, jump: true });
        c
    }

    /// The live session of a member.
    pub(crate) fn session(&self, n: u32) -> SessionId {
        self.member(n).session.unwrap()
    }

    pub(crate) fn member(&self, n: u32) -> &tidemill_types::Member {
        self.state.member(member(n)).unwrap()
    }

    pub(crate) fn expire(&mut self, n: u32) {
        let session = self.session(n);
        self.lead(Command::ExpireSession { session, member: member(n) });
    }

    pub(crate) fn set_state(&mut self, n: u32, state: BookieState) -> Result<Reply, Rejection> {
        let command = Command::SetMemberState { member: member(n), state, restarting: false };
        self.send(SessionId::NONE, command).result
    }

    /// Assigns partition `index` of the topic to a broker, which acquires it.
    pub(crate) fn acquire(&mut self, broker: u32, index: u32) -> PartitionRecord {
        let partition = p(index);
        self.lead(Command::Assign(vec![Assignment { partition, broker: Some(member(broker)) }]));
        let seen = self.partition(index).epoch;
        let s = self.session(broker);
        match self.ok(s, Command::Acquire(vec![AcquireItem { partition, seen }])) {
            Reply::Acquired(mut v) => v.remove(0).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn partition(&self, index: u32) -> PartitionRecord {
        self.state.partition(p(index)).unwrap().clone()
    }

    pub(crate) fn ledger(&self, l: LedgerId) -> LedgerRecord {
        self.state.ledger(l).unwrap().clone()
    }

    /// A new ledger on bookies 1, 2, 3 for partition `index` in its current epoch, by its owner.
    pub(crate) fn create(&mut self, index: u32) -> LedgerId {
        let (s, epoch) = self.owner(index);
        self.ledger_of(s, create(p(index), epoch, &[1, 2, 3])).id
    }

    pub(crate) fn owner(&self, index: u32) -> (SessionId, Epoch) {
        let part = self.partition(index);
        (part.owner.unwrap().session, part.epoch)
    }

    pub(crate) fn ledger_of(&mut self, session: SessionId, command: Command) -> LedgerRecord {
        match self.ok(session, command) {
            Reply::Ledger(l) => l,
            other => panic!("{other:?}"),
        }
    }

    /// Partition 0 owned by broker 11 in epoch 1, with one open ledger in its chain.
    pub(crate) fn with_open_ledger() -> (Self, LedgerId) {
        let mut c = Self::new();
        c.acquire(11, 0);
        let l = c.create(0);
        let (s, epoch) = c.owner(0);
        c.ok(s, append(epoch, None, l, 0));
        (c, l)
    }

    pub(crate) fn recover(&mut self, l: LedgerId) -> LedgerRecord {
        let version = self.ledger(l).version;
        self.ledger_of(SessionId::NONE, Command::StartRecovery { ledger: l, version })
    }

    /// What closes `l` as it is now at entry `last` with `records` records.
    pub(crate) fn closing(&self, l: LedgerId, last: i64, records: u64) -> CloseLedger {
        closing(l, self.ledger(l).version, last, records)
    }
}

pub(crate) fn p(index: u32) -> PartitionId {
    PartitionId { topic: TopicId(1), index }
}

pub(crate) fn ids(bookies: &[u32]) -> Vec<BookieId> {
    bookies.iter().map(|n| member(*n)).collect()
}

pub(crate) fn create(partition: PartitionId, epoch: Epoch, bookies: &[u32]) -> Command {
    Command::CreateLedger(CreateLedger { partition, epoch, ensemble: ids(bookies), ack_quorum: 2 })
}

pub(crate) fn change(
    ledger: LedgerId,
    version: Version,
    first: i64,
    ensemble: &[u32],
    replaced: &[(u8, u32)],
) -> Command {
    Command::ChangeEnsemble(EnsembleChange {
        ledger,
        version,
        first_entry: EntryId(first),
        ensemble: ids(ensemble),
        replaced: replaced.iter().map(|(i, n)| (*i, member(*n))).collect(),
        under: Vec::new(),
    })
}

pub(crate) fn closing(ledger: LedgerId, version: Version, last: i64, records: u64) -> CloseLedger {
    CloseLedger {
        ledger,
        version,
        last_entry: EntryId(last),
        length: if last < 0 { 0 } else { 1_000 },
        records,
        fragments: Vec::new(),
        under: Vec::new(),
        limbo_counts: Vec::new(),
    }
}

pub(crate) fn link(ledger: LedgerId, base: i64) -> LinkLedger {
    LinkLedger { ledger, base_offset: Offset(base) }
}

pub(crate) fn append(epoch: Epoch, prev: Option<LedgerId>, l: LedgerId, base: i64) -> Command {
    Command::Append(Append { partition: p(0), epoch, prev, append: link(l, base) })
}

pub(crate) fn roll(epoch: Epoch, close: CloseLedger, l: LedgerId, base: i64) -> Command {
    Command::Roll(Roll { partition: p(0), epoch, close, append: link(l, base) })
}

pub(crate) fn take_over(epoch: Epoch, close: CloseLedger, append: Option<LinkLedger>) -> Command {
    Command::TakeOver(vec![TakeOver { partition: p(0), epoch, close, append }])
}

/// The outcome of the only element.
pub(crate) fn only(reply: Reply) -> Result<(), Rejection> {
    match reply {
        Reply::Each(mut v) => {
            assert_eq!(v.len(), 1);
            v.remove(0)
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_conflict(r: &Rejection, part: &str) {
    match r {
        Rejection::Conflict { why } | Rejection::NotAvailable { why } => assert!(why.contains(part), "{why}"),
        other => panic!("{other:?} instead of a conflict about {part:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_invalid(r: &Rejection, name: &str) {
    match r {
        Rejection::Invalid { field, .. } => assert_eq!(field, name),
        other => panic!("{other:?} instead of an invalid {name}"),
    }
}

#[track_caller]
pub(crate) fn assert_not_eligible(r: &Rejection, n: u32) {
    match r {
        Rejection::BookieNotEligible { bookie, .. } => assert_eq!(*bookie, member(n)),
        other => panic!("{other:?} instead of a refused bookie"),
    }
}
