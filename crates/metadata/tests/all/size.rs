//! What a snapshot costs the apply path of a large cluster. Run by hand, for its figures:
//! `cargo test --release -p tidemill-metadata --test all size -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use tidemill_metadata::State;
use tidemill_types::meta::{
    AcquireItem, Append, Assignment, Command, CreateLedger, LinkLedger, Reply, Request,
};
use tidemill_types::{
    Epoch, LedgerId, Offset, PartitionId, RequestId, Revision, SessionId, TopicConfig, TopicId,
};

use crate::harness::*;

struct Timed {
    state: State,
    n: u64,
    longest: Duration,
}

impl Timed {
    fn send(&mut self, session: SessionId, command: Command) -> Reply {
        self.n += 1;
        let request = Request { session, request: RequestId(self.n), command };
        let start = Instant::now();
        let applied = self.state.apply(Revision(self.n + 100), &request);
        self.longest = self.longest.max(start.elapsed());
        applied.result.unwrap()
    }
}

#[test]
#[ignore = "measures; its bound is of an idle machine and a release build"]
#[expect(clippy::print_stderr, reason = "its figures are its point")]
fn size_apply_pauses_at_most_20_ms_with_100_000_partitions() {
    let c = Cluster::new();
    let s = c.session(11);
    let mut t = Timed { state: c.state, n: 1_000, longest: Duration::ZERO };
    let topic = TopicId(2);
    let command =
        Command::CreateTopic { name: name("big"), partitions: 100_000, config: TopicConfig::default() };
    t.send(s, command);
    eprintln!("create the topic: {:?}", t.longest);
    let id = |index| PartitionId { topic, index };
    t.longest = Duration::ZERO;
    for first in (0..100_000).step_by(1_000) {
        let all = || (first..first + 1_000).map(id);
        t.send(
            SessionId::NONE,
            Command::Assign(
                all().map(|partition| Assignment { partition, broker: Some(member(11)) }).collect(),
            ),
        );
        t.send(
            s,
            Command::Acquire(all().map(|partition| AcquireItem { partition, seen: Epoch(0) }).collect()),
        );
    }
    eprintln!("longest batch of 1 000: {:?}", t.longest);
    let create = |index| {
        Command::CreateLedger(CreateLedger {
            partition: id(index),
            epoch: Epoch(1),
            ensemble: ids(&[1, 2, 3]),
            ack_quorum: 2,
        })
    };
    let mut ledgers = Vec::new();
    for index in 0..100_000 {
        if let Reply::Ledger(l) = t.send(s, create(index)) {
            let append = LinkLedger { ledger: l.id, base_offset: Offset(0) };
            t.send(s, Command::Append(Append { partition: id(index), epoch: Epoch(1), prev: None, append }));
            ledgers.push(l.id);
        }
    }
    t.longest = Duration::ZERO;
    let start = Instant::now();
    let handle = t.state.snapshot();
    eprintln!("take a handle: {:?}", start.elapsed());
    for index in (0..100_000).step_by(97) {
        t.send(s, create(index));
    }
    eprintln!("longest command while a handle is held: {:?}", t.longest);
    assert!(t.longest < Duration::from_millis(20));
    let start = Instant::now();
    let bytes: usize = handle.pieces().map(|p| p.unwrap().len()).sum();
    eprintln!("write it out: {bytes} bytes in {:?}", start.elapsed());
    let bytes = handle.encode().unwrap();
    let start = Instant::now();
    assert_eq!(State::decode(&bytes).unwrap().revision(), handle.revision());
    eprintln!("read it back: {:?}", start.elapsed());
    let start = Instant::now();
    t.send(s, Command::DeleteTopic { topic });
    eprintln!("delete the topic: {:?}", start.elapsed());
    assert!(t.state.ledger(ledgers[0]).is_none() && ledgers[0] > LedgerId(0));
}
