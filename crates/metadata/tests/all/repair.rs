//! `StartRepair`, `FinishRepair`, `MarkChecked` (R22, R23).

use tidemill_types::meta::{BookieSpec, Command, FinishRepair, Rejection, RepairOutcome, StartRepair};
use tidemill_types::{
    BookieState, EntryId, EntryRange, LedgerId, LedgerState, MemberRole, SessionId, Version,
};

use crate::harness::*;

fn start(c: &Cluster, l: LedgerId, target: u32) -> Command {
    let limbo_count = c.state.member(member(target)).map_or(0, |m| m.limbo_count);
    let version = c.ledger(l).version;
    Command::StartRepair(StartRepair {
        ledger: l,
        version,
        target: member(target),
        limbo_count,
        worker: member(2),
    })
}

fn finish(c: &Cluster, l: LedgerId, target: u32, outcome: RepairOutcome) -> Command {
    let version = c.ledger(l).version;
    Command::FinishRepair(FinishRepair { ledger: l, version, target: member(target), outcome })
}

fn replaced(from: u32, firsts: &[i64]) -> RepairOutcome {
    RepairOutcome::Replaced { from: member(from), fragments: firsts.iter().map(|e| EntryId(*e)).collect() }
}

fn grown(firsts: &[i64]) -> RepairOutcome {
    RepairOutcome::Grown { fragments: firsts.iter().map(|e| EntryId(*e)).collect() }
}

fn limbo_and_back(c: &mut Cluster, n: u32) {
    c.expire(n);
    c.lead(Command::BookieBoot(BookieSpec { found_loss: true, ..boot_spec(n, Some(100), 101) }));
    c.open(n, MemberRole::Bookie, 101);
    c.set_state(n, BookieState::Rw).unwrap();
}

/// Two fragments, 0 on [1, 2, 3] and 10 on [4, 2, 3], bookies 5 and 6 spare; closed at 20 when asked.
fn two_fragments(closed: bool) -> (Cluster, LedgerId) {
    let (mut c, l) = Cluster::with_open_ledger();
    c.bookie(5);
    c.bookie(6);
    let (s, epoch) = c.owner(0);
    c.ok(s, change(l, Version(1), 10, &[4, 2, 3], &[(0, 1)]));
    if closed {
        let mut close = c.closing(l, 20, 7);
        close.under = vec![EntryRange { first: EntryId(3), last: EntryId(12) }];
        c.ok(s, Command::Close { close, epoch: Some(epoch) });
    }
    (c, l)
}

#[test]
fn a_member_is_replaced() {
    let (mut c, l) = two_fragments(true);
    c.lead(Command::Tick { wall_ms: 50, jump: true });
    let command = start(&c, l, 5);
    let r = c.ledger_of(SessionId::NONE, command.clone()).repair.unwrap();
    assert_eq!((r.target, r.worker, r.since_ms), (member(5), member(2), 50));
    // A repair names its target, and several do not overlap.
    assert_eq!(c.state.named_count(member(5)), 1);
    assert!(matches!(c.no(SessionId::NONE, command), Rejection::VersionMismatch { .. }));
    let second = start(&c, l, 6);
    assert_conflict(&c.no(SessionId::NONE, second), "under way");
    let seq = c.ledger(l).fragment_seq.0;
    let r = c.ledger_of(SessionId::NONE, finish(&c, l, 5, replaced(3, &[0, 10])));
    assert_eq!(r.fragments[0].ensemble, ids(&[1, 2, 5]));
    assert_eq!(r.fragments[1].ensemble, ids(&[4, 2, 5]));
    assert_eq!((r.repair.is_none(), r.fragment_seq.0), (true, seq + 2));
    // A swap of a membership never clears what is `under`.
    assert_eq!(r.fragments[0].under.len() + r.fragments[1].under.len(), 2);
    assert_eq!(c.state.named_count(member(3)), 0);
}

#[test]
fn only_a_whole_pass_clears_under_and_unchecked() {
    let (mut c, l) = Cluster::with_open_ledger();
    c.recover(l);
    let mark = |c: &Cluster| Command::MarkChecked { ledger: l, version: c.ledger(l).version };
    let command = mark(&c);
    let state = Rejection::LedgerState { ledger: l, state: LedgerState::InRecovery };
    assert_eq!(c.no(SessionId::NONE, command), state);
    let mut close = c.closing(l, 20, 7);
    close.under = vec![EntryRange { first: EntryId(3), last: EntryId(12) }];
    c.lead(Command::Close { close, epoch: None });
    // A member is filled up: listed still.
    let command = start(&c, l, 1);
    c.lead(command);
    let command = mark(&c);
    assert_conflict(&c.no(SessionId::NONE, command), "under way");
    let command = finish(&c, l, 1, RepairOutcome::Filled);
    let r = c.ledger_of(SessionId::NONE, command);
    assert!(r.unchecked && !r.fragments[0].under.is_empty());
    let stale = Command::MarkChecked { ledger: l, version: Version(1) };
    assert!(matches!(c.no(SessionId::NONE, stale), Rejection::VersionMismatch { .. }));
    let command = mark(&c);
    let r = c.ledger_of(SessionId::NONE, command);
    assert!(!r.unchecked && r.fragments[0].under.is_empty());
    let command = mark(&c);
    assert_eq!(c.ledger_of(SessionId::NONE, command).version, r.version);
}

