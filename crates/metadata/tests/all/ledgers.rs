//! `CreateLedger`, `ChangeEnsemble`, `StartRecovery` and `StartRecoveries`, `RemoveLedger`.

use tidemill_types::meta::{
    Command, ControlAction, CreateLedger, MAX_BATCH, RecoveryStart, Rejection, Reply, StartRepair,
};
use tidemill_types::{
    BookieState, EntryId, EntryRange, Epoch, FragmentSeq, LedgerId, LedgerState, SessionId, Version,
};

use crate::harness::*;

fn range(first: i64, last: i64) -> EntryRange {
    EntryRange { first: EntryId(first), last: EntryId(last) }
}

#[test]
fn create_ledgers() {
    let mut c = Cluster::new();
    c.acquire(11, 0);
    let first = c.create(0);
    let l = c.ledger(first);
    assert_eq!((l.id, l.version, l.partition, l.epoch), (LedgerId(1), Version(1), p(0), Epoch(1)));
    assert_eq!((l.state, l.ack_quorum, l.last_entry), (LedgerState::Open, 2, None));
    assert_eq!(l.fragments[0].ensemble, ids(&[1, 2, 3]));
    assert_eq!(c.create(0), LedgerId(2));
    assert_eq!(c.state.named_count(member(1)), 2);
    // R28: fewer than the topic's copies, not below the ack quorum.
    let (s, _) = c.owner(0);
    c.ok(s, create(p(0), Epoch(1), &[1, 2]));
}

#[test]
fn creations_that_are_refused() {
    let mut c = Cluster::new();
    c.acquire(11, 0);
    let (s, _) = c.owner(0);
    for bookies in [&[][..], &[1], &[1, 2, 3, 4, 5, 6, 7, 8]] {
        assert_invalid(&c.no(s, create(p(0), Epoch(1), bookies)), "ensemble");
    }
    let zero = CreateLedger { partition: p(0), epoch: Epoch(1), ensemble: ids(&[1]), ack_quorum: 0 };
    assert_invalid(&c.no(s, Command::CreateLedger(zero)), "ensemble");
    assert_invalid(&c.no(s, create(p(0), Epoch(1), &[1, 2, 1])), "ensemble");
    let mismatch = Rejection::EpochMismatch { current: Epoch(1) };
    assert_eq!(c.no(s, create(p(0), Epoch(2), &[1, 2, 3])), mismatch);
    let other = c.session(12);
    assert_eq!(c.no(other, create(p(0), Epoch(1), &[1, 2, 3])), mismatch);
    assert!(matches!(c.no(s, create(p(9), Epoch(1), &[1, 2, 3])), Rejection::NotFound { .. }));
    assert_not_eligible(&c.no(s, create(p(0), Epoch(1), &[1, 2, 9])), 9);
    assert_not_eligible(&c.no(s, create(p(0), Epoch(1), &[1, 2, 11])), 11);
    for state in [BookieState::Ro, BookieState::Draining] {
        c.set_state(4, state).unwrap();
        assert_not_eligible(&c.no(s, create(p(0), Epoch(1), &[1, 2, 4])), 4);
    }
}

#[test]
fn ensemble_change_appends_or_replaces_in_place() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, _) = c.owner(0);
    // Nothing confirmed yet: the only fragment is replaced.
    let r = c.ledger_of(s, change(l, Version(1), 0, &[4, 2, 3], &[(0, 1)]));
    assert_eq!((r.version, r.fragment_seq, r.fragments.len()), (Version(2), FragmentSeq(1), 1));
    assert_eq!(r.fragments[0].ensemble, ids(&[4, 2, 3]));
    // Later: a new one, and what the old one lacks.
    let mut command = change(l, Version(2), 10, &[4, 1, 3], &[(1, 2)]);
    if let Command::ChangeEnsemble(e) = &mut command {
        e.under = vec![range(7, 9), range(2, 3), range(3, 4), range(5, 5)];
    }
    let r = c.ledger_of(s, command);
    assert_eq!((r.version, r.fragment_seq, r.fragments.len()), (Version(3), FragmentSeq(2), 2));
    assert_eq!(r.fragments[1].first_entry, EntryId(10));
    assert_eq!(r.fragments[0].under, [range(2, 5), range(7, 9)]);
    assert!(r.fragments[1].under.is_empty());
    assert_eq!(c.state.named_count(member(4)), 2);
    assert_eq!(c.state.named_count(member(2)), 1);
    // Again at the same entry: in place, also back to a bookie that was replaced.
    let r = c.ledger_of(s, change(l, Version(3), 10, &[4, 2, 3], &[(1, 1)]));
    assert_eq!((r.fragment_seq, r.fragments.len()), (FragmentSeq(3), 2));
}

