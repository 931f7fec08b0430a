//! What ends a ledger: a fence, a recovery, the own close (1.3 step 4, 1.5).

use super::*;

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
