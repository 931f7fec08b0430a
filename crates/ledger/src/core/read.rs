//! A plain read (1.7): one Ok is enough, a negative verdict needs every replica and an unchanged record.

use tidemill_types::{BookieId, EntryId, LedgerRecord};

use super::ReadAnswer;

/// What happens to a read of type `T` (an entry, a head, a run of entries).
#[derive(Clone, Debug)]
pub enum Input<T> {
    /// A replica answered about the first entry.
    Answer {
        /// Which.
        bookie: BookieId,
        /// What.
        answer: ReadAnswer<T>,
    },
    /// The first replica takes longer than the latency percentile: ask a second one as well.
    Slow,
    /// The re-read that [`Output::ReadRecord`] asked for.
    Record(Option<LedgerRecord>),
}

/// What a read wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<T> {
    /// Ask this replica.
    Ask(BookieId),
    /// Read the record: only if it names the same bookies is a negative the truth (GC may have emptied former members).
    ReadRecord,
    /// Found.
    Found(T),
    /// The ledger has no such entry.
    NoSuchEntry,
    /// The ledger was deleted.
    Deleted,
    /// At least one replica gave no usable answer.
    Unknown,
}

/// One read.
#[derive(Clone, Debug)]
pub struct ReadCore {
    entry: EntryId,
    replicas: Vec<BookieId>,
    /// How many were asked.
    asked: usize,
    negative: usize,
    unknown: usize,
    /// How often the record changed under the read.
    rounds: u32,
    over: bool,
}

impl ReadCore {
    /// A read of `entry`; `replicas` in the order in which they are asked.
    #[must_use]
    pub fn new(entry: EntryId, replicas: Vec<BookieId>) -> Self {
        Self { entry, replicas, asked: 0, negative: 0, unknown: 0, rounds: 0, over: false }
    }

    /// The first outputs.
    pub fn start<T>(&mut self, out: &mut Vec<Output<T>>) {
        if !self.ask(out) {
            self.over = true;
            out.push(Output::Unknown);
        }
    }

    fn ask<T>(&mut self, out: &mut Vec<Output<T>>) -> bool {
        let Some(b) = self.replicas.get(self.asked) else { return false };
        self.asked += 1;
        out.push(Output::Ask(*b));
        true
    }

    /// One step.
    pub fn step<T>(&mut self, input: Input<T>, out: &mut Vec<Output<T>>) {
        if self.over {
            return;
        }
        match input {
            Input::Slow => {
                self.ask(out);
            }
            Input::Answer { bookie, .. } if !self.replicas.contains(&bookie) => {}
            Input::Answer { answer: ReadAnswer::Found(t), .. } => {
                self.over = true;
                out.push(Output::Found(t));
            }
            Input::Answer { answer: ReadAnswer::Negative(_), .. } => {
                self.negative += 1;
                self.next(out);
            }
            Input::Answer { answer: ReadAnswer::Unknown(_), .. } => {
                self.unknown += 1;
                self.next(out);
            }
            Input::Record(None) => {
                self.over = true;
                out.push(Output::Deleted);
            }
            Input::Record(Some(r)) => self.on_record(&r, out),
        }
    }

    fn next<T>(&mut self, out: &mut Vec<Output<T>>) {
        if self.ask(out) || self.negative + self.unknown < self.replicas.len() {
            return;
        }
        if self.unknown > 0 {
            self.over = true;
            out.push(Output::Unknown);
        } else {
            out.push(Output::ReadRecord);
        }
    }

