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

/// 1.3 step 3: acknowledgement is in order of ids.
#[test]
fn acks_out_of_order_wait_for_the_oldest() {
    let mut w = W::new();
    (0..3).for_each(|_| w.add_one());
    for e in [2, 1] {
        w.ack(0, e);
        w.ack(1, e);
    }
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.ack(2, 0);
    assert_eq!(w.core.lac(), EntryId(2));
}

/// R10: the same ack twice is one ack.
#[test]
fn a_repeated_ack_counts_once() {
    let mut w = W::new();
    w.add();
    w.ack(0, 0);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
}

/// R10, M20: B is replaced by D and D by B again; the first ack of B comes late.
#[test]
fn an_ack_of_a_void_attempt_is_dropped() {
    let mut w = W::new();
    w.add();
    w.ack(0, 0);
    let old = w.attempt(1);
    w.replace(1, 3);
    let c = w.proposed();
    w.commit(&c);
    w.replace(3, 1);
    let c = w.proposed();
    w.commit(&c);
    assert_eq!(w.core.members[1].bookie, b(1));
    w.answer(1, 1, old, 0, AddAnswer::Ok);
    assert!(w.out.iter().any(|o| matches!(o, Output::VoidAnswer)));
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.ack(1, 0);
    assert_eq!(w.core.lac(), EntryId(0));
}

/// R10: another process of the same bookie is another attempt.
#[test]
fn an_ack_of_an_earlier_process_is_dropped() {
    let mut w = W::new();
    w.add();
    let old = w.attempt(1);
    w.core.step(Input::BookieDown { bookie: b(1) }, &mut w.out);
    w.up(1, 2);
    w.answer(1, 1, old, 0, AddAnswer::Ok);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
}

/// R12: the bytes are the same for all copies, resends and replacements, with the LAC of the first send.
#[test]
fn an_entry_is_encoded_once() {
    let mut w = W::new();
    w.add();
    w.ack(0, 0);
    w.ack(1, 0);
    w.add();
    w.core.step(Input::BookieDown { bookie: b(2) }, &mut w.out);
    w.up(2, 2);
    w.ack(0, 1);
    w.ack(1, 1);
    w.add();
    w.replace(2, 3);
    let mut all: Vec<Entry> = vec![];
    for o in &w.out {
        if let Output::Send { entry, .. } = o {
            all.push(entry.clone());
        }
    }
    let c = w.proposed();
    w.commit(&c);
    for o in &w.out {
        if let Output::Send { entry, .. } = o {
            all.push(entry.clone());
        }
    }
    for id in 0..3 {
        let copies: Vec<_> = all.iter().filter(|e| e.header().entry == EntryId(id)).collect();
        assert!(copies.len() >= 3);
        assert!(copies.iter().all(|e| e.bytes() == copies[0].bytes()));
    }
    assert_eq!(all.iter().find(|e| e.header().entry == EntryId(1)).unwrap().header().lac, EntryId(0));
}

/// R10, M7: nothing goes to the new bookie before the commit; then everything from the fragment's start on does.
#[test]
fn the_new_ensemble_waits_for_its_commit() {
    let mut w = W::new();
    (0..2).for_each(|_| w.add_one());
    w.ack(0, 0);
    w.ack(1, 0);
    w.ack(2, 1); // a bit that has to go
    w.out.clear();
    w.replace(2, 3);
    let c = w.proposed();
    assert_eq!(c.first_entry, EntryId(1));
    w.add();
    assert!(w.sends().iter().all(|(_, to, _)| *to != b(3)));
    w.commit(&c);
    assert_eq!(w.sends(), [(2, b(3), 1), (2, b(3), 2)]);
    w.ack(0, 1);
    assert_eq!(w.core.lac(), EntryId(0), "the old bookie's ack was kept");
    w.ack(2, 1);
    assert_eq!(w.core.lac(), EntryId(1));
}

/// 1.4 step 1, M21: during a change only the indexes that stay count, also for acks recorded before.
#[test]
fn only_staying_indexes_count_during_a_change() {
    let mut w = W::new();
    w.add();
    w.ack(2, 0);
    w.replace(2, 3);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.ack(1, 0);
    assert_eq!(w.core.lac(), EntryId(0), "produce goes on with the two that stay");
    let c = w.proposed();
    w.add();
    w.commit(&c);
    let sent = w.sends();
    assert!(sent.contains(&(2, b(3), 0)), "also what was acknowledged meanwhile: {sent:?}");
}