#[test]
fn targets_that_are_refused() {
    let (mut c, l) = two_fragments(true);
    c.set_state(5, BookieState::Ro).unwrap();
    let command = start(&c, l, 5);
    assert_not_eligible(&c.no(SessionId::NONE, command), 5);
    let command = start(&c, l, 99);
    assert_not_eligible(&c.no(SessionId::NONE, command), 99);
    // A member is filled up in every state in which it answers.
    c.set_state(1, BookieState::Ro).unwrap();
    let command = start(&c, l, 1);
    c.lead(command);
    let command = finish(&c, l, 1, RepairOutcome::Abandoned);
    c.lead(command);
    c.expire(1);
    c.set_state(1, BookieState::Lost).unwrap();
    let command = start(&c, l, 1);
    assert_not_eligible(&c.no(SessionId::NONE, command), 1);
    // The limbo count is the one of the choice.
    for target in [6, 2] {
        let mut command = start(&c, l, target);
        if let Command::StartRepair(s) = &mut command {
            s.limbo_count = 3;
        }
        assert_not_eligible(&c.no(SessionId::NONE, command), target);
    }
}

/// M29: the target lost a part and is `rw` again before the swap.
#[test]
fn m29_a_target_that_was_in_limbo_since() {
    for (target, outcome) in [(5, replaced(1, &[0])), (5, grown(&[0])), (1, RepairOutcome::Filled)] {
        let (mut c, l) = two_fragments(true);
        let command = start(&c, l, target);
        c.lead(command);
        limbo_and_back(&mut c, target);
        let command = finish(&c, l, target, outcome);
        assert_not_eligible(&c.no(SessionId::NONE, command), target);
        let command = finish(&c, l, target, RepairOutcome::Abandoned);
        assert_eq!(c.ledger_of(SessionId::NONE, command).repair, None);
    }
}

/// R22: the open tail is its writer's.
#[test]
fn the_last_fragment_of_an_open_ledger_is_left_alone() {
    let (mut c, l) = two_fragments(false);
    let open = Rejection::LedgerState { ledger: l, state: LedgerState::Open };
    let command = start(&c, l, 5);
    c.lead(command);
    let command = finish(&c, l, 5, replaced(3, &[0, 10]));
    assert_eq!(c.no(SessionId::NONE, command), open);
    let command = finish(&c, l, 5, grown(&[0]));
    assert_eq!(c.no(SessionId::NONE, command), open);
    let command = finish(&c, l, 5, replaced(3, &[0]));
    assert_eq!(c.ledger_of(SessionId::NONE, command).fragments[0].ensemble, ids(&[1, 2, 5]));
    let (mut c, l) = Cluster::with_open_ledger();
    let command = start(&c, l, 4);
    assert_eq!(
        c.no(SessionId::NONE, command),
        Rejection::LedgerState { ledger: l, state: LedgerState::Open }
    );
}

#[test]
fn a_closed_ledger_grows_by_repair() {
    let (mut c, l) = two_fragments(true);
    let command = start(&c, l, 5);
    c.lead(command);
    let command = finish(&c, l, 5, grown(&[10]));
    let r = c.ledger_of(SessionId::NONE, command);
    assert_eq!(r.fragments[1].ensemble, ids(&[4, 2, 3, 5]));
    assert_eq!(r.fragments[0].ensemble.len(), 3);
    for n in [6, 7, 8] {
        if n > 6 {
            c.bookie(n);
        }
        let command = start(&c, l, n);
        c.lead(command);
        let command = finish(&c, l, n, grown(&[10]));
        c.lead(command);
    }
    c.bookie(9);
    let command = start(&c, l, 9);
    c.lead(command);
    let command = finish(&c, l, 9, grown(&[10]));
    assert_conflict(&c.no(SessionId::NONE, command), "no more copies");
}

#[test]
fn ends_that_are_refused() {
    let (mut c, l) = two_fragments(true);
    let command = finish(&c, l, 5, RepairOutcome::Abandoned);
    assert_conflict(&c.no(SessionId::NONE, command), "no repair");
    let command = start(&c, l, 5);
    c.lead(command);
    let mut no = |target, outcome| {
        let command = finish(&c, l, target, outcome);
        c.no(SessionId::NONE, command)
    };
    assert_conflict(&no(6, RepairOutcome::Abandoned), "no repair");
    assert_invalid(&no(5, replaced(3, &[])), "fragments");
    assert_invalid(&no(5, replaced(3, &[10, 0])), "fragments");
    assert!(matches!(no(5, replaced(3, &[7])), Rejection::NotFound { .. }));
    assert_conflict(&no(5, replaced(6, &[0])), "is no member");
    let stale =
        FinishRepair { ledger: l, version: Version(1), target: member(5), outcome: RepairOutcome::Abandoned };
    assert!(matches!(c.no(SessionId::NONE, Command::FinishRepair(stale)), Rejection::VersionMismatch { .. }));
    // A target that is a member already.
    let command = finish(&c, l, 5, RepairOutcome::Abandoned);
    c.lead(command);
    let command = start(&c, l, 4);
    c.lead(command);
    let command = finish(&c, l, 4, replaced(1, &[0, 10]));
    assert_conflict(&c.no(SessionId::NONE, command), "a member of fragment 10");
    let command = finish(&c, l, 4, replaced(1, &[0]));
    assert_eq!(c.ledger_of(SessionId::NONE, command).fragments[0].ensemble, ids(&[4, 2, 3]));
    // A ledger that was deleted meanwhile is gone, not a failure to be retried.
    let gone = StartRepair {
        ledger: LedgerId(99),
        version: Version(1),
        target: member(5),
        limbo_count: 0,
        worker: member(2),
    };
    assert!(matches!(c.no(SessionId::NONE, Command::StartRepair(gone)), Rejection::NotFound { .. }));
}
