use tidemill_types::{
    BookieId, BookieState, Endpoint, Entry, EntryId, EntryRange, Epoch, Fragment, FragmentSeq, Incarnation,
    LedgerId, LedgerRecord, LedgerState, MemberId, PartitionId, Repair, TopicId, Version,
    meta::{Rejection, RepairOutcome},
};
use uuid::Uuid;

use super::*;
use crate::{
    BookieInfo, BookieTable,
    core::{AddAnswer, MetaOutcome, Negative, ReadAnswer, Unknown},
};

fn bookie(n: u128) -> BookieId {
    MemberId(Uuid::from_u128(n))
}

fn info(n: u128, state: BookieState) -> BookieInfo {
    BookieInfo {
        id: bookie(n),
        incarnation: Incarnation(1),
        endpoint: Endpoint { host: "h".into(), port: 1 },
        zone: String::new(),
        state,
        limbo_count: 0,
        restarting: false,
        live: !matches!(state, BookieState::Lost),
        free_bytes: 0,
    }
}

fn table(states: &[(u128, BookieState)]) -> BookieTable {
    states.iter().map(|(n, s)| info(*n, *s)).collect()
}

fn record(last: Option<i64>, fragments: &[(i64, &[u128])]) -> LedgerRecord {
    LedgerRecord {
        id: LedgerId(1),
        version: Version(5),
        partition: PartitionId { topic: TopicId(1), index: 0 },
        epoch: Epoch(1),
        ack_quorum: 2,
        state: if last.is_some() { LedgerState::Closed } else { LedgerState::Open },
        last_entry: last.map(EntryId),
        length: last.map(|_| 0),
        records: last.map(|_| 0),
        fragments: fragments
            .iter()
            .map(|(first, e)| Fragment {
                first_entry: EntryId(*first),
                ensemble: e.iter().map(|n| bookie(*n)).collect(),
                under: vec![],
            })
            .collect(),
        fragment_seq: FragmentSeq(0),
        unchecked: false,
        repair: None,
        created_ms: 0,
    }
}

fn under_repair(mut r: LedgerRecord, target: u128) -> LedgerRecord {
    r.repair = Some(Repair { target: bookie(target), limbo_count: 0, worker: bookie(target), since_ms: 0 });
    r
}

fn entry(n: i64) -> Entry {
    Entry::encode(LedgerId(1), EntryId(n), EntryId(-1), 0, b"", &[]).unwrap()
}

fn held(ranges: &[(i64, i64)]) -> Held {
    let ranges = ranges.iter().map(|(a, b)| EntryRange { first: EntryId(*a), last: EntryId(*b) }).collect();
    Held::Ranges { ranges, complete: true }
}

use BookieState::{Draining, Limbo, Lost, Rw};

struct Run {
    core: RepairCore,
    table: BookieTable,
    out: Vec<Output>,
}

impl Run {
    fn new(table: BookieTable, me: u128) -> Self {
        let mut core = RepairCore::new(bookie(me), 4, RepairRules::default());
        let mut out = Vec::new();
        core.start(&mut out);
        assert!(matches!(out.pop(), Some(Output::ReadRecord)));
        Self { core, table, out }
    }

    fn step(&mut self, input: Input) -> Vec<Output> {
        self.core.step(input, &self.table, 3, &mut self.out);
        std::mem::take(&mut self.out)
    }
}