/// 1.8, M25: a change of unknown outcome is sent again, the same, while the version stands.
#[test]
fn an_unknown_change_is_never_given_up() {
    let mut w = W::new();
    w.add();
    w.replace(2, 3);
    let c = w.proposed();
    w.ack(2, 0); // the bookie is back
    for _ in 0..3 {
        w.core.step(Input::ChangeOutcome(MetaOutcome::Unknown), &mut w.out);
        assert!(matches!(w.out.pop(), Some(Output::ReadRecord)));
        let same = w.core.record().clone();
        w.core.step(Input::Record(Some(same)), &mut w.out);
        assert_eq!(w.proposed(), c);
        assert!(w.core.is_unsettled());
    }
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE, "the leaving index counted");
    let there = w.applied(&c);
    w.core.step(Input::ChangeOutcome(MetaOutcome::Unknown), &mut w.out);
    w.core.step(Input::Record(Some(there)), &mut w.out);
    assert!(!w.core.is_unsettled());
    assert_eq!(w.core.fragments().last().unwrap().ensemble[2], b(3));
}

/// 1.4 step 3: the version moved without the change: not applied, all indexes count again.
#[test]
fn a_change_that_lost_to_a_repair_is_tried_again() {
    let mut w = W::new();
    w.add();
    w.replace(2, 3);
    w.ack(2, 0);
    w.ack(0, 0);
    let refused = Rejection::VersionMismatch { current: Version(2) };
    w.core.step(Input::ChangeOutcome(MetaOutcome::Rejected(refused)), &mut w.out);
    let moved = LedgerRecord { version: Version(2), ..w.core.record().clone() };
    w.core.step(Input::Record(Some(moved)), &mut w.out);
    assert!(w.out.iter().any(|o| matches!(o, Output::ChangeAborted)));
    assert_eq!(w.core.lac(), EntryId(0));
    w.replace(2, 3);
    assert_eq!(w.proposed().version, Version(2));
}

