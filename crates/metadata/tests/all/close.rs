//! The closing half, alone: by a writer, by a recoverer (1.5, 1.6 step 7, R8).

use tidemill_types::meta::{
    BookieSpec, CloseLedger, Command, FinishRepair, Rejection, RepairOutcome, StartRepair,
};
use tidemill_types::{
    BookieState, EntryId, EntryRange, Epoch, Fragment, FragmentSeq, LedgerId, LedgerState, MemberRole,
    SessionId, Version,
};

use crate::harness::*;

fn range(first: i64, last: i64) -> EntryRange {
    EntryRange { first: EntryId(first), last: EntryId(last) }
}

fn fragment(first: i64, bookies: &[u32]) -> Fragment {
    Fragment { first_entry: EntryId(first), ensemble: ids(bookies), under: Vec::new() }
}

fn by_recoverer(close: CloseLedger) -> Command {
    Command::Close { close, epoch: None }
}

#[test]
fn idle_close_by_the_owner() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let mut close = c.closing(l, 9, 7);
    close.under = vec![range(3, 4)];
    let command = Command::Close { close: close.clone(), epoch: Some(epoch) };
    let r = c.ledger_of(s, command.clone());
    assert_eq!(
        (r.state, r.last_entry, r.length, r.records),
        (LedgerState::Closed, Some(EntryId(9)), Some(1_000), Some(7))
    );
    assert_eq!((r.version, r.unchecked), (Version(2), false));
    assert_eq!(r.fragments[0].under, [range(3, 4)]);
    // The same end is success, whoever says it and whatever version it saw.
    assert_eq!(c.ledger_of(s, command), r);
    assert_eq!(c.ledger_of(SessionId::NONE, by_recoverer(close.clone())), r);
    for other in [
        CloseLedger { last_entry: EntryId(8), ..close.clone() },
        CloseLedger { length: 999, ..close.clone() },
        CloseLedger { records: 6, ..close },
    ] {
        assert_eq!(
            c.no(s, Command::Close { close: other.clone(), epoch: Some(epoch) }),
            Rejection::OtherEnd { ledger: l }
        );
        assert_eq!(c.no(SessionId::NONE, by_recoverer(other)), Rejection::OtherEnd { ledger: l });
    }
}

#[test]
fn closes_that_are_refused() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let close = c.closing(l, 9, 7);
    let with = |f: fn(&mut CloseLedger)| {
        let mut close = close.clone();
        f(&mut close);
        Command::Close { close, epoch: Some(epoch) }
    };
    let open = Rejection::LedgerState { ledger: l, state: LedgerState::Open };
    assert_eq!(c.no(SessionId::NONE, by_recoverer(close.clone())), open);
    assert_eq!(c.no(s, with(|x| x.version = Version(5))), Rejection::VersionMismatch { current: Version(1) });
    assert!(matches!(c.no(s, with(|x| x.ledger = LedgerId(99))), Rejection::NotFound { .. }));
    assert_invalid(&c.no(s, with(|x| x.last_entry = EntryId(-2))), "last_entry");
    assert_invalid(&c.no(s, with(|x| x.last_entry = EntryId::NONE)), "last_entry");
    assert_invalid(&c.no(s, with(|x| x.records = u64::MAX)), "records");
    assert_invalid(&c.no(s, with(|x| x.under = vec![range(9, 10)])), "under");
    assert_invalid(&c.no(s, with(|x| x.fragments = vec![fragment(0, &[1, 2, 3])])), "fragments");
    let mismatch = Rejection::EpochMismatch { current: epoch };
    let wrong_epoch = Command::Close { close: close.clone(), epoch: Some(Epoch(9)) };
    assert_eq!(c.no(s, wrong_epoch), mismatch);
    let other = c.session(12);
    assert_eq!(c.no(other, with(|_| ())), mismatch);
    assert_eq!(c.no(SessionId::NONE, with(|_| ())), mismatch);
    c.ok(s, change(l, Version(1), 20, &[4, 2, 3], &[(0, 1)]));
    let mut below = c.closing(l, 18, 7);
    assert_invalid(&c.no(s, Command::Close { close: below.clone(), epoch: Some(epoch) }), "last_entry");
    below.last_entry = EntryId(19);
    c.ok(s, Command::Close { close: below, epoch: Some(epoch) });
}

#[test]
fn an_empty_close() {
    let (mut c, l) = Cluster::with_open_ledger();
    c.recover(l);
    let r = c.ledger_of(SessionId::NONE, by_recoverer(c.closing(l, -1, 0)));
    // Nothing is there to be checked.
    assert_eq!((r.last_entry, r.unchecked), (Some(EntryId::NONE), false));
}

/// A ledger in recovery with two fragments: 0 on [1, 2, 3], 10 on [4, 2, 3]; bookies 5 and 6 are spare.
fn recovering() -> (Cluster, LedgerId) {
    let (mut c, l) = Cluster::with_open_ledger();
    c.bookie(5);
    c.bookie(6);
    let (s, _) = c.owner(0);
    let mut command = change(l, Version(1), 10, &[4, 2, 3], &[(0, 1)]);
    if let Command::ChangeEnsemble(e) = &mut command {
        e.under = vec![range(1, 2)];
    }
    c.ok(s, command);
    c.recover(l);
    (c, l)
}

