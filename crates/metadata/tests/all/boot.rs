//! `Init`, `BookieBoot`, and the four steps of a boot (R15, R16).

use tidemill_types::meta::{BookieReport, BookieSpec, Command, Rejection, Reply};
use tidemill_types::{BookieState, ClusterId, Incarnation, MemberRole, SessionId};

use crate::harness::*;

fn boot(c: &mut Cluster, spec: BookieSpec) -> (bool, bool) {
    match c.lead(Command::BookieBoot(spec)) {
        Reply::BookieBoot { cluster, limbo, was_lost } => {
            assert_eq!(cluster, CLUSTER);
            (limbo, was_lost)
        }
        other => panic!("{other:?}"),
    }
}

fn refused(c: &mut Cluster, spec: BookieSpec) -> Rejection {
    c.no(SessionId::NONE, Command::BookieBoot(spec))
}

#[test]
fn init_once() {
    let mut c = Cluster::empty();
    assert_eq!(refused(&mut c, boot_spec(1, None, 5)), Rejection::NotInitialised);
    assert_eq!(c.lead(Command::Init { cluster: CLUSTER }), Reply::Done);
    assert_eq!(c.lead(Command::Init { cluster: CLUSTER }), Reply::Done);
    let named = ClusterId(uuid::Uuid::from_u128(9));
    let r = c.no(SessionId::NONE, Command::Init { cluster: named });
    assert_eq!(r, Rejection::WrongCluster { have: CLUSTER, named });
}

#[test]
fn a_boot_that_ends_well() {
    let mut c = Cluster::new();
    assert_eq!(boot(&mut c, boot_spec(9, None, 5)), (false, false));
    let m = c.member(9);
    assert_eq!((m.incarnation, m.pending_incarnation), (Incarnation(0), Some(Incarnation(5))));
    // Not yet to be named: it has no session.
    assert!(!m.is_writable_bookie());
    c.open(9, MemberRole::Bookie, 5);
    let m = c.member(9);
    assert_eq!((m.incarnation, m.pending_incarnation, m.state), (Incarnation(5), None, BookieState::Rw));
    c.expire(9);
    assert_eq!(boot(&mut c, boot_spec(9, Some(5), 6)), (false, false));
    c.open(9, MemberRole::Bookie, 6);
    assert_eq!(c.member(9).state, BookieState::Rw);
}

#[test]
fn a_bookie_that_did_not_boot_gets_no_session() {
    let mut c = Cluster::new();
    let open = |n, i| Command::OpenSession(member_spec(n, MemberRole::Bookie, i));
    assert!(matches!(c.no(SessionId::NONE, open(9, 5)), Rejection::NotFound { .. }));
    c.expire(1);
    assert_conflict(&c.no(SessionId::NONE, open(1, 77)), "boots before");
    // The same process opens again after its session ran out.
    c.open(1, MemberRole::Bookie, 100);
    c.expire(1);
    // Another boot is under way: the older process is refused.
    boot(&mut c, boot_spec(1, Some(100), 101));
    assert_conflict(&c.no(SessionId::NONE, open(1, 100)), "boots before");
    c.open(1, MemberRole::Bookie, 101);
}

