//! A small cluster in the state machine, without a quorum around it.

use std::time::Duration;

use tidemill_metadata::State;
use tidemill_types::{
    BookieId, BookieState, ClusterId, Endpoint, EntryId, EntryRange, Incarnation, LanePosition, LedgerId,
    LedgerRecord, MemberRole, RequestId, Revision, SessionId, TopicConfig, TopicName,
    meta::{
        AcquireItem, Append, Assignment, BookieSpec, CloseLedger, Command, CreateLedger, FinishRepair,
        LinkLedger, MemberSpec, Rejection, RepairOutcome, Reply, Request,
    },
};
use uuid::Uuid;

use super::{BROKER, P, id};
use crate::lead::auditor::pass::{Memory, Pass};

/// Four bookies, a broker that owns the one partition of a topic with three copies.
pub(super) struct Cluster {
    pub(super) state: State,
    at: u64,
}

impl Cluster {
    pub(super) fn new() -> Self {
        let mut c = Self { state: State::new(), at: 0 };
        c.ok(SessionId::NONE, Command::Init { cluster: ClusterId(Uuid::from_u128(1)) });
        for n in 1..=4 {
            c.bookie(n, "");
        }
        c.open(BROKER, MemberRole::Broker, "");
        let name = TopicName::new("t").unwrap();
        let config = TopicConfig::default();
        c.broker(Command::CreateTopic { name, partitions: 1, config });
        c.acquire();
        c
    }

    pub(super) fn bookie(&mut self, n: u128, zone: &str) {
        let spec = BookieSpec {
            cluster: None,
            id: id(n),
            name: format!("bookie-{n}"),
            last_incarnation: None,
            incarnation: Incarnation(7),
            lanes: vec![LanePosition { lane: id(n + 1_000), segment: 0, group: 0 }],
            found_loss: false,
        };
        self.ok(SessionId::NONE, Command::BookieBoot(spec));
        self.open(n, MemberRole::Bookie, zone);
    }

    pub(super) fn open(&mut self, n: u128, role: MemberRole, zone: &str) {
        let spec = MemberSpec {
            cluster: Some(ClusterId(Uuid::from_u128(1))),
            id: id(n),
            role,
            name: format!("m-{n}"),
            incarnation: Incarnation(7),
            endpoint: Endpoint { host: "h".into(), port: 1 },
            zone: zone.to_owned(),
            free_bytes: 1 << 30,
            read_only: false,
        };
        self.ok(SessionId::NONE, Command::OpenSession(spec));
    }

    pub(super) fn send(&mut self, session: SessionId, command: Command) -> Result<Reply, Rejection> {
        self.at += 1;
        let request = Request { session, request: RequestId(self.at), command };
        let result = self.state.apply(Revision(self.at), &request).result;
        assert_eq!(self.state.check(), Ok(()));
        result
    }

    pub(super) fn ok(&mut self, session: SessionId, command: Command) -> Reply {
        self.send(session, command).unwrap()
    }

    pub(super) fn lead(&mut self, command: Command) -> Reply {
        self.ok(SessionId::NONE, command)
    }

    pub(super) fn broker(&mut self, command: Command) -> Reply {
        let session = self.state.member(id(BROKER)).unwrap().session.unwrap();
        self.ok(session, command)
    }

    pub(super) fn acquire(&mut self) {
        let broker = Some(id(BROKER));
        self.lead(Command::Assign(vec![Assignment { partition: P, broker }]));
        let seen = self.state.partition(P).unwrap().epoch;
        self.broker(Command::Acquire(vec![AcquireItem { partition: P, seen }]));
    }

    /// An open ledger on these bookies, the last of the chain.
    pub(super) fn ledger(&mut self, ensemble: &[u128]) -> LedgerId {
        let epoch = self.state.partition(P).unwrap().epoch;
        let ensemble = ensemble.iter().map(|n| id(*n)).collect();
        let create = CreateLedger { partition: P, epoch, ensemble, ack_quorum: 2 };
        let Reply::Ledger(l) = self.broker(Command::CreateLedger(create)) else { panic!() };
        let prev = self.state.partition(P).unwrap().chain.last().map(|e| e.ledger);
        let append = LinkLedger { ledger: l.id, base_offset: tidemill_types::Offset(0) };
        self.broker(Command::Append(Append { partition: P, epoch, prev, append }));
        l.id
    }

    pub(super) fn close(&mut self, ledger: LedgerId, under: Vec<EntryRange>) {
        let epoch = self.state.partition(P).unwrap().epoch;
        let close = CloseLedger {
            ledger,
            version: self.record(ledger).version,
            last_entry: EntryId(9),
            length: 0,
            records: 0,
            fragments: vec![],
            under,
            limbo_counts: vec![],
        };
        self.broker(Command::Close { close, epoch: Some(epoch) });
    }

    pub(super) fn record(&self, ledger: LedgerId) -> LedgerRecord {
        self.state.ledger(ledger).unwrap().clone()
    }

    pub(super) fn set(&mut self, n: u128, state: BookieState) {
        self.lead(Command::SetMemberState { member: id(n), state, restarting: false });
    }

    pub(super) fn expire(&mut self, n: u128) {
        let session = self.state.member(id(n)).unwrap().session.unwrap();
        self.lead(Command::ExpireSession { session, member: id(n) });
    }

    /// A pass whose commands are applied; those that were refused are given back.
    pub(super) fn pass(&mut self, m: &mut Memory, now: Duration) -> Pass {
        let pass = m.pass(&self.state, now);
        for c in &pass.commands {
            self.lead(c.clone());
        }
        pass
    }

    /// The worker of the repair under way ends it well.
    pub(super) fn finish(&mut self, ledger: LedgerId, outcome: RepairOutcome) {
        let record = self.record(ledger);
        let target = record.repair.unwrap().target;
        self.lead(Command::FinishRepair(FinishRepair { ledger, version: record.version, target, outcome }));
    }

    pub(super) fn ensemble(&self, ledger: LedgerId) -> Vec<BookieId> {
        self.record(ledger).fragments[0].ensemble.clone()
    }
}
