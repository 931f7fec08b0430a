//! `TakeOver`, `Roll`, `Append`, `AdvanceLogStart`: the chain (1.8).

use tidemill_types::meta::{Command, Rejection, Reply, TakeOver};
use tidemill_types::{
    ChainElement, EntryId, Epoch, LedgerId, LedgerState, Offset, PartitionRecord, SessionId, Version,
};

use crate::harness::*;

fn partition(reply: Reply) -> PartitionRecord {
    match reply {
        Reply::Partition(p) => p,
        other => panic!("{other:?}"),
    }
}

fn chain(c: &Cluster) -> Vec<(u64, i64)> {
    c.partition(0).chain.iter().map(|e| (e.ledger.0, e.base_offset.0)).collect()
}

fn trim(epoch: Epoch, to: i64) -> Command {
    Command::AdvanceLogStart { partition: p(0), epoch, to: Offset(to) }
}

/// Closes the last ledger idly.
fn close_last(c: &mut Cluster, last: i64, records: u64) -> LedgerId {
    let (s, epoch) = c.owner(0);
    let l = c.partition(0).chain.last().unwrap().ledger;
    let close = c.closing(l, last, records);
    c.ok(s, Command::Close { close, epoch: Some(epoch) });
    l
}

#[test]
fn roll_closes_and_links() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let next = c.create(0);
    let version = c.partition(0).version;
    let applied = c.send(s, roll(epoch, c.closing(l, 9, 7), next, 7));
    let part = partition(applied.result.unwrap());
    assert_eq!(part.chain[1], ChainElement { ledger: next, base_offset: Offset(7) });
    assert_eq!(part.version.0, version.0 + 1);
    assert_eq!(applied.changes.len(), 1);
    assert_eq!((c.ledger(l).state, c.ledger(next).state), (LedgerState::Closed, LedgerState::Open));
    // A roll behind the roll: the base goes on.
    let third = c.create(0);
    c.ok(s, roll(epoch, c.closing(next, 4, 5), third, 12));
    assert_eq!(chain(&c), [(1, 0), (2, 7), (3, 12)]);
}

#[test]
fn rolls_that_are_refused() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let next = c.create(0);
    let close = c.closing(l, 9, 7);
    let mismatch = Rejection::EpochMismatch { current: epoch };
    assert_eq!(c.no(s, roll(Epoch(0), close.clone(), next, 7)), mismatch);
    let other = c.session(12);
    assert_eq!(c.no(other, roll(epoch, close.clone(), next, 7)), mismatch);
    assert_conflict(&c.no(s, roll(epoch, c.closing(l, 9, 0), next, 0)), "never rolled");
    assert_conflict(&c.no(s, roll(epoch, c.closing(next, 9, 7), next, 7)), "the last ledger");
    assert_conflict(&c.no(s, roll(epoch, close.clone(), next, 8)), "base offset is 7");
    assert_conflict(&c.no(s, roll(epoch, close.clone(), l, 7)), "in the chain already");
    assert!(matches!(c.no(s, roll(epoch, close.clone(), LedgerId(99), 7)), Rejection::NotFound { .. }));
    let stale = closing(l, Version(9), 9, 7);
    assert_eq!(c.no(s, roll(epoch, stale, next, 7)), Rejection::VersionMismatch { current: Version(1) });
    c.recover(next);
    let state = Rejection::LedgerState { ledger: next, state: LedgerState::InRecovery };
    assert_eq!(c.no(s, roll(epoch, close, next, 7)), state);
    // On another partition: nothing to roll.
    c.acquire(11, 1);
    let roll = tidemill_types::meta::Roll {
        partition: p(1),
        epoch: Epoch(1),
        close: c.closing(l, 9, 7),
        append: link(next, 7),
    };
    assert_conflict(&c.no(s, Command::Roll(roll)), "is empty");
}

