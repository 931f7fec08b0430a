use tidemill_types::{BookieId, Epoch, FragmentSeq, MemberId, PartitionId, TopicId, meta::Rejection};

use super::*;
use crate::core::{Negative, Unknown};

fn b(n: u8) -> BookieId {
    MemberId(uuid::Uuid::from_u128(u128::from(n) + 1))
}

fn record(copies: u8, ack_quorum: u8, state: LedgerState) -> LedgerRecord {
    LedgerRecord {
        id: LedgerId(1),
        version: Version(3),
        partition: PartitionId { topic: TopicId(1), index: 0 },
        epoch: Epoch(1),
        ack_quorum,
        state,
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

fn entry(id: i64) -> Entry {
    Entry::encode(LedgerId(1), EntryId(id), EntryId(id - 1), 0, b"e", &[]).unwrap()
}

struct R {
    core: RecoveryCore,
    out: Vec<Output>,
}

impl R {
    fn fencing(record: LedgerRecord) -> Self {
        let mut r = Self { core: RecoveryCore::new(LedgerId(1), 1, Rules::default()), out: vec![] };
        r.core.start(&mut r.out);
        r.step(Input::Record(Some(record)));
        r
    }

    /// Fenced everywhere, nothing known.
    fn reading(copies: u8, ack_quorum: u8) -> Self {
        let mut r = Self::fencing(record(copies, ack_quorum, LedgerState::InRecovery));
        (0..copies).for_each(|i| r.confirmed(i, -1));
        r
    }

    fn step(&mut self, i: Input) {
        self.core.step(i, &mut self.out);
    }

    fn confirmed(&mut self, index: u8, lac: i64) {
        self.step(Input::Fenced { index, answer: FenceAnswer::Confirmed { lac: EntryId(lac) } });
    }

    fn read(&mut self, index: u8, e: i64, answer: ReadAnswer<Entry>) {
        self.step(Input::Read { index, entry: EntryId(e), answer });
    }

    fn negative(&mut self, index: u8, e: i64) {
        self.read(index, e, ReadAnswer::Negative(Negative::NoSuchEntry));
    }

    fn unknown(&mut self, index: u8, e: i64) {
        self.read(index, e, ReadAnswer::Unknown(Unknown::TimedOut));
    }

    fn found(&mut self, index: u8, e: i64) {
        self.read(index, e, ReadAnswer::Found(entry(e)));
    }

    fn written(&mut self, index: u8, e: i64, attempt: u32, answer: AddAnswer) {
        self.step(Input::Written { index, attempt, entry: EntryId(e), answer });
    }

    fn close(&self) -> Option<&CloseLedger> {
        self.out.iter().find_map(|o| match o {
            Output::Close { close, .. } => Some(close),
            _ => None,
        })
    }

    fn aborted(&self) -> Option<Abort> {
        self.out.iter().find_map(|o| match o {
            Output::Abort(a) => Some(*a),
            _ => None,
        })
    }

    fn reads(&self) -> Vec<(BookieId, i64, bool)> {
        self.out
            .iter()
            .filter_map(|o| match o {
                Output::Read { bookie, entry, fence, .. } => Some((*bookie, entry.0, *fence)),
                _ => None,
            })
            .collect()
    }
}

/// R1: every recovery read fences. R2: none before EC confirmations.
#[test]
fn reads_fence_and_wait_for_the_confirmations() {
    let mut r = R::fencing(record(3, 2, LedgerState::InRecovery));
    r.confirmed(0, -1);
    assert!(r.reads().is_empty());
    r.confirmed(0, -1);
    assert!(r.reads().is_empty(), "one bookie counted twice");
    r.confirmed(2, -1);
    assert_eq!(r.reads(), [(b(0), 0, true), (b(1), 0, true), (b(2), 0, true)]);
}

/// 1.6 step 3: Qa unknowns end it; a late confirmation still counts before that.
#[test]
fn too_many_unknown_fences_abort() {
    let mut r = R::fencing(record(3, 2, LedgerState::InRecovery));
    let unknown = FenceAnswer::Unknown(Unknown::TimedOut);
    r.step(Input::Fenced { index: 0, answer: unknown });
    r.confirmed(0, -1);
    r.step(Input::Fenced { index: 1, answer: unknown });
    assert_eq!(r.aborted(), None);
    r.step(Input::Fenced { index: 2, answer: unknown });
    assert_eq!(r.aborted(), Some(Abort::NotFenced));
}

/// R3, R4, R5 by brute force: every order of answers of 3/3/2 and 5/5/3 with the entry on exactly Qa bookies, any of which
/// may be silent, never truncates; without copies it needs QC negatives.
#[test]
fn no_order_of_answers_truncates_an_acknowledged_entry() {
    for (copies, qa) in [(3u8, 2u8), (5, 3)] {
        let mut order: Vec<u8> = (0..copies).collect();
        permutations(&mut order, 0, &mut |order| {
            for silent in 0u8..1 << copies {
                let mut r = R::reading(copies, qa);
                for i in order {
                    // Indexes below Qa have it.
                    match (*i < qa, silent >> i & 1 == 1) {
                        (_, true) => r.unknown(*i, 0),
                        (true, false) => r.found(*i, 0),
                        (false, false) => r.negative(*i, 0),
                    }
                }
                assert!(r.close().is_none_or(|c| c.last_entry >= EntryId(0)), "{order:?} {silent:b}");
                let copies_seen = (0..qa).any(|i| silent >> i & 1 == 0);
                assert_eq!(r.aborted().is_none(), copies_seen, "{order:?} {silent:b}");
            }
        });
    }
}

fn permutations(v: &mut [u8], from: usize, f: &mut impl FnMut(&[u8])) {
    if from == v.len() {
        return f(v);
    }
    for i in from..v.len() {
        v.swap(from, i);
        permutations(v, from + 1, f);
        v.swap(from, i);
    }
}

/// R5: decided at the threshold, with one bookie that never answers.
#[test]
fn the_end_is_decided_without_the_slowest() {
    let mut r = R::reading(3, 2);
    r.negative(0, 0);
    assert!(r.close().is_none());
    r.negative(1, 0);
    assert_eq!(r.close().unwrap().last_entry, EntryId::NONE);
}

/// R4: one no, one time-out, one late no: the late one may still decide; two time-outs abort.
#[test]
fn a_time_out_is_no_negative() {
    let mut r = R::reading(3, 2);
    r.negative(0, 0);
    r.unknown(1, 0);
    assert!(r.close().is_none() && r.aborted().is_none());
    r.negative(2, 0);
    assert!(r.close().is_some());
    let mut r = R::reading(3, 2);
    r.unknown(0, 0);
    r.unknown(1, 0);
    r.negative(2, 0);
    assert_eq!(r.aborted(), Some(Abort::Undecided(EntryId(0))));
}

/// R6: never below the last fragment (#2615); the base is the highest LAC.
#[test]
fn the_base_is_at_or_above_the_last_fragment() {
    let mut rec = record(3, 2, LedgerState::InRecovery);
    rec.fragments.push(Fragment { first_entry: EntryId(7), ensemble: vec![b(0), b(1), b(3)], under: vec![] });
    let mut r = R::fencing(rec.clone());
    r.confirmed(0, 2);
    r.confirmed(1, -1);
    assert_eq!(r.reads()[0].1, 7);
    assert_eq!(r.reads()[2].0, b(3));
    let mut r = R::fencing(rec);
    r.confirmed(0, 9);
    r.confirmed(2, 8);
    assert_eq!(r.reads()[0].1, 10);
}

/// R7, R8, R12: a bookie replaced during write-back is not read from, nothing is stored before the close, and the copies are
/// the bytes that were read.
#[test]
fn changes_during_write_back_stay_local() {
    let mut r = R::reading(3, 3);
    r.found(0, 0);
    r.written(0, 0, 0, AddAnswer::Ok);
    r.written(2, 0, 0, AddAnswer::Unknown(Unknown::Closed));
    assert!(r.out.iter().any(|o| matches!(o, Output::NeedSpare { index: 2, .. })));
    r.step(Input::Spare { index: 2, attempt: 0, spare: Some(Spare { bookie: b(3), limbo_count: 4 }) });
    r.found(1, 1);
    assert!(r.reads().iter().all(|(to, _, _)| *to != b(3)), "R7");
    for o in &r.out {
        if let Output::WriteBack { entry: e, .. } = o {
            assert_eq!(e.bytes(), entry(e.header().entry.0).bytes());
        }
    }
    // The failed bookie's late ack answers a void attempt.
    r.written(2, 0, 0, AddAnswer::Ok);
    for e in 0..2 {
        (0..2).for_each(|i| r.written(i, e, 0, AddAnswer::Ok));
    }
    r.negative(0, 2);
    assert!(r.close().is_none(), "entry 0 is not on Qa bookies yet");
    (0..2).for_each(|e| r.written(2, e, 1, AddAnswer::Ok));
    let c = r.close().unwrap();
    assert_eq!(c.last_entry, EntryId(1));
    assert_eq!(c.fragments.len(), 1);
    assert_eq!(c.fragments[0].ensemble, [b(0), b(1), b(3)]);
    assert_eq!(c.limbo_counts, [(b(3), 4)]);
    assert!(c.under.is_empty());
}

/// A change from a later entry on makes a fragment of its own, and names what the one before lacks.
#[test]
fn a_later_change_appends_a_fragment() {
    let mut r = R::reading(3, 2);
    r.found(0, 0);
    (0..2).for_each(|i| r.written(i, 0, 0, AddAnswer::Ok));
    r.found(0, 1);
    r.written(2, 1, 0, AddAnswer::Unknown(Unknown::ReadOnly));
    r.step(Input::Spare { index: 2, attempt: 0, spare: Some(Spare { bookie: b(3), limbo_count: 0 }) });
    r.written(0, 1, 0, AddAnswer::Ok);
    r.written(2, 1, 1, AddAnswer::Ok);
    (0..2).for_each(|i| r.negative(i, 2));
    let c = r.close().unwrap();
    let starts: Vec<i64> = c.fragments.iter().map(|f| f.first_entry.0).collect();
    assert_eq!(starts, [0, 1]);
    let under: Vec<(i64, i64)> = c.under.iter().map(|r| (r.first.0, r.last.0)).collect();
    assert_eq!(under, [(0, 1)]);
}

/// A change that no entry came to lie in is not stored.
#[test]
fn an_empty_local_fragment_is_dropped() {
    let mut r = R::reading(3, 2);
    r.found(0, 0);
    (0..2).for_each(|i| r.written(i, 0, 0, AddAnswer::Ok));
    r.written(2, 0, 0, AddAnswer::Unknown(Unknown::Closed));
    r.step(Input::Spare { index: 2, attempt: 0, spare: Some(Spare { bookie: b(3), limbo_count: 0 }) });
    (0..2).for_each(|i| r.negative(i, 1));
    let c = r.close().unwrap();
    assert!(c.fragments.is_empty() && c.limbo_counts.is_empty());
    assert_eq!(c.under.len(), 1);
}

/// 1.6 step 6: no spare, go on while Qa answer; fewer abort.
#[test]
fn without_spares_qa_members_are_enough() {
    let mut r = R::reading(3, 2);
    r.found(0, 0);
    for (n, i) in [2u8, 1].into_iter().enumerate() {
        r.written(i, 0, 0, AddAnswer::Unknown(Unknown::Closed));
        r.step(Input::Spare { index: i, attempt: 0, spare: None });
        assert_eq!(r.aborted().is_some(), n == 1);
    }
}

/// R24: copies that differ are an alarm.
#[test]
fn divergent_copies_abort() {
    let mut r = R::reading(3, 2);
    r.found(0, 0);
    r.written(1, 0, 0, AddAnswer::Conflict);
    assert_eq!(r.aborted(), Some(Abort::Divergent(EntryId(0))));
}

/// 1.6 step 1 and 7: closed already, gone, another recoverer's end.
#[test]
fn somebody_elses_end_is_taken() {
    let mut r = R::fencing(record(3, 2, LedgerState::Closed));
    assert!(matches!(r.out.pop(), Some(Output::Done(_))));
    r = R::reading(3, 2);
    (0..2).for_each(|i| r.negative(i, 0));
    r.out.clear();
    let refused = Rejection::VersionMismatch { current: Version(4) };
    r.step(Input::Closed(MetaOutcome::Rejected(refused)));
    assert!(matches!(r.out.pop(), Some(Output::ReadRecord)));
    let closed = LedgerRecord { last_entry: Some(EntryId(5)), ..record(3, 2, LedgerState::Closed) };
    r.step(Input::Record(Some(closed)));
    assert!(matches!(r.out.pop(), Some(Output::Done(rec)) if rec.last_entry == Some(EntryId(5))));
}

/// An entry under another entry's name is no copy.
#[test]
fn a_misnamed_entry_is_unknown() {
    let mut r = R::reading(3, 2);
    r.read(0, 0, ReadAnswer::Found(entry(1)));
    assert!(!r.out.iter().any(|o| matches!(o, Output::WriteBack { .. })));
    (1..3).for_each(|i| r.negative(i, 0));
    assert_eq!(r.close().unwrap().last_entry, EntryId::NONE);
}
