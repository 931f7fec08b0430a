//! `SetMemberState` and `ReportBookies`: the table of members.

use tidemill_types::BookieState::{self, Draining, Limbo, Lost, Retired, Ro, Rw};
use tidemill_types::meta::{BookieReport, BookieSpec, Command, Rejection};
use tidemill_types::{Incarnation, MemberRole, SessionId};

use crate::harness::*;

/// Bookie 4 in the given state, named by nobody; with a live session where the state allows one.
fn in_state(state: BookieState) -> Cluster {
    let mut c = Cluster::new();
    match state {
        Rw => {}
        Ro | Draining => {
            c.set_state(4, state).unwrap();
        }
        Limbo => {
            c.expire(4);
            let spec = BookieSpec { found_loss: true, ..boot_spec(4, Some(100), 101) };
            c.lead(Command::BookieBoot(spec));
            c.open(4, MemberRole::Bookie, 101);
        }
        Lost | Retired => {
            c.expire(4);
            c.set_state(4, Lost).unwrap();
            if state == Retired {
                c.set_state(4, Retired).unwrap();
            }
        }
    }
    assert_eq!(c.member(4).state, state);
    c
}

#[test]
fn every_step_of_the_table_and_no_other() {
    let all = [Rw, Ro, Limbo, Draining, Lost, Retired];
    let may = [
        (Rw, Ro),
        (Rw, Draining),
        (Ro, Rw),
        (Ro, Draining),
        (Limbo, Rw),
        (Draining, Rw),
        (Draining, Retired),
        (Lost, Retired),
    ];
    for from in all {
        for to in all {
            let mut c = in_state(from);
            let done = c.set_state(4, to);
            assert_eq!(done.is_ok(), from == to || may.contains(&(from, to)), "{from:?} to {to:?}");
        }
        // Lost: from every state but retired, once no session is live.
        let mut c = in_state(from);
        if c.member(4).session.is_some() {
            assert_conflict(&c.set_state(4, Lost).unwrap_err(), "live session");
            c.expire(4);
        }
        assert_eq!(c.set_state(4, Lost).is_ok(), from != Retired, "{from:?} to lost");
    }
}

#[test]
fn draining_leaves_enough_writable_bookies() {
    let mut c = Cluster::new();
    c.set_state(1, Draining).unwrap();
    assert_conflict(&c.set_state(2, Draining).unwrap_err(), "2 writable bookies would stay");
    let s = c.session(11);
    c.ok(s, Command::DeleteTopic { topic: tidemill_types::TopicId(1) });
    c.set_state(2, Draining).unwrap();
}

#[test]
fn a_bookie_says_how_full_it_is_and_no_more() {
    let mut c = Cluster::new();
    let s = c.session(4);
    let set = |state| Command::SetMemberState { member: member(4), state, restarting: false };
    c.ok(s, set(Ro));
    c.ok(s, set(Rw));
    c.set_state(4, Draining).unwrap();
    assert_conflict(&c.no(s, set(Rw)), "its own draining");
    c.set_state(4, Rw).unwrap();
}

#[test]
fn retired_only_when_nothing_names_it() {
    let (mut c, l) = Cluster::with_open_ledger();
    c.set_state(1, Draining).unwrap();
    assert_conflict(&c.set_state(1, Retired).unwrap_err(), "1 fragments and repairs");
    let (s, _) = c.owner(0);
    let version = c.ledger(l).version;
    c.ok(s, change(l, version, 0, &[4, 2, 3], &[(0, 1)]));
    assert_eq!(c.state.named_count(member(1)), 0);
    let session = c.session(1);
    c.set_state(1, Retired).unwrap();
    assert!(!c.state.is_live(session));
    // One-way.
    assert!(c.set_state(1, Rw).is_err());
}