/// The auditor closed the ledger at the very end that the owner meant to.
#[test]
fn a_roll_of_a_ledger_that_others_closed_alike() {
    for same in [true, false] {
        let (mut c, l) = Cluster::with_open_ledger();
        let (s, epoch) = c.owner(0);
        let next = c.create(0);
        let close = c.closing(l, 9, 7);
        c.recover(l);
        let end = if same { (9, 7) } else { (8, 6) };
        let theirs = c.closing(l, end.0, end.1);
        c.lead(Command::Close { close: theirs, epoch: None });
        let applied = c.send(s, roll(epoch, close, next, 7));
        if same {
            assert_eq!(partition(applied.result.unwrap()).chain.len(), 2);
        } else {
            assert_eq!(applied.result, Err(Rejection::OtherEnd { ledger: l }));
        }
    }
}

#[test]
fn take_over_closes_what_the_old_owner_left() {
    for at_once in [true, false] {
        let (mut c, l) = Cluster::with_open_ledger();
        c.expire(11);
        c.acquire(12, 0);
        let (s, epoch) = c.owner(0);
        let next = c.create(0);
        let still_open = only(c.ok(s, take_over(epoch, c.closing(l, 9, 7), None)));
        assert_eq!(still_open, Err(Rejection::LedgerState { ledger: l, state: LedgerState::Open }));
        c.recover(l);
        let close = c.closing(l, 9, 7);
        let append = at_once.then_some(link(next, 7));
        let applied = c.send(s, take_over(epoch, close.clone(), append));
        assert_eq!(only(applied.result.unwrap()), Ok(()));
        assert_eq!(applied.changes.len(), usize::from(at_once));
        assert!(c.ledger(l).unchecked);
        assert_eq!(c.partition(0).chain.len(), if at_once { 2 } else { 1 });
        if !at_once {
            assert_eq!(only(c.ok(s, take_over(epoch, close, None))), Ok(()));
            c.ok(s, append_next(epoch, l, next));
        }
    }
}

fn append_next(epoch: Epoch, prev: LedgerId, next: LedgerId) -> Command {
    append(epoch, Some(prev), next, 7)
}