#[test]
fn ensemble_changes_that_are_refused() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, _) = c.owner(0);
    c.ok(s, change(l, Version(1), 10, &[4, 2, 3], &[(0, 1)]));
    let mut no = |version, first, ensemble: &[u32], replaced: &[(u8, u32)]| {
        c.no(s, change(l, Version(version), first, ensemble, replaced))
    };
    let mismatch = Rejection::VersionMismatch { current: Version(2) };
    assert_eq!(no(1, 20, &[1, 2, 3], &[(0, 4)]), mismatch);
    assert_invalid(&no(2, 9, &[1, 2, 3], &[(0, 4)]), "first_entry");
    assert_invalid(&no(2, 20, &[1, 2], &[(0, 4)]), "ensemble");
    assert_invalid(&no(2, 20, &[1, 2, 3, 4], &[(0, 4)]), "ensemble");
    assert_invalid(&no(2, 20, &[2, 2, 3], &[(0, 4)]), "ensemble");
    assert_invalid(&no(2, 20, &[4, 2, 3], &[]), "replaced");
    assert_invalid(&no(2, 20, &[1, 2, 3], &[(0, 4), (7, 9)]), "replaced");
    assert_invalid(&no(2, 20, &[1, 2, 3], &[(0, 4), (0, 4)]), "replaced");
    assert_invalid(&no(2, 20, &[1, 9, 3], &[(0, 4)]), "replaced");
    // The failed uuid must still stand there.
    assert_conflict(&no(2, 20, &[1, 2, 3], &[(0, 1)]), "stands at index 0");
    // Named as replaced, yet the same; or a member at another index.
    assert_invalid(&no(2, 20, &[4, 2, 3], &[(0, 4)]), "ensemble");
    assert_invalid(&no(2, 20, &[2, 4, 3], &[(0, 4), (1, 2)]), "ensemble");
    assert_not_eligible(&no(2, 20, &[9, 2, 3], &[(0, 4)]), 9);
    let gone = change(LedgerId(99), Version(1), 20, &[1, 2, 3], &[(0, 4)]);
    assert!(matches!(c.no(s, gone), Rejection::NotFound { .. }));
    let mut command = change(l, Version(2), 20, &[1, 2, 3], &[(0, 4)]);
    for (under, _) in [(range(5, 20), "beyond"), (range(-1, 3), "below"), (range(6, 5), "backwards")] {
        if let Command::ChangeEnsemble(e) = &mut command {
            e.under = vec![under];
        }
        assert_invalid(&c.no(s, command.clone()), "under");
    }
    if let Command::ChangeEnsemble(e) = &mut command {
        e.under = vec![range(0, 0); 1_025];
    }
    assert_invalid(&c.no(s, command), "under");
    c.set_state(1, BookieState::Ro).unwrap();
    assert_not_eligible(&c.no(s, change(l, Version(2), 20, &[1, 2, 3], &[(0, 4)])), 1);
}

/// R22: the target of a repair holds the ledger fenced.
#[test]
fn a_writer_does_not_choose_the_target_of_a_repair() {
    let (mut c, l) = Cluster::with_open_ledger();
    c.bookie(5);
    let (s, _) = c.owner(0);
    c.ok(s, change(l, Version(1), 10, &[4, 2, 3], &[(0, 1)]));
    let start =
        StartRepair { ledger: l, version: Version(2), target: member(5), limbo_count: 0, worker: member(2) };
    c.lead(Command::StartRepair(start));
    assert_not_eligible(&c.no(s, change(l, Version(3), 20, &[5, 2, 3], &[(0, 4)])), 5);
    c.ok(s, change(l, Version(3), 20, &[1, 2, 3], &[(0, 4)]));
}

#[test]
fn fragments_and_under_lists_are_bounded() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, _) = c.owner(0);
    for i in 1..64i64 {
        let (ensemble, old) = if i % 2 == 1 { ([4, 2, 3], 1) } else { ([1, 2, 3], 4) };
        let version = c.ledger(l).version;
        let mut command = change(l, version, i * 10_000, &ensemble, &[(0, old)]);
        if i == 1
            && let Command::ChangeEnsemble(e) = &mut command
        {
            e.under = (0..1_024).map(|n| range(n * 2, n * 2)).collect();
        }
        c.ok(s, command);
    }
    assert_eq!(c.ledger(l).fragments[0].under.len(), 1_024);
    let version = c.ledger(l).version;
    assert_conflict(&c.no(s, change(l, version, 700_000, &[1, 2, 3], &[(0, 4)])), "at most 64");
    // In place is no further fragment; one range more makes the list one range over all.
    let mut command = change(l, version, 630_000, &[1, 2, 3], &[(0, 4)]);
    if let Command::ChangeEnsemble(e) = &mut command {
        e.under = vec![range(9_000, 10_001)];
    }
    let r = c.ledger_of(s, command);
    assert_eq!(r.fragments[0].under, [range(0, 9_999)]);
    assert_eq!(r.fragments[1].under, [range(10_000, 10_001)]);
}