#[test]
fn a_lost_member_is_replaced_by_verbatim_copies() {
    let mut r = Run::new(table(&[(1, Rw), (2, Rw), (3, Lost), (4, Rw)]), 4);
    let out = r.step(Input::Record(Some(under_repair(record(Some(1), &[(0, &[1, 2, 3])]), 4))));
    assert!(matches!(out[..], [Output::List]));
    let out = r.step(Input::Listed(held(&[(0, 0)])));
    let [Output::Read { source, entry: e }] = out[..] else { panic!("{out:?}") };
    assert_eq!((source, e), (bookie(1), EntryId(1)), "the lost one is never asked");
    let no = ReadAnswer::Negative(Negative::NoSuchEntry);
    let out = r.step(Input::Read { source, entry: e, answer: no });
    let [Output::Read { source, .. }] = out[..] else { panic!("{out:?}") };
    let out = r.step(Input::Read { source, entry: e, answer: ReadAnswer::Found(entry(1)) });
    let [Output::Write(w)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(w.bytes(), entry(1).bytes(), "R12");
    let out = r.step(Input::Written { entry: e, answer: AddAnswer::Ok });
    assert!(matches!(out[..], [Output::List]), "durability is asked, not remembered");
    let out = r.step(Input::Listed(held(&[(0, 1)])));
    let [Output::Finish(end)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(end.version, Version(5));
    let fragments = vec![EntryId(0)];
    assert_eq!(end.outcome, RepairOutcome::Replaced { from: bookie(3), fragments });
}

#[test]
fn unknown_is_not_negative_and_neither_is_a_gap() {
    for (answer, denied) in
        [(ReadAnswer::Negative(Negative::NoSuchEntry), true), (ReadAnswer::Unknown(Unknown::TimedOut), false)]
    {
        let mut r = Run::new(table(&[(1, Rw), (2, Lost), (4, Rw)]), 4);
        r.step(Input::Record(Some(under_repair(record(Some(0), &[(0, &[1, 2])]), 4))));
        r.step(Input::Listed(held(&[])));
        let out = r.step(Input::Read { source: bookie(1), entry: EntryId(0), answer });
        let [Output::Abort(why, end)] = &out[..] else { panic!("{out:?}") };
        assert_eq!(*why, if denied { Abort::Denied(EntryId(0)) } else { Abort::NoSource(EntryId(0)) });
        assert_eq!(end.outcome, RepairOutcome::Abandoned);
        assert!(r.core.is_over());
    }
}

#[test]
fn an_empty_ledger_is_swapped_without_a_copy() {
    let mut r = Run::new(table(&[(1, Rw), (2, Lost), (4, Rw)]), 4);
    r.step(Input::Record(Some(under_repair(record(Some(-1), &[(0, &[1, 2])]), 4))));
    assert!(matches!(r.step(Input::Listed(held(&[])))[..], [Output::Finish(_)]));
}

#[test]
fn a_version_that_moved_means_record_and_list_again() {
    let mut r = Run::new(table(&[(1, Rw), (2, Lost), (4, Rw)]), 4);
    let mut rec = under_repair(record(Some(0), &[(0, &[1, 2])]), 4);
    r.step(Input::Record(Some(rec.clone())));
    assert!(matches!(r.step(Input::Listed(held(&[(0, 0)])))[..], [Output::Finish(_)]));
    let moved = Rejection::VersionMismatch { current: Version(6) };
    assert!(matches!(r.step(Input::Finished(MetaOutcome::Rejected(moved)))[..], [Output::ReadRecord]));
    rec.version = Version(6);
    assert!(matches!(r.step(Input::Record(Some(rec.clone())))[..], [Output::List]));
    // Collected meanwhile: copied again, not taken for done.
    assert!(matches!(r.step(Input::Listed(held(&[])))[..], [Output::Read { .. }]));
    rec.repair = None;
    let mut r = Run::new(r.table, 4);
    assert!(matches!(r.step(Input::Record(Some(rec)))[..], [Output::NotMine]));
}

#[test]
fn what_is_written_and_does_not_stay_is_no_progress() {
    let mut r = Run::new(table(&[(1, Rw), (2, Lost), (4, Rw)]), 4);
    r.step(Input::Record(Some(under_repair(record(Some(0), &[(0, &[1, 2])]), 4))));
    r.step(Input::Listed(held(&[])));
    let answer = ReadAnswer::Found(entry(0));
    r.step(Input::Read { source: bookie(1), entry: EntryId(0), answer });
    r.step(Input::Written { entry: EntryId(0), answer: AddAnswer::Ok });
    assert!(matches!(r.step(Input::Listed(held(&[])))[..], [Output::Abort(Abort::NotTaken(_), _)]));
}

#[test]
fn jobs() {
    let t = table(&[(1, Rw), (2, Draining), (3, Lost), (4, Rw), (5, Limbo)]);
    let open = record(None, &[(0, &[1, 2, 3]), (10, &[1, 2, 4])]);
    let first = vec![EntryId(0)];
    assert_eq!(
        job(&open, &t, 3, bookie(4)),
        Some(Job::Replace { from: bookie(3), fragments: first.clone() })
    );
    assert_eq!(needs(&open, &t, 3, |_| true).close, Some(bookie(2)), "the open end is its owner's");
    let closed = record(Some(20), &[(0, &[1, 4])]);
    assert_eq!(job(&closed, &t, 3, bookie(5)), Some(Job::Grow { fragments: first }));
    assert_eq!(job(&closed, &t, 3, bookie(1)), Some(Job::Fill));
    assert_eq!(job(&closed, &t, 2, bookie(5)), None);
    assert_eq!(
        needs(&closed, &t, 3, |_| true).copies,
        Copies::NoTarget,
        "neither limbo nor draining is newly named"
    );
    let want = needs(&record(Some(20), &[(0, &[1, 3])]), &t, 2, |_| true);
    assert_eq!(want.copies, Copies::Target { bookie: bookie(4), limbo_count: 0 });
    assert_eq!(needs(&record(Some(20), &[(0, &[1, 3])]), &t, 2, |_| false).copies, Copies::Busy);
    assert!(needs(&record(Some(20), &[(0, &[1, 5])]), &t, 2, |_| true).look);
    assert!(needs(&record(Some(20), &[(0, &[1, 4])]), &t, 2, |_| true).none());
}

#[test]
fn only_a_pass_in_which_everybody_answered_is_complete() {
    let t = table(&[(1, Rw), (2, Rw), (3, Lost), (5, Limbo)]);
    let r = record(Some(9), &[(0, &[1, 2, 3])]);
    let rules = LookRules::default();
    let whole = || held(&[(0, 9)]);
    assert_eq!(verdict(&r, &t, |_| whole(), rules), Verdict::Complete, "the lost one is not asked");
    let silent = |b| if b == bookie(2) { Held::Unknown } else { whole() };
    assert_eq!(verdict(&r, &t, silent, rules), Verdict::Unknown);
    let lacks = |b| if b == bookie(2) { held(&[(0, 3), (5, 9)]) } else { whole() };
    assert_eq!(verdict(&r, &t, lacks, rules), Verdict::Lacks { bookie: bookie(2), limbo_count: 0 });
    let vague = |b| match b {
        b if b == bookie(2) => Held::Ranges { ranges: vec![], complete: false },
        _ => whole(),
    };
    assert_eq!(verdict(&r, &t, vague, rules), Verdict::Unknown, "unknown is not negative");
    let limbo = record(Some(9), &[(0, &[1, 5])]);
    let vague = |b| if b == bookie(5) { Held::Ranges { ranges: vec![], complete: false } } else { whole() };
    assert_eq!(verdict(&limbo, &t, vague, rules), Verdict::Lacks { bookie: bookie(5), limbo_count: 0 });
    let gone = record(Some(9), &[(0, &[3])]);
    assert_eq!(verdict(&gone, &t, |_| whole(), rules), Verdict::Unknown, "nobody is left to clear anything");
}