#[test]
fn take_overs_are_judged_one_by_one() {
    let (mut c, l) = Cluster::with_open_ledger();
    c.acquire(11, 1);
    c.recover(l);
    let (s, epoch) = c.owner(0);
    let next = c.create(0);
    let good = TakeOver { partition: p(0), epoch, close: c.closing(l, 9, 7), append: Some(link(next, 7)) };
    let items = vec![
        TakeOver { epoch: Epoch(9), ..good.clone() },
        TakeOver { partition: p(1), ..good.clone() },
        TakeOver { partition: p(9), ..good.clone() },
        TakeOver { append: Some(link(next, 8)), ..good.clone() },
        TakeOver { close: closing(l, Version(9), 9, 7), ..good.clone() },
        good.clone(),
        good,
    ];
    match c.ok(s, Command::TakeOver(items)) {
        Reply::Each(v) => {
            assert_eq!(v[0], Err(Rejection::EpochMismatch { current: epoch }));
            assert_conflict(v[1].as_ref().unwrap_err(), "is empty");
            assert!(matches!(v[2], Err(Rejection::NotFound { .. })));
            // Neither half of a refused element took place.
            assert_conflict(v[3].as_ref().unwrap_err(), "base offset is 7");
            assert_eq!(v[4], Err(Rejection::VersionMismatch { current: Version(2) }));
            assert_eq!(v[5], Ok(()));
            assert_conflict(v[6].as_ref().unwrap_err(), "the last ledger");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn append_behind_a_close() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let next = c.create(0);
    let open = Rejection::LedgerState { ledger: l, state: LedgerState::Open };
    assert_eq!(c.no(s, append(epoch, Some(l), next, 7)), open);
    close_last(&mut c, 9, 7);
    assert_eq!(c.no(s, append(Epoch(0), Some(l), next, 7)), Rejection::EpochMismatch { current: epoch });
    assert_conflict(&c.no(s, append(epoch, None, next, 7)), "not none");
    assert_conflict(&c.no(s, append(epoch, Some(next), next, 7)), "the last ledger");
    assert_conflict(&c.no(s, append(epoch, Some(l), next, 6)), "base offset is 7");
    let part = partition(c.ok(s, append(epoch, Some(l), next, 7)));
    assert_eq!(part.chain.len(), 2);
    // An empty ledger closes and is followed without a gap.
    close_last(&mut c, 0, 0);
    let third = c.create(0);
    c.ok(s, append(epoch, Some(next), third, 7));
    assert_eq!(chain(&c), [(1, 0), (2, 7), (3, 7)]);
}

#[test]
fn the_first_of_a_chain() {
    let mut c = Cluster::new();
    c.acquire(11, 0);
    let (s, epoch) = c.owner(0);
    let l = c.create(0);
    assert_conflict(&c.no(s, append(epoch, Some(l), l, 0)), "is empty");
    assert_conflict(&c.no(s, append(epoch, None, l, 1)), "base offset is 0");
    c.ok(s, append(epoch, None, l, 0));
}

/// M22: an `Append` that was delayed until after a later ledger was linked and closed must not link at a stale base.
#[test]
fn m22_a_delayed_append_finds_another_last_ledger() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let (delayed, sent) = (c.create(0), c.create(0));
    close_last(&mut c, 9, 7);
    let late = append(epoch, Some(l), delayed, 7);
    c.ok(s, append(epoch, Some(l), sent, 7));
    close_last(&mut c, 3, 4);
    assert_conflict(&c.no(s, late), "the last ledger");
    // Also when that ledger stayed empty, so that the base would fit again.
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let (delayed, sent) = (c.create(0), c.create(0));
    close_last(&mut c, 9, 7);
    c.ok(s, append(epoch, Some(l), sent, 7));
    close_last(&mut c, -1, 0);
    assert_conflict(&c.no(s, append(epoch, Some(l), delayed, 7)), "the last ledger");
}

/// M22: the auditor closed L while the owner meant to take it over; `Append` names L and goes on behind it.
#[test]
fn m22_append_after_the_auditors_close() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    c.recover(l);
    let theirs = c.closing(l, 8, 6);
    c.lead(Command::Close { close: theirs, epoch: None });
    let next = c.create(0);
    let mine = closing(l, Version(2), 9, 7);
    assert_eq!(only(c.ok(s, take_over(epoch, mine, None))), Err(Rejection::OtherEnd { ledger: l }));
    c.ok(s, append(epoch, Some(l), next, 6));
    assert_eq!(chain(&c), [(1, 0), (2, 6)]);
}

/// M23: a broker that comes back in a later epoch must not link a ledger of its earlier one, whether the auditor has
/// removed it or not.
#[test]
fn m23_a_ledger_of_an_earlier_epoch_is_not_linked() {
    for removed in [true, false] {
        let (mut c, l) = Cluster::with_open_ledger();
        let old = c.create(0);
        close_last(&mut c, 9, 7);
        let s = c.session(11);
        c.ok(s, Command::Release(vec![tidemill_types::meta::Release { partition: p(0), epoch: Epoch(1) }]));
        c.acquire(12, 0);
        let (b, _) = c.owner(0);
        c.ok(b, Command::Release(vec![tidemill_types::meta::Release { partition: p(0), epoch: Epoch(2) }]));
        c.acquire(11, 0);
        if removed {
            c.lead(Command::RemoveLedger { ledger: old, version: Version(1) });
        }
        let r = c.no(s, append(Epoch(3), Some(l), old, 7));
        if removed {
            assert!(matches!(r, Rejection::NotFound { .. }));
        } else {
            assert_conflict(&r, "in epoch 1");
        }
        // In a roll and a take-over likewise.
        let next = c.create(0);
        c.ok(s, append(Epoch(3), Some(l), next, 7));
        assert!(matches!(
            c.no(s, roll(Epoch(3), c.closing(next, 1, 1), old, 8)),
            Rejection::NotFound { .. } | Rejection::Conflict { .. }
        ));
        c.recover(next);
        let close = c.closing(next, 1, 1);
        assert!(only(c.ok(s, take_over(Epoch(3), close, Some(link(old, 8))))).is_err());
        assert_eq!(c.ledger(next).state, LedgerState::InRecovery);
    }
}