/// 1.3 step 4: IN_RECOVERY found by a command stops the ledger for good.
#[test]
fn in_recovery_stops_the_writer() {
    let mut w = W::new();
    w.add();
    w.replace(2, 3);
    let r = LedgerRecord { state: LedgerState::InRecovery, version: Version(2), ..w.core.record().clone() };
    w.core.step(Input::ChangeOutcome(MetaOutcome::Unknown), &mut w.out);
    w.core.step(Input::Record(Some(r)), &mut w.out);
    assert!(w.core.is_fenced());
    w.ack(0, 0);
    w.ack(1, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
    assert_eq!(w.core.pending().count(), 1);
    assert_eq!(w.core.add(b"", &[], &mut w.out), Err(AddRefused::Stopped));
}

/// 1.3 step 4, and a void Fenced (first touch of a replaced bookie) is not one.
#[test]
fn fenced_stops_unless_the_attempt_is_void() {
    let mut w = W::new();
    w.add();
    let old = w.attempt(2);
    w.replace(2, 3);
    let c = w.proposed();
    w.commit(&c);
    w.answer(2, 2, old, 0, AddAnswer::Fenced);
    assert!(!w.core.is_fenced());
    let now = w.attempt(0);
    w.answer(0, 0, now, 0, AddAnswer::Fenced);
    assert!(w.core.is_fenced());
}

/// R28: overload and unknowns bring the same attempt again and nothing else.
#[test]
fn overload_is_waited_out() {
    let mut w = W::new();
    w.add();
    let a = w.attempt(1);
    w.out.clear();
    let retry_after = Duration::from_millis(30);
    w.answer(1, 1, a, 0, AddAnswer::Overloaded { retry_after });
    w.answer(1, 1, a, 0, AddAnswer::Unknown(Unknown::Undecided));
    assert!(matches!(w.out[0], Output::ResendLater { after: Some(d), .. } if d == retry_after));
    assert!(matches!(w.out[1], Output::ResendLater { after: None, .. }));
    assert_eq!(w.out.len(), 2);
    w.core.step(Input::ResendDue { index: 1, attempt: a, entry: EntryId(0) }, &mut w.out);
    assert_eq!(w.sends(), [(1, b(1), 0)]);
}

/// R28: no spare, no change; once back everything in memory is sent and the ledger is whole again.
#[test]
fn degraded_and_restored() {
    let mut w = W::new();
    w.core.step(Input::BookieDown { bookie: b(2) }, &mut w.out);
    w.core.step(Input::Replace { failed: &[b(2)], spares: &[] }, &mut w.out);
    w.core.step(Input::Replace { failed: &[b(2)], spares: &[] }, &mut w.out);
    assert_eq!(w.out.iter().filter(|o| matches!(o, Output::Degraded(_))).count(), 1);
    for e in 0..3 {
        w.add();
        w.ack(0, e);
        w.ack(1, e);
    }
    assert_eq!(w.core.lac(), EntryId(2));
    w.out.clear();
    w.up(2, 2);
    assert_eq!(w.sends(), [(2, b(2), 0), (2, b(2), 1), (2, b(2), 2)]);
    (0..3).for_each(|e| w.ack(2, e));
    assert!(w.out.iter().any(|o| matches!(o, Output::Restored(_))));
    w.core.begin_close(&mut w.out).unwrap();
    assert!(w.core.close_command().unwrap().under.is_empty());
}

/// R28, 1.3 step 6: past the cap acknowledged copies are given up, others never.
#[test]
fn shedding_gives_up_acknowledged_entries_only() {
    let mut w = W::new();
    for e in 0..2 {
        w.add();
        w.ack(0, e);
        w.ack(1, e);
    }
    w.add();
    w.core.step(Input::Shed { bookie: b(2) }, &mut w.out);
    assert!(w.out.iter().any(|o| matches!(o, Output::RollWanted)));
    w.ack(2, 2);
    w.ack(0, 2);
    assert_eq!(w.core.lac(), EntryId(2));
    w.core.begin_close(&mut w.out).unwrap();
    let under = w.core.close_command().unwrap().under;
    // Entry 2 lacks index 1 (M31).
    assert_eq!(under, [tidemill_types::EntryRange { first: EntryId(0), last: EntryId(2) }]);
}

/// R22: a bookie that a repair of this ledger named holds it fenced and is not chosen.
#[test]
fn a_repairs_target_is_not_chosen() {
    let mut r = record(3, 2);
    r.repair = Some(tidemill_types::Repair { target: b(3), limbo_count: 0, worker: b(0), since_ms: 0 });
    let mut core = WriterCore::new(r, 8, Rules::default());
    let mut out = vec![];
    core.step(Input::Replace { failed: &[b(0)], spares: &[b(3), b(4)] }, &mut out);
    assert!(matches!(&out[0], Output::Propose(c) if c.ensemble[0] == b(4)));
}

/// Changes are capped; then a roll is wanted instead.
#[test]
fn changes_are_capped() {
    let mut core = WriterCore::new(record(3, 2), 0, Rules::default());
    let mut out = vec![];
    core.step(Input::Replace { failed: &[b(0)], spares: &[b(4)] }, &mut out);
    assert!(!out.iter().any(|o| matches!(o, Output::Propose(_))));
    assert!(out.iter().any(|o| matches!(o, Output::RollWanted)));
}

/// 1.5, M24: from the close on the LAC stands; an unknown outcome is settled with the same end.
#[test]
fn the_lac_stands_from_the_close_on() {
    let mut w = W::new();
    (0..2).for_each(|_| w.add_one());
    w.ack(0, 0);
    w.ack(1, 0);
    w.core.begin_close(&mut w.out).unwrap();
    let first = w.core.close_command().unwrap();
    assert_eq!((first.last_entry, first.length), (EntryId(0), 5));
    w.ack(0, 1);
    w.ack(1, 1);
    w.core.step(Input::CloseOutcome(MetaOutcome::Unknown), &mut w.out);
    let same = w.core.record().clone();
    w.core.step(Input::Record(Some(same)), &mut w.out);
    assert!(w.out.iter().any(|o| matches!(o, Output::CloseSettled(CloseState::SendAgain))));
    assert_eq!(w.core.lac(), EntryId(0));
    assert_eq!(w.core.resume(&mut w.out), Err(CloseRefused::AlreadyClosing));
    let again = w.core.close_command().unwrap();
    assert_eq!((again.version, again.last_entry), (first.version, first.last_entry));
    // Another end is never overwritten.
    let mut other = w.core.record().clone();
    other.state = LedgerState::Closed;
    other.last_entry = Some(EntryId(1));
    other.length = Some(10);
    w.core.step(Input::CloseOutcome(MetaOutcome::Unknown), &mut w.out);
    w.core.step(Input::Record(Some(other)), &mut w.out);
    assert!(w.core.is_fenced());
}

/// A definite refusal settles the close only when no earlier send of it is open.
#[test]
fn a_refusal_does_not_settle_an_earlier_unknown() {
    let mut w = W::new();
    w.core.begin_close(&mut w.out).unwrap();
    w.core.close_command().unwrap();
    w.core.step(Input::CloseOutcome(MetaOutcome::Unknown), &mut w.out);
    let same = w.core.record().clone();
    w.core.step(Input::Record(Some(same)), &mut w.out);
    w.core.close_command().unwrap();
    let refused = Rejection::Conflict { why: "link".into() };
    w.core.step(Input::CloseOutcome(MetaOutcome::Rejected(refused)), &mut w.out);
    assert_eq!(w.core.resume(&mut w.out), Err(CloseRefused::AlreadyClosing));
}

/// 1.3 step 6: memory is given back in order as copies complete.
#[test]
fn entries_leave_memory_when_all_copies_are_there() {
    let mut w = W::new();
    (0..3).for_each(|_| w.add_one());
    for e in 0..3 {
        (0..2).for_each(|i| w.ack(i, e));
    }
    assert_eq!(w.core.ops.len(), 3);
    w.ack(2, 1);
    assert!(w.core.ops[1].entry.is_none() && w.core.ops.len() == 3);
    w.ack(2, 0);
    assert_eq!(w.core.ops.len(), 1);
    assert_eq!(w.core.unacknowledged().map(|(_, u)| u).collect::<Vec<_>>(), [0, 0, 57]);
}

/// M31 with changes: what a replaced index lacks is named by its change when it lies in the last fragment, and by the close
/// when it lies in an earlier one.
#[test]
fn what_replaced_indexes_lack_is_named_once() {
    let range = |first, last| tidemill_types::EntryRange { first: EntryId(first), last: EntryId(last) };
    let mut w = W::new();
    for e in 0..2 {
        w.add();
        w.ack(0, e);
        w.ack(1, e);
    }
    w.replace(2, 3); // index 2 lacks 0 and 1
    let c = w.proposed();
    assert_eq!(c.under, [range(0, 1)]);
    w.commit(&c);
    for e in 2..4 {
        w.add();
        w.ack(0, e);
        w.ack(2, e);
    }
    w.replace(1, 4); // index 1 lacks 2 and 3
    let c = w.proposed();
    assert_eq!(c.under, [range(2, 3)]);
    w.core.step(Input::ChangeOutcome(MetaOutcome::Unknown), &mut w.out);
    let same = w.core.record().clone();
    w.core.step(Input::Record(Some(same)), &mut w.out);
    assert_eq!(w.proposed(), c);
    w.commit(&c);
    w.add();
    w.ack(0, 4);
    w.ack(1, 4);
    w.core.begin_close(&mut w.out).unwrap();
    assert_eq!(w.core.close_command().unwrap().under, [range(4, 4)]);
}

/// An entry of an earlier fragment that still waits for a member which is replaced later.
#[test]
fn a_gap_in_an_earlier_fragment_waits_for_the_close() {
    let range = |first, last| tidemill_types::EntryRange { first: EntryId(first), last: EntryId(last) };
    let mut w = W::new();
    w.add();
    w.ack(1, 0);
    w.ack(2, 0); // index 0 is slow
    w.replace(2, 3);
    let c = w.proposed();
    assert!(c.under.is_empty());
    w.commit(&c);
    w.replace(0, 4);
    let c = w.proposed();
    assert_eq!((c.first_entry, c.under.len()), (EntryId(1), 0));
    w.commit(&c);
    w.core.begin_close(&mut w.out).unwrap();
    assert_eq!(w.core.close_command().unwrap().under, [range(0, 0)]);
}

/// A change that never left gives its index back; one with an open send does not.
#[test]
fn a_change_that_was_not_sent_is_given_up_unless_a_send_is_open() {
    let mut w = W::new();
    w.add();
    w.replace(2, 3);
    w.ack(2, 0);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.core.step(Input::ChangeNotSent, &mut w.out);
    assert_eq!(w.core.lac(), EntryId(0));
    w.add();
    w.replace(2, 3);
    let c = w.proposed();
    w.core.step(Input::ChangeOutcome(MetaOutcome::Unknown), &mut w.out);
    let same = w.core.record().clone();
    w.core.step(Input::Record(Some(same)), &mut w.out);
    w.core.step(Input::ChangeNotSent, &mut w.out);
    assert_eq!(w.proposed(), c);
    w.ack(2, 1);
    w.ack(0, 1);
    assert_eq!(w.core.lac(), EntryId(0));
}
