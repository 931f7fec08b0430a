//! Sessions, time, and R9's kept replies.

use tidemill_types::meta::{Change, Command, Rejection, Reply, Request};
use tidemill_types::{
    ClusterId, Incarnation, LedgerId, MemberRole, RequestId, SessionId, TopicConfig, TopicId,
};

use crate::harness::*;

fn ids(session: SessionId, request: u64, count: u32) -> Request {
    Request { session, request: RequestId(request), command: Command::AllocateProducerIds { count } }
}

#[test]
fn opening_is_idempotent_and_one_per_member() {
    let mut c = Cluster::new();
    let first = c.session(11);
    let again = c.send(SessionId::NONE, Command::OpenSession(member_spec(11, MemberRole::Broker, 1)));
    match again.result.unwrap() {
        Reply::Session { session, cluster, next_ledger, .. } => {
            assert_eq!((session, cluster, next_ledger), (first, CLUSTER, LedgerId(1)));
        }
        other => panic!("{other:?}"),
    }
    assert!(again.changes.is_empty());
    let second = Command::OpenSession(member_spec(11, MemberRole::Broker, 2));
    assert_conflict(&c.no(SessionId::NONE, second.clone()), "live session");
    c.expire(11);
    match c.lead(second) {
        Reply::Session { session, .. } => assert!(session > first),
        other => panic!("{other:?}"),
    }
}

#[test]
fn openings_that_are_refused() {
    let mut c = Cluster::new();
    let mut no = |change: fn(&mut tidemill_types::meta::MemberSpec), role| {
        let mut spec = member_spec(40, role, 1);
        change(&mut spec);
        c.no(SessionId::NONE, Command::OpenSession(spec))
    };
    let named = ClusterId(uuid::Uuid::from_u128(9));
    let r = no(|s| s.cluster = Some(ClusterId(uuid::Uuid::from_u128(9))), MemberRole::Broker);
    assert_eq!(r, Rejection::WrongCluster { have: CLUSTER, named });
    assert_invalid(&no(|s| s.cluster = None, MemberRole::Bookie), "cluster");
    assert_invalid(&no(|s| s.incarnation.0 = 0, MemberRole::Broker), "incarnation");
    assert_invalid(&no(|s| s.name = "x".repeat(254), MemberRole::Broker), "name");
    assert_invalid(&no(|s| s.zone = "x".repeat(254), MemberRole::Broker), "zone");
    assert_invalid(&no(|s| s.endpoint.host = "x".repeat(254), MemberRole::Broker), "host");
    assert_invalid(&no(|s| s.endpoint.host.clear(), MemberRole::Broker), "host");
    assert_conflict(&no(|s| s.id = member(1), MemberRole::Broker), "Bookie");
}

#[test]
fn an_ended_session_is_refused() {
    let mut c = Cluster::new();
    let s = c.session(11);
    // Another member's name, or another session: not this one.
    c.lead(Command::ExpireSession { session: s, member: member(12) });
    c.lead(Command::ExpireSession { session: SessionId(999), member: member(11) });
    assert!(c.state.is_live(s));
    let expired = c.send(SessionId::NONE, Command::ExpireSession { session: s, member: member(11) });
    assert!(matches!(&expired.changes[..], [Change::Member(m)] if m.id == member(11) && m.session.is_none()));
    assert!(
        c.send(SessionId::NONE, Command::ExpireSession { session: s, member: member(11) }).changes.is_empty()
    );
    assert_eq!(c.no(s, Command::AllocateProducerIds { count: 1 }), Rejection::SessionExpired);
    let s = c.session(12);
    assert_eq!(c.ok(s, Command::CloseSession), Reply::Done);
    assert_eq!(c.no(s, Command::CloseSession), Rejection::SessionExpired);
    assert_eq!(c.member(12).session, None);
}

/// A process that its starter proves gone need not wait for its TTL; one that lives is never meant.
#[test]
fn a_session_is_ended_only_for_the_incarnation_that_is_proven_gone() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let now = c.member(11).incarnation;
    let end = |session, who, incarnation| Command::EndSession { session, member: member(who), incarnation };
    for other in [end(s, 11, Incarnation(now.0 + 1)), end(SessionId(s.0 + 1), 11, now), end(s, 12, now)] {
        assert!(c.send(SessionId::NONE, other).changes.is_empty());
        assert!(c.state.is_live(s));
    }
    let ended = c.send(SessionId::NONE, end(s, 11, now));
    assert!(matches!(&ended.changes[..], [Change::Member(m)] if m.id == member(11) && m.session.is_none()));
    assert!(!c.state.is_live(s));
    // A late duplicate does not reach the next session of the same member.
    let next = Command::OpenSession(member_spec(11, MemberRole::Broker, 2));
    let Reply::Session { session: next, .. } = c.lead(next) else { panic!() };
    assert!(c.send(SessionId::NONE, end(s, 11, now)).changes.is_empty());
    assert!(c.state.is_live(next));
}

