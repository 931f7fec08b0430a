//! `Assign`, `Acquire`, `Release`.

use tidemill_types::meta::{AcquireItem, Assignment, Command, Rejection, Release, Reply};
use tidemill_types::{Epoch, MemberRole, Owner, PartitionId, PartitionRecord, SessionId, TopicId};

use crate::harness::*;

fn try_acquire(c: &mut Cluster, s: SessionId, index: u32, seen: u64) -> Result<PartitionRecord, Rejection> {
    let item = AcquireItem { partition: p(index), seen: Epoch(seen) };
    match c.ok(s, Command::Acquire(vec![item])) {
        Reply::Acquired(mut v) => v.remove(0),
        other => panic!("{other:?}"),
    }
}

fn release(c: &mut Cluster, s: SessionId, index: u32, epoch: u64) -> Result<(), Rejection> {
    only(c.ok(s, Command::Release(vec![Release { partition: p(index), epoch: Epoch(epoch) }])))
}

fn assign(c: &mut Cluster, index: u32, broker: Option<u32>) -> Result<(), Rejection> {
    only(c.lead(Command::Assign(vec![Assignment { partition: p(index), broker: broker.map(member) }])))
}

#[test]
fn an_epoch_passes_on_by_release() {
    let mut c = Cluster::new();
    let (a, b) = (c.session(11), c.session(12));
    let got = c.acquire(11, 0);
    assert_eq!((got.epoch, got.owner), (Epoch(1), Some(Owner { broker: member(11), session: a })));
    assign(&mut c, 0, Some(12)).unwrap();
    assert_conflict(&try_acquire(&mut c, b, 0, 1).unwrap_err(), "held by");
    release(&mut c, a, 0, 1).unwrap();
    // Released: the epoch is nobody's any more, not even for a second release.
    assert_eq!(release(&mut c, a, 0, 1), Err(Rejection::EpochMismatch { current: Epoch(1) }));
    let l = create(p(0), Epoch(1), &[1, 2, 3]);
    assert_eq!(c.no(a, l), Rejection::EpochMismatch { current: Epoch(1) });
    assert_eq!(try_acquire(&mut c, b, 0, 1).unwrap().epoch, Epoch(2));
}

#[test]
fn an_epoch_passes_on_when_the_session_ends() {
    for by_itself in [true, false] {
        let mut c = Cluster::new();
        c.acquire(11, 0);
        assign(&mut c, 0, Some(12)).unwrap();
        if by_itself {
            let s = c.session(11);
            c.ok(s, Command::CloseSession);
        } else {
            c.expire(11);
        }
        let b = c.session(12);
        assert_eq!(try_acquire(&mut c, b, 0, 1).unwrap().epoch, Epoch(2));
        // The old broker under a new session owns nothing.
        let a = c.open(11, MemberRole::Broker, 2);
        assert_eq!(
            c.no(a, create(p(0), Epoch(1), &[1, 2, 3])),
            Rejection::EpochMismatch { current: Epoch(2) }
        );
        assert_eq!(release(&mut c, a, 0, 2), Err(Rejection::EpochMismatch { current: Epoch(2) }));
    }
}

#[test]
fn a_restarted_broker_acquires_anew() {
    let mut c = Cluster::new();
    c.acquire(11, 0);
    c.expire(11);
    let s = c.open(11, MemberRole::Broker, 2);
    assert_eq!(try_acquire(&mut c, s, 0, 1).unwrap().epoch, Epoch(2));
}

#[test]
fn acquisitions_that_are_refused_one_by_one() {
    let mut c = Cluster::new();
    let s = c.session(11);
    assert_conflict(&try_acquire(&mut c, s, 0, 0).unwrap_err(), "assigned to nobody");
    assign(&mut c, 0, Some(12)).unwrap();
    assert_conflict(&try_acquire(&mut c, s, 0, 0).unwrap_err(), "assigned to");
    c.acquire(11, 1);
    assert_eq!(try_acquire(&mut c, s, 1, 0), Err(Rejection::EpochMismatch { current: Epoch(1) }));
    assert_conflict(&try_acquire(&mut c, s, 1, 1).unwrap_err(), "held by");
    assign(&mut c, 0, Some(11)).unwrap();
    let items = [0, 1, 7].map(|i| AcquireItem { partition: p(i), seen: Epoch(0) });
    match c.ok(s, Command::Acquire(items.to_vec())) {
        Reply::Acquired(v) => {
            assert_eq!(v[0].as_ref().unwrap().epoch, Epoch(1));
            assert!(matches!(v[1], Err(Rejection::EpochMismatch { .. })));
            assert!(matches!(v[2], Err(Rejection::NotFound { .. })));
        }
        other => panic!("{other:?}"),
    }
    let bookie = c.session(1);
    assert_invalid(&c.no(bookie, Command::Acquire(Vec::new())), "session");
}

#[test]
fn assignments_are_judged_one_by_one() {
    let mut c = Cluster::new();
    let far = PartitionId { topic: TopicId(8), index: 0 };
    let items = vec![
        Assignment { partition: p(0), broker: Some(member(11)) },
        Assignment { partition: far, broker: Some(member(11)) },
        Assignment { partition: p(1), broker: Some(member(99)) },
        Assignment { partition: p(1), broker: Some(member(1)) },
    ];
    let applied = c.send(SessionId::NONE, Command::Assign(items.clone()));
    match applied.result.unwrap() {
        Reply::Each(v) => {
            assert_eq!(v[0], Ok(()));
            assert!(matches!(v[1], Err(Rejection::NotFound { .. })));
            assert!(matches!(v[2], Err(Rejection::NotFound { .. })));
            assert_invalid(v[3].as_ref().unwrap_err(), "broker");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(applied.changes.len(), 1);
    assert!(c.send(SessionId::NONE, Command::Assign(items)).changes.is_empty());
    assign(&mut c, 0, None).unwrap();
    assert_eq!(c.partition(0).assigned, None);
}