/// M28: limbo lasts while a ledger that is not closed names the bookie in its last fragment.
#[test]
fn m28_limbo_is_not_cleared_under_an_open_ledger() {
    let (mut c, l) = Cluster::with_open_ledger();
    c.expire(1);
    c.lead(Command::BookieBoot(BookieSpec { found_loss: true, ..boot_spec(1, Some(100), 101) }));
    assert_conflict(&c.set_state(1, Rw).unwrap_err(), "live session");
    let own = c.open(1, MemberRole::Bookie, 101);
    assert_conflict(&c.set_state(1, Rw).unwrap_err(), "is not closed");
    c.recover(l);
    assert_conflict(&c.set_state(1, Rw).unwrap_err(), "is not closed");
    let close = c.closing(l, -1, 0);
    c.lead(Command::Close { close, epoch: None });
    let set = Command::SetMemberState { member: member(1), state: Rw, restarting: false };
    let broker = c.session(11);
    assert_conflict(&c.no(broker, set.clone()), "only the bookie itself");
    c.ok(own, set);
    assert_eq!((c.member(1).state, c.member(1).limbo_count), (Rw, 1));
}

#[test]
fn an_older_fragment_does_not_hold_limbo() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, _) = c.owner(0);
    let version = c.ledger(l).version;
    c.ok(s, change(l, version, 5, &[4, 2, 3], &[(0, 1)]));
    c.expire(1);
    c.lead(Command::BookieBoot(BookieSpec { found_loss: true, ..boot_spec(1, Some(100), 101) }));
    c.open(1, MemberRole::Bookie, 101);
    c.set_state(1, Rw).unwrap();
}

#[test]
fn brokers_drain_and_meta_does_nothing() {
    let mut c = Cluster::new();
    c.set_state(11, Draining).unwrap();
    // The wish outlives the process.
    c.expire(11);
    c.open(11, MemberRole::Broker, 2);
    assert_eq!(c.member(11).state, Draining);
    c.set_state(11, Rw).unwrap();
    for state in [Ro, Limbo, Lost, Retired] {
        assert_invalid(&c.set_state(11, state).unwrap_err(), "state");
    }
    c.open(50, MemberRole::Meta, 1);
    assert_invalid(&c.set_state(50, Draining).unwrap_err(), "state");
    assert!(matches!(c.set_state(51, Rw), Err(Rejection::NotFound { .. })));
}

#[test]
fn an_announced_restart_ends_with_the_next_session() {
    let mut c = Cluster::new();
    let s = c.session(1);
    c.ok(s, Command::SetMemberState { member: member(1), state: Rw, restarting: true });
    assert!(c.member(1).restarting);
    c.ok(s, Command::CloseSession);
    c.lead(Command::BookieBoot(boot_spec(1, Some(100), 101)));
    assert!(c.member(1).restarting);
    c.open(1, MemberRole::Bookie, 101);
    assert!(!c.member(1).restarting);
}

#[test]
fn reports_move_positions_forward_only() {
    let mut c = Cluster::new();
    let session = c.session(1);
    let report = |session: SessionId, segment, group, free_bytes| {
        let lanes = vec![at(1, segment, group), at(77, 9, 9)];
        Command::ReportBookies(vec![BookieReport { bookie: member(1), session, lanes, free_bytes }])
    };
    c.lead(report(session, 2, 20, 5));
    assert_eq!((c.member(1).lanes.clone(), c.member(1).free_bytes), (vec![at(1, 2, 20)], 5));
    c.lead(report(session, 2, 19, 6));
    assert_eq!((c.member(1).lanes.clone(), c.member(1).free_bytes), (vec![at(1, 2, 20)], 6));
    c.lead(report(SessionId(999), 3, 30, 7));
    assert_eq!((c.member(1).lanes.clone(), c.member(1).free_bytes), (vec![at(1, 2, 20)], 6));
    let again = c.send(SessionId::NONE, report(session, 2, 20, 6));
    assert!(again.changes.is_empty());
    assert_eq!(c.member(1).incarnation, Incarnation(100));
}