/// R16: a crash between any two of the steps leaves cookies that the next boot is accepted with.
#[test]
fn crash_between_all_steps_of_a_boot() {
    for first in [true, false] {
        // Steps done before the crash: 1 cookie pending, 2 quorum pending, 3 cookie, 4 quorum.
        for done in 1..=4u32 {
            for then in 1..=4u32 {
                let mut c = Cluster::new();
                let (n, mut last) = if first { (9, None) } else { (1, Some(100)) };
                if !first {
                    c.expire(1);
                }
                for (steps, incarnation) in [(done, 201), (then, 202), (4, 203)] {
                    if steps >= 2 {
                        assert_eq!(boot(&mut c, boot_spec(n, last, incarnation)), (false, false));
                    }
                    if steps >= 3 {
                        last = Some(incarnation);
                    }
                    if steps >= 4 {
                        c.open(n, MemberRole::Bookie, incarnation);
                        assert_eq!(c.member(n).state, BookieState::Rw, "{first} {done} {then}");
                        c.expire(n);
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_boot_again_changes_nothing() {
    let mut c = Cluster::new();
    c.expire(1);
    let spec = BookieSpec { found_loss: true, ..boot_spec(1, Some(100), 101) };
    assert_eq!(boot(&mut c, spec.clone()), (true, false));
    assert_eq!(boot(&mut c, spec.clone()), (true, false));
    assert_eq!(c.member(1).limbo_count, 1);
    c.open(1, MemberRole::Bookie, 101);
    assert_eq!(boot(&mut c, spec), (true, false));
    assert_eq!(c.member(1).limbo_count, 1);
}

#[test]
fn what_shows_a_loss_ends_in_limbo() {
    let told = vec![at(1, 3, 30), at(2, 4, 40)];
    let spec = BookieSpec { lanes: told.clone(), ..boot_spec(1, Some(200), 201) };
    let cases: Vec<(&str, BookieSpec, bool)> = vec![
        ("the very positions", spec.clone(), false),
        ("further on", BookieSpec { lanes: vec![at(1, 4, 31), at(2, 4, 41)], ..spec.clone() }, false),
        (
            "a new lane",
            BookieSpec { lanes: vec![at(1, 3, 30), at(2, 4, 40), at(3, 0, 0)], ..spec.clone() },
            false,
        ),
        ("an earlier group", BookieSpec { lanes: vec![at(1, 3, 29), at(2, 4, 40)], ..spec.clone() }, true),
        ("an earlier segment", BookieSpec { lanes: vec![at(1, 3, 30), at(2, 3, 99)], ..spec.clone() }, true),
        ("a lane is missing", BookieSpec { lanes: vec![at(1, 3, 30)], ..spec.clone() }, true),
        (
            "another lane in its place",
            BookieSpec { lanes: vec![at(1, 3, 30), at(9, 4, 40)], ..spec.clone() },
            true,
        ),
        (
            "an older incarnation",
            BookieSpec { last_incarnation: Some(Incarnation(100)), ..spec.clone() },
            true,
        ),
        ("no incarnation", BookieSpec { last_incarnation: None, ..spec.clone() }, true),
        ("its own word", BookieSpec { found_loss: true, ..spec }, true),
    ];
    for (what, spec, limbo) in cases {
        let mut c = Cluster::new();
        c.expire(1);
        boot(&mut c, BookieSpec { lanes: vec![at(1, 0, 0), at(2, 0, 0)], ..boot_spec(1, Some(100), 200) });
        // The boot before is of lanes 1 and 2; lane 1 is the one that the first boot named.
        let session = c.open(1, MemberRole::Bookie, 200);
        let report = BookieReport { bookie: member(1), session, lanes: told.clone(), free_bytes: 1 };
        c.lead(Command::ReportBookies(vec![report]));
        c.expire(1);
        assert_eq!(boot(&mut c, spec), (limbo, false), "{what}");
        assert_eq!(c.member(1).limbo_count, u32::from(limbo), "{what}");
        c.open(1, MemberRole::Bookie, 201);
        assert_eq!(c.member(1).state, if limbo { BookieState::Limbo } else { BookieState::Rw }, "{what}");
    }
}

#[test]
fn limbo_lasts_over_boots_and_is_counted() {
    let mut c = Cluster::new();
    c.expire(1);
    boot(&mut c, BookieSpec { found_loss: true, ..boot_spec(1, Some(100), 101) });
    c.open(1, MemberRole::Bookie, 101);
    c.expire(1);
    assert_eq!(boot(&mut c, boot_spec(1, Some(101), 102)), (true, false));
    c.open(1, MemberRole::Bookie, 102);
    assert_eq!((c.member(1).state, c.member(1).limbo_count), (BookieState::Limbo, 2));
}

#[test]
fn out_of_lost() {
    let mut c = Cluster::new();
    c.expire(1);
    c.set_state(1, BookieState::Lost).unwrap();
    // The old process does not serve on.
    let open = Command::OpenSession(member_spec(1, MemberRole::Bookie, 100));
    assert_conflict(&c.no(SessionId::NONE, open), "boots before");
    assert_eq!(boot(&mut c, boot_spec(1, Some(100), 101)), (false, true));
    // Declared lost while it boots: it starts again, knowing.
    c.set_state(1, BookieState::Lost).unwrap();
    let open = |i| Command::OpenSession(member_spec(1, MemberRole::Bookie, i));
    assert_eq!(c.member(1).state, BookieState::Lost);
    let r = c.send(SessionId::NONE, open(101)).result;
    // The state did not change by the second declaration, but the pending boot is void.
    assert!(r.is_err(), "{r:?}");
    assert_eq!(boot(&mut c, boot_spec(1, Some(100), 102)), (false, true));
    c.open(1, MemberRole::Bookie, 102);
    assert_eq!(c.member(1).state, BookieState::Rw);
}

#[test]
fn out_of_lost_with_a_loss_is_limbo() {
    let mut c = Cluster::new();
    c.expire(1);
    c.set_state(1, BookieState::Lost).unwrap();
    let spec = BookieSpec { found_loss: true, ..boot_spec(1, Some(100), 101) };
    assert_eq!(boot(&mut c, spec), (true, true));
}

#[test]
fn boots_that_are_refused() {
    let mut c = Cluster::new();
    let named = ClusterId(uuid::Uuid::from_u128(9));
    let other = BookieSpec { cluster: Some(named), ..boot_spec(9, Some(1), 2) };
    assert_eq!(refused(&mut c, other), Rejection::WrongCluster { have: CLUSTER, named });
    assert_conflict(&refused(&mut c, boot_spec(1, Some(100), 101)), "live session");
    assert_conflict(&refused(&mut c, boot_spec(11, None, 101)), "Broker");
    assert_conflict(&refused(&mut c, boot_spec(9, Some(1), 2)), "does not know the uuid");
    c.expire(1);
    assert_conflict(&refused(&mut c, boot_spec(1, None, 101)), "draw a new one");
    assert_invalid(&refused(&mut c, boot_spec(9, None, 0)), "incarnation");
    assert_invalid(&refused(&mut c, boot_spec(1, Some(100), 100)), "incarnation");
    let no_lane = BookieSpec { lanes: Vec::new(), ..boot_spec(9, None, 1) };
    assert_invalid(&refused(&mut c, no_lane), "lanes");
    let twice = BookieSpec { lanes: vec![at(1, 0, 0), at(1, 0, 0)], ..boot_spec(9, None, 1) };
    assert_invalid(&refused(&mut c, twice), "lanes");
    let long = BookieSpec { name: "x".repeat(254), ..boot_spec(9, None, 1) };
    assert_invalid(&refused(&mut c, long), "name");
    c.set_state(1, BookieState::Lost).unwrap();
    c.set_state(1, BookieState::Retired).unwrap();
    assert_not_eligible(&refused(&mut c, boot_spec(1, Some(100), 101)), 1);
    let open = Command::OpenSession(member_spec(1, MemberRole::Bookie, 100));
    assert_not_eligible(&c.no(SessionId::NONE, open), 1);
}

#[test]
fn a_full_disk_starts_read_only() {
    let mut c = Cluster::new();
    boot(&mut c, boot_spec(9, None, 5));
    let mut spec = member_spec(9, MemberRole::Bookie, 5);
    spec.read_only = true;
    match c.lead(Command::OpenSession(spec)) {
        Reply::Session { state, .. } => assert_eq!(state, BookieState::Ro),
        other => panic!("{other:?}"),
    }
}