#[test]
fn who_may_send_what() {
    let mut c = Cluster::new();
    let s = c.session(11);
    for command in [
        Command::Init { cluster: CLUSTER },
        Command::BookieBoot(boot_spec(9, None, 1)),
        Command::OpenSession(member_spec(13, MemberRole::Broker, 1)),
        Command::ExpireSession { session: s, member: member(11) },
        Command::EndSession { session: s, member: member(11), incarnation: Incarnation(1) },
        Command::Tick { wall_ms: 1, jump: false },
        Command::ReportBookies(Vec::new()),
        Command::Assign(Vec::new()),
    ] {
        assert_invalid(&c.no(s, command), "session");
    }
    let config = TopicConfig::default();
    for command in [
        Command::CloseSession,
        Command::CreateTopic { name: name("x"), partitions: 1, config },
        Command::DeleteTopic { topic: TopicId(1) },
        Command::Acquire(Vec::new()),
        Command::Release(Vec::new()),
        Command::TakeOver(Vec::new()),
        Command::AllocateProducerIds { count: 1 },
    ] {
        assert_eq!(c.no(SessionId::NONE, command), Rejection::SessionExpired);
    }
}

#[test]
fn batches_are_bounded() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let item = tidemill_types::meta::AcquireItem { partition: p(0), seen: tidemill_types::Epoch(0) };
    assert!(matches!(c.ok(s, Command::Acquire(vec![item; 1_000])), Reply::Acquired(v) if v.len() == 1_000));
    assert_invalid(&c.no(s, Command::Acquire(vec![item; 1_001])), "elements");
}

/// R9: the first try's answer, also when it was "no"; nothing runs twice.
#[test]
fn a_retry_gets_the_first_answer() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let first = c.apply(&ids(s, 5_000, 10)).result;
    assert_eq!(first, Ok(Reply::ProducerIds { first: 1, count: 10 }));
    assert_eq!(c.apply(&ids(s, 5_000, 10)).result, first);
    assert_eq!(c.apply(&ids(s, 5_001, 1)).result, Ok(Reply::ProducerIds { first: 11, count: 1 }));
    // A "no" stays one, though the same command would now be accepted.
    let config = TopicConfig::default();
    let request = Request {
        session: s,
        request: RequestId(5_002),
        command: Command::CreateTopic { name: name("t"), partitions: 1, config },
    };
    let no = c.apply(&request).result;
    assert!(matches!(no, Err(Rejection::Exists { .. })));
    c.ok(s, Command::DeleteTopic { topic: TopicId(1) });
    assert_eq!(c.apply(&request).result, no);
    // Another session's ids are its own.
    let other = c.session(12);
    assert_eq!(c.apply(&ids(other, 5_000, 1)).result, Ok(Reply::ProducerIds { first: 12, count: 1 }));
}

#[test]
fn an_old_request_has_no_known_outcome() {
    let mut c = Cluster::new();
    let s = c.session(12);
    // Ids may come out of order: 2 arrives before 1.
    for r in [2, 1] {
        assert!(c.apply(&ids(s, r, 1)).result.is_ok());
    }
    for r in 3..=1_024 {
        assert!(c.apply(&ids(s, r, 1)).result.is_ok());
    }
    assert_eq!(c.apply(&ids(s, 1, 1)).result, Ok(Reply::ProducerIds { first: 2, count: 1 }));
    assert!(c.apply(&ids(s, 1_026, 1)).result.is_ok());
    assert_eq!(c.apply(&ids(s, 1, 1)).result, Err(Rejection::OutcomeUnknown));
    assert_eq!(c.apply(&ids(s, 2, 1)).result, Ok(Reply::ProducerIds { first: 1, count: 1 }));
    // Above what was forgotten and never seen: it runs.
    assert_eq!(c.apply(&ids(s, 1_025, 1)).result, Ok(Reply::ProducerIds { first: 1_026, count: 1 }));
    assert_eq!(c.apply(&ids(s, 2, 1)).result, Err(Rejection::OutcomeUnknown));
    // Never executed, and too old to tell.
    assert_eq!(c.apply(&ids(s, 0, 1)).result, Err(Rejection::OutcomeUnknown));
}

#[test]
fn producer_ids_have_a_range() {
    let mut c = Cluster::new();
    let s = c.session(11);
    for count in [0, 1_000_001] {
        assert_invalid(&c.no(s, Command::AllocateProducerIds { count }), "count");
    }
    c.ok(s, Command::AllocateProducerIds { count: 1_000_000 });
}

#[test]
fn time_never_goes_back() {
    let mut c = Cluster::new();
    let tick = |wall_ms, jump| Command::Tick { wall_ms, jump };
    let applied = c.send(SessionId::NONE, tick(1_000, true));
    assert_eq!(applied.changes, [Change::Time(1_000)]);
    assert_eq!((c.state.wall_ms(), c.state.jumped_ms()), (1_000, 1_000));
    assert!(c.send(SessionId::NONE, tick(900, false)).changes.is_empty());
    assert_eq!(c.state.wall_ms(), 1_000);
    c.lead(tick(2_000, false));
    assert_eq!((c.state.wall_ms(), c.state.jumped_ms()), (2_000, 1_000));
    // A jump that does not move the time is one all the same.
    c.lead(tick(10, true));
    assert_eq!((c.state.wall_ms(), c.state.jumped_ms()), (2_000, 2_000));
    assert_invalid(&c.no(SessionId::NONE, tick(-1, false)), "wall_ms");
}