#[test]
fn a_recoverer_stores_its_fragments_with_the_close() {
    let (mut c, l) = recovering();
    let mut close = c.closing(l, 30, 7);
    close.fragments = vec![fragment(0, &[1, 2, 3]), fragment(10, &[4, 5, 3]), fragment(20, &[4, 5, 6])];
    close.fragments[2].under = vec![range(25, 30)];
    close.limbo_counts = vec![(member(5), 0), (member(6), 0)];
    close.under = vec![range(9, 11)];
    let r = c.ledger_of(SessionId::NONE, by_recoverer(close));
    assert_eq!((r.fragment_seq, r.unchecked), (FragmentSeq(3), true));
    assert_eq!(
        r.fragments.iter().map(|f| f.ensemble.clone()).collect::<Vec<_>>(),
        [ids(&[1, 2, 3]), ids(&[4, 5, 3]), ids(&[4, 5, 6])]
    );
    // What older fragments lacked stays listed.
    assert_eq!(r.fragments[0].under, [range(1, 2), range(9, 9)]);
    assert_eq!(r.fragments[1].under, [range(10, 11)]);
    assert_eq!(r.fragments[2].under, [range(25, 30)]);
    assert_eq!(c.state.named_count(member(5)), 2);
}

#[test]
fn fragments_of_a_recoverer_that_are_refused() {
    let (mut c, l) = recovering();
    let base = c.closing(l, 30, 7);
    let no = |c: &mut Cluster, fragments: Vec<Fragment>, counts: &[(u32, u32)]| {
        let limbo_counts = counts.iter().map(|(n, k)| (member(*n), *k)).collect();
        c.no(SessionId::NONE, by_recoverer(CloseLedger { fragments, limbo_counts, ..base.clone() }))
    };
    let older = || fragment(0, &[1, 2, 3]);
    let c = &mut c;
    assert_conflict(&no(c, vec![older()], &[]), "before the last");
    assert_conflict(
        &no(c, vec![fragment(0, &[1, 2, 5]), fragment(10, &[4, 2, 3])], &[(5, 0)]),
        "before the last",
    );
    assert_conflict(&no(c, vec![older(), fragment(11, &[4, 2, 3])], &[]), "before the last");
    assert_invalid(&no(c, vec![older(), fragment(10, &[4, 2])], &[]), "fragments");
    assert_invalid(&no(c, vec![older(), fragment(10, &[4, 2, 2])], &[]), "ensemble");
    assert_invalid(
        &no(c, vec![older(), fragment(10, &[4, 2, 3]), fragment(10, &[4, 2, 5])], &[(5, 0)]),
        "fragments",
    );
    assert_invalid(
        &no(c, vec![older(), fragment(10, &[4, 2, 3]), fragment(32, &[4, 2, 5])], &[(5, 0)]),
        "fragments",
    );
    assert_invalid(&no(c, vec![older(), fragment(10, &[4, 2, 5])], &[]), "limbo_counts");
    assert_not_eligible(&no(c, vec![older(), fragment(10, &[4, 2, 5])], &[(5, 1)]), 5);
    let many = (0..65).map(|i| fragment(i, &[1, 2, 3])).collect();
    assert_invalid(&no(c, many, &[]), "fragments");
    // A member of an older fragment is newly named as well.
    assert_invalid(&no(c, vec![older(), fragment(10, &[4, 2, 1])], &[]), "limbo_counts");
}

/// R8: the chosen bookie must still be `rw`, and have kept what it got.
#[test]
fn r8_a_chosen_bookie_that_changed_since() {
    let close = |c: &Cluster, l| CloseLedger {
        fragments: vec![fragment(0, &[1, 2, 3]), fragment(10, &[4, 2, 5])],
        limbo_counts: vec![(member(5), 0)],
        ..c.closing(l, 30, 7)
    };
    let (mut c, l) = recovering();
    c.set_state(5, BookieState::Draining).unwrap();
    let command = by_recoverer(close(&c, l));
    assert_not_eligible(&c.no(SessionId::NONE, command), 5);
    // Into limbo and out of it again: `rw`, yet its copies may be gone (M29).
    let (mut c, l) = recovering();
    c.expire(5);
    c.lead(Command::BookieBoot(BookieSpec { found_loss: true, ..boot_spec(5, Some(100), 101) }));
    c.open(5, MemberRole::Bookie, 101);
    c.set_state(5, BookieState::Rw).unwrap();
    let command = by_recoverer(close(&c, l));
    assert_not_eligible(&c.no(SessionId::NONE, command), 5);
    assert_eq!(c.ledger(l).state, LedgerState::InRecovery);
}

/// M10: two recoverers with different verdicts.
#[test]
fn m10_the_first_close_stands() {
    let (mut c, l) = recovering();
    let (one, two) = (c.closing(l, 30, 7), c.closing(l, 31, 8));
    let r = c.ledger_of(SessionId::NONE, by_recoverer(one));
    assert_eq!(c.no(SessionId::NONE, by_recoverer(two)), Rejection::OtherEnd { ledger: l });
    assert_eq!(c.ledger(l), r);
}

#[test]
fn a_close_leaves_the_repair_alone_and_a_repair_makes_it_read_again() {
    let (mut c, l) = recovering();
    let close = c.closing(l, 30, 7);
    let start = StartRepair {
        ledger: l,
        version: close.version,
        target: member(5),
        limbo_count: 0,
        worker: member(2),
    };
    c.lead(Command::StartRepair(start));
    let version = c.ledger(l).version;
    assert_eq!(c.no(SessionId::NONE, by_recoverer(close)), Rejection::VersionMismatch { current: version });
    let close = c.closing(l, 30, 7);
    let r = c.ledger_of(SessionId::NONE, by_recoverer(close));
    assert_eq!(r.repair.as_ref().unwrap().target, member(5));
    let outcome = RepairOutcome::Replaced { from: member(1), fragments: vec![EntryId(0)] };
    let finish = FinishRepair { ledger: l, version: r.version, target: member(5), outcome };
    let r = c.ledger_of(SessionId::NONE, Command::FinishRepair(finish));
    assert_eq!((r.repair, r.unchecked), (None, true));
}
