//! A writer without I/O: what it sends and says after a list of inputs.

mod acks;
mod change;
mod stop;

use std::time::Duration;

use bytes::Bytes;
use tidemill_types::{
    BookieId, EntryId, Epoch, Fragment, FragmentSeq, Incarnation, LedgerId, LedgerRecord, LedgerState,
    MemberId, PartitionId, TopicId, Version,
    meta::{EnsembleChange, Rejection},
};

use super::*;
use crate::core::Unknown;

fn b(n: u8) -> BookieId {
    MemberId(uuid::Uuid::from_u128(u128::from(n) + 1))
}

fn record(copies: u8, ack_quorum: u8) -> LedgerRecord {
    LedgerRecord {
        id: LedgerId(1),
        version: Version(1),
        partition: PartitionId { topic: TopicId(1), index: 0 },
        epoch: Epoch(1),
        ack_quorum,
        state: LedgerState::Open,
        last_entry: None,
        length: None,
        records: None,
        fragments: vec![Fragment {
            first_entry: EntryId(0),
            ensemble: (0..copies).map(b).collect(),
            under: vec![],
        }],
        fragment_seq: FragmentSeq(0),
        unchecked: false,
        repair: None,
        created_ms: 0,
    }
}

/// A writer with what it sent and said since the last look.
struct W {
    core: WriterCore,
    out: Vec<Output>,
}

impl W {
    fn new() -> Self {
        let mut w = Self { core: WriterCore::new(record(3, 2), 8, Rules::default()), out: vec![] };
        (0..5).for_each(|n| w.up(n, 1));
        w
    }

    fn up(&mut self, n: u8, incarnation: u64) {
        self.core
            .step(Input::BookieUp { bookie: b(n), incarnation: Incarnation(incarnation) }, &mut self.out);
    }

    fn add(&mut self) -> EntryId {
        self.core.add(b"e", &[Bytes::from_static(b"body")], &mut self.out).unwrap()
    }

    fn add_one(&mut self) {
        self.add();
    }

    /// The attempt valid for the index, as its last send says.
    fn attempt(&self, index: u8) -> Attempt {
        self.core.members[usize::from(index)].attempt
    }

    fn answer(&mut self, index: u8, bookie: u8, attempt: Attempt, entry: i64, answer: AddAnswer) {
        let input = Input::Answer { index, bookie: b(bookie), attempt, entry: EntryId(entry), answer };
        self.core.step(input, &mut self.out);
    }

    fn ack(&mut self, index: u8, entry: i64) {
        let m = &self.core.members[usize::from(index)];
        let (bookie, attempt) = (m.bookie, m.attempt);
        let input = Input::Answer { index, bookie, attempt, entry: EntryId(entry), answer: AddAnswer::Ok };
        self.core.step(input, &mut self.out);
    }

    fn replace(&mut self, failed: u8, spare: u8) {
        self.core.step(Input::Replace { failed: &[b(failed)], spares: &[b(spare)] }, &mut self.out);
    }

    fn proposed(&mut self) -> EnsembleChange {
        let out = std::mem::take(&mut self.out);
        out.into_iter()
            .rev()
            .find_map(|o| match o {
                Output::Propose(c) => Some(c),
                _ => None,
            })
            .expect("a proposal")
    }

    /// The record after the change.
    fn applied(&self, c: &EnsembleChange) -> LedgerRecord {
        let mut r = self.core.record().clone();
        r.version = Version(r.version.0 + 1);
        r.fragment_seq = FragmentSeq(r.fragment_seq.0 + 1);
        match r.fragments.last_mut() {
            Some(f) if f.first_entry == c.first_entry => f.ensemble.clone_from(&c.ensemble),
            _ => r.fragments.push(Fragment {
                first_entry: c.first_entry,
                ensemble: c.ensemble.clone(),
                under: vec![],
            }),
        }
        r
    }

    fn commit(&mut self, c: &EnsembleChange) {
        let r = self.applied(c);
        self.core.step(Input::ChangeOutcome(MetaOutcome::Committed(r)), &mut self.out);
        (0..5).for_each(|n| self.up(n, 1));
    }

    fn sends(&mut self) -> Vec<(u8, BookieId, i64)> {
        std::mem::take(&mut self.out)
            .into_iter()
            .filter_map(|o| match o {
                Output::Send { index, bookie, entry, .. } => Some((index, bookie, entry.header().entry.0)),
                _ => None,
            })
            .collect()
    }
}