/// M23: nor one that was created for another partition.
#[test]
fn m23_a_ledger_of_another_partition_is_not_linked() {
    let (mut c, l) = Cluster::with_open_ledger();
    c.acquire(11, 1);
    let other = c.create(1);
    close_last(&mut c, 9, 7);
    let (s, epoch) = c.owner(0);
    assert_conflict(&c.no(s, append(epoch, Some(l), other, 7)), "created for 1/1");
}

#[test]
fn a_linked_ledger_never_comes_back() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    close_last(&mut c, 9, 7);
    let next = c.create(0);
    c.ok(s, append(epoch, Some(l), next, 7));
    close_last(&mut c, 3, 4);
    // Linked, closed: neither it nor the one before.
    for again in [l, next] {
        assert_conflict(&c.no(s, append(epoch, Some(next), again, 11)), "in the chain already");
    }
    // Trimmed away: its record is gone.
    c.ok(s, trim(epoch, 7));
    assert!(matches!(c.no(s, append(epoch, Some(next), l, 11)), Rejection::NotFound { .. }));
}

#[test]
fn log_start_moves_forward_and_takes_whole_ledgers() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let (second, third) = (c.create(0), c.create(0));
    c.ok(s, roll(epoch, c.closing(l, 9, 7), second, 7));
    c.ok(s, roll(epoch, c.closing(second, 9, 5), third, 12));
    assert_eq!(c.no(s, trim(Epoch(0), 5)), Rejection::EpochMismatch { current: epoch });
    let part = partition(c.ok(s, trim(epoch, 6)));
    assert_eq!((part.log_start, part.chain.len()), (Offset(6), 3));
    let part = partition(c.ok(s, trim(epoch, 11)));
    assert_eq!((part.log_start, part.chain.len()), (Offset(11), 2));
    assert!(c.state.ledger(l).is_none());
    // Backwards or the same: nothing.
    let same = c.send(s, trim(epoch, 3));
    assert_eq!(partition(same.result.unwrap()).log_start, Offset(11));
    assert!(same.changes.is_empty());
    // Into the open one; the last stays in the chain whatever it holds.
    let part = partition(c.ok(s, trim(epoch, 14)));
    assert_eq!((part.log_start, chain(&c)), (Offset(14), vec![(3, 12)]));
    close_last(&mut c, 9, 5);
    assert_invalid(&c.no(s, trim(epoch, 18)), "to");
    let part = partition(c.ok(s, trim(epoch, 17)));
    assert_eq!((part.log_start, part.chain.len()), (Offset(17), 1));
    let next = c.create(0);
    c.ok(s, append(epoch, Some(third), next, 17));
    c.ok(s, trim(epoch, 18));
    assert_eq!(chain(&c), [(4, 17)]);
}

#[test]
fn log_start_of_an_empty_chain() {
    let mut c = Cluster::new();
    c.acquire(11, 0);
    let (s, epoch) = c.owner(0);
    assert_invalid(&c.no(s, trim(epoch, 1)), "to");
    c.ok(s, trim(epoch, 0));
}

/// R9: a retried `Roll` whose first try committed gets that answer; the ledger is closed once.
#[test]
fn a_retried_roll_gets_its_answer() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let next = c.create(0);
    let request = tidemill_types::meta::Request {
        session: s,
        request: tidemill_types::RequestId(9_000),
        command: roll(epoch, c.closing(l, 9, 7), next, 7),
    };
    let first = c.apply(&request);
    let again = c.apply(&request);
    assert_eq!(first.result, again.result);
    assert!(first.result.is_ok() && again.changes.is_empty());
    assert_eq!(c.ledger(l).version, Version(2));
    assert_eq!(c.ledger(l).last_entry, Some(EntryId(9)));
    // Once the session ended the outcome is settled by reading.
    c.expire(11);
    assert_eq!(c.apply(&request).result, Err(Rejection::SessionExpired));
    assert!(c.state.is_live(c.session(12)) && !c.state.is_live(s) && s != SessionId::NONE);
}