    fn on_record<T>(&mut self, record: &LedgerRecord, out: &mut Vec<Output<T>>) {
        let now: Vec<BookieId> =
            record.fragment_of(self.entry).map(|f| f.ensemble.clone()).unwrap_or_default();
        let same = now.len() == self.replicas.len() && now.iter().all(|b| self.replicas.contains(b));
        if same {
            self.over = true;
            out.push(Output::NoSuchEntry);
        } else if self.rounds >= 3 {
            self.over = true;
            out.push(Output::Unknown);
        } else {
            *self = Self { rounds: self.rounds + 1, ..Self::new(self.entry, now) };
            self.start(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{
        BookieId, Epoch, Fragment, FragmentSeq, LedgerId, LedgerState, PartitionId, TopicId, Version,
    };

    use super::*;
    use crate::core::{Negative, Unknown};

    fn b(n: u128) -> BookieId {
        tidemill_types::MemberId(uuid::Uuid::from_u128(n))
    }

    fn record(ensemble: &[u128]) -> LedgerRecord {
        LedgerRecord {
            id: LedgerId(1),
            version: Version(1),
            partition: PartitionId { topic: TopicId(1), index: 0 },
            epoch: Epoch(1),
            ack_quorum: 2,
            state: LedgerState::Closed,
            last_entry: Some(EntryId(9)),
            length: Some(0),
            records: Some(0),
            fragments: vec![Fragment {
                first_entry: EntryId(0),
                ensemble: ensemble.iter().map(|n| b(*n)).collect(),
                under: vec![],
            }],
            fragment_seq: FragmentSeq(0),
            unchecked: false,
            repair: None,
            created_ms: 0,
        }
    }

    fn run(core: &mut ReadCore, i: Input<u8>) -> Vec<Output<u8>> {
        let mut out = vec![];
        core.step(i, &mut out);
        out
    }

    fn negative(n: u128) -> Input<u8> {
        Input::Answer { bookie: b(n), answer: ReadAnswer::Negative(Negative::NoSuchEntry) }
    }

    #[test]
    fn falls_back_and_one_copy_is_enough() {
        let mut c = ReadCore::new(EntryId(3), vec![b(1), b(2), b(3)]);
        let mut out = vec![];
        c.start::<u8>(&mut out);
        assert_eq!(out, [Output::Ask(b(1))]);
        assert_eq!(run(&mut c, negative(1)), [Output::Ask(b(2))]);
        let unknown = Input::Answer { bookie: b(2), answer: ReadAnswer::Unknown(Unknown::Corrupt) };
        assert_eq!(run(&mut c, unknown), [Output::Ask(b(3))]);
        let found = Input::Answer { bookie: b(3), answer: ReadAnswer::Found(7) };
        assert_eq!(run(&mut c, found), [Output::Found(7)]);
        assert_eq!(run(&mut c, negative(3)), []);
    }

    #[test]
    fn one_unknown_makes_the_verdict_unknown() {
        let mut c = ReadCore::new(EntryId(3), vec![b(1), b(2)]);
        c.start::<u8>(&mut vec![]);
        let unknown = Input::Answer { bookie: b(1), answer: ReadAnswer::Unknown(Unknown::TimedOut) };
        run(&mut c, unknown);
        assert_eq!(run(&mut c, negative(2)), [Output::Unknown]);
    }

    #[test]
    fn negatives_of_former_members_are_no_verdict() {
        let mut c = ReadCore::new(EntryId(3), vec![b(1), b(2)]);
        c.start::<u8>(&mut vec![]);
        run(&mut c, negative(1));
        assert_eq!(run(&mut c, negative(2)), [Output::ReadRecord]);
        assert_eq!(run(&mut c, Input::Record(Some(record(&[1, 3])))), [Output::Ask(b(1))]);
        run(&mut c, negative(1));
        assert_eq!(run(&mut c, negative(3)), [Output::ReadRecord]);
        assert_eq!(run(&mut c, Input::Record(Some(record(&[3, 1])))), [Output::NoSuchEntry]);
    }

    #[test]
    fn speculation_asks_a_second_replica_without_giving_the_first_up() {
        let mut c = ReadCore::new(EntryId(3), vec![b(1), b(2)]);
        c.start::<u8>(&mut vec![]);
        assert_eq!(run(&mut c, Input::Slow), [Output::Ask(b(2))]);
        assert_eq!(run(&mut c, Input::Slow), []);
        assert_eq!(run(&mut c, negative(2)), []);
        assert_eq!(
            run(&mut c, Input::Answer { bookie: b(1), answer: ReadAnswer::Found(1) }),
            [Output::Found(1)]
        );
    }

    #[test]
    fn a_deleted_ledger_is_said_so() {
        let mut c = ReadCore::new(EntryId(3), vec![b(1)]);
        c.start::<u8>(&mut vec![]);
        run(&mut c, negative(1));
        assert_eq!(run(&mut c, Input::Record(None)), [Output::Deleted]);
    }
}
