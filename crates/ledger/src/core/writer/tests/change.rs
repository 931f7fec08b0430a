//! Ensemble changes (1.4).

use super::*;

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