#[test]
fn recovery_stops_the_writer() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let start = |version| Command::StartRecovery { ledger: l, version: Version(version) };
    assert_eq!(c.no(SessionId::NONE, start(9)), Rejection::VersionMismatch { current: Version(1) });
    let r = c.ledger_of(SessionId::NONE, start(1));
    assert_eq!((r.state, r.version), (LedgerState::InRecovery, Version(2)));
    // Others join, whatever version they saw.
    assert_eq!(c.ledger_of(s, start(1)), r);
    let in_recovery = Rejection::LedgerState { ledger: l, state: LedgerState::InRecovery };
    assert_eq!(c.no(s, change(l, Version(2), 0, &[4, 2, 3], &[(0, 1)])), in_recovery);
    // Also with the version from before: the writer must not take it for a mere conflict.
    assert_eq!(c.no(s, change(l, Version(1), 0, &[4, 2, 3], &[(0, 1)])), in_recovery);
    let close = closing(l, Version(2), 5, 3);
    assert_eq!(c.no(s, Command::Close { close: close.clone(), epoch: Some(epoch) }), in_recovery);
    let next = c.create(0);
    assert_eq!(c.no(s, roll(epoch, close.clone(), next, 3)), in_recovery);
    c.lead(Command::Close { close, epoch: None });
    let closed = Rejection::LedgerState { ledger: l, state: LedgerState::Closed };
    assert_eq!(c.no(s, start(3)), closed);
    assert!(matches!(
        c.no(s, Command::StartRecovery { ledger: LedgerId(9), version: Version(1) }),
        Rejection::NotFound { .. }
    ));
}

#[test]
fn many_recoveries_start_in_one_command_each_judged_for_itself() {
    let (mut c, l) = Cluster::with_open_ledger();
    let other = c.create(0);
    let (s, _) = c.owner(0);
    let start = |ledger, version| RecoveryStart { ledger, version: Version(version) };
    // Below the level that knows it nothing happens.
    let all = Command::StartRecoveries(vec![
        start(l, 1),
        start(LedgerId(99), 1),
        start(other, 9),
        start(l, 1),
        start(other, 1),
    ]);
    assert_eq!(c.no(s, all.clone()), Rejection::FeatureLevel { needed: 4, level: 2 });
    assert_eq!(c.ledger(l).state, LedgerState::Open);
    c.control(ControlAction::RaiseFeatureLevel { level: 4 });
    let Reply::Ledgers(each) = c.ok(s, all) else { panic!() };
    let started = c.ledger(l);
    assert_eq!((started.state, started.version), (LedgerState::InRecovery, Version(2)));
    assert_eq!(c.ledger(other).state, LedgerState::InRecovery);
    assert_eq!(each[0], Ok(started.clone()));
    assert!(matches!(each[1], Err(Rejection::NotFound { .. })), "{:?}", each[1]);
    assert_eq!(each[2], Err(Rejection::VersionMismatch { current: Version(1) }));
    assert_eq!(each[3], Ok(started), "named twice: a second recoverer joins");
    assert_eq!(each[4], Ok(c.ledger(other)));
    // R9: from here on the writer fails, as after a single one.
    let in_recovery = Rejection::LedgerState { ledger: l, state: LedgerState::InRecovery };
    assert_eq!(c.no(s, change(l, Version(2), 0, &[4, 2, 3], &[(0, 1)])), in_recovery);
    let many = vec![start(l, 1); MAX_BATCH + 1];
    assert_invalid(&c.no(s, Command::StartRecoveries(many)), "elements");
    // Only a live session: a broker whose session ended starts no recovery.
    assert_eq!(c.no(SessionId::NONE, Command::StartRecoveries(vec![start(l, 1)])), Rejection::SessionExpired);
}

#[test]
fn only_what_can_never_be_linked_is_removed() {
    let (mut c, linked) = Cluster::with_open_ledger();
    let ahead = c.create(0);
    let remove = |ledger, version| Command::RemoveLedger { ledger, version: Version(version) };
    assert_conflict(&c.no(SessionId::NONE, remove(linked, 1)), "in the chain");
    assert_conflict(&c.no(SessionId::NONE, remove(ahead, 1)), "current epoch");
    c.expire(11);
    c.acquire(12, 0);
    assert_conflict(&c.no(SessionId::NONE, remove(linked, 1)), "in the chain");
    assert_eq!(c.no(SessionId::NONE, remove(ahead, 2)), Rejection::VersionMismatch { current: Version(1) });
    c.lead(remove(ahead, 1));
    assert!(c.state.ledger(ahead).is_none());
    assert!(matches!(c.no(SessionId::NONE, remove(ahead, 1)), Rejection::NotFound { .. }));
}
