//! Joins, heartbeats, time-outs, static members, topics.

use std::{sync::Arc, time::Duration};

use tidemill_group::{GroupError, Heartbeat, Join, Leave, Subscription, TopicEntry, Topics};
use tidemill_types::{Assignor, GroupConfig, GroupMode, TopicId};

use crate::harness::*;

#[test]
fn three_members_share_and_one_that_leaves_gives_back() {
    let mut w = World::new(6);
    let a = w.join("a");
    assert_eq!(a.assigned.len(), 6);
    w.join("b");
    w.join("c");
    for m in ["a", "b", "c"] {
        let now = w.now_of(m);
        w.beat(&now).unwrap();
        w.check();
    }
    for m in ["a", "b", "c"] {
        assert_eq!(w.now_of(m).assigned.len(), 2, "{m}");
    }
    assert!(w.c.describe(&group()).unwrap().is_settled());
    let (a, b) = (w.now_of("a"), w.now_of("b"));
    w.leave(&w.now_of("c")).unwrap();
    // Nothing of the others stops.
    let still = |m: &str, before: &tidemill_group::Assignment| {
        let now = w.now_of(m);
        assert!(before.assigned.iter().all(|x| now.assigned.contains(x)) && now.revoking.is_empty());
        now.assigned.len()
    };
    assert_eq!((still("a", &a), still("b", &b)), (3, 3));
}

#[test]
fn an_answer_that_was_lost_is_given_again() {
    let mut w = World::new(2);
    let first = Join { incarnation: 7, attempt: 1, ..join("a") };
    let a = w.try_join(first.clone()).unwrap();
    let records = w.log.len();
    // The same join again, once or twice: the same life, nothing moves.
    assert_eq!(w.try_join(first).unwrap(), a);
    assert_eq!(w.log.len(), records);
    // Two rebalances pass without a word from a: it is behind by two epochs and goes on.
    let b = w.join("b");
    w.leave(&b).unwrap();
    let behind = w.beat(&a).unwrap();
    assert!(behind.epoch >= a.epoch);
    w.beat(&behind).unwrap();
    w.check();
}

#[test]
fn another_process_with_the_same_id_is_told_so() {
    let mut w = World::new(2);
    let a = w.try_join(Join { incarnation: 7, attempt: 1, ..join("a") }).unwrap();
    let other = Join { incarnation: 8, attempt: 1, ..join("a") };
    assert_eq!(w.try_join(other.clone()), Err(GroupError::MemberInUse));
    w.beat(&a).unwrap();
    w.pass(Duration::from_secs(46));
    w.try_join(other).unwrap();
    assert!(matches!(w.beat(&a), Err(GroupError::Fenced { .. })));
}

#[test]
fn a_member_that_is_not_heard_or_does_not_confirm_is_removed() {
    let mut w = World::new(2);
    let a = w.try_join(Join { session_ms: Some(600_000), ..join("a") }).unwrap();
    w.join("b");
    // a goes on with heartbeats, and gives nothing up.
    for _ in 0..6 {
        w.pass(Duration::from_secs(11));
        let (a, b) = (w.c.assignment(&group(), &id("a")), w.now_of("b"));
        w.beat(&b).unwrap();
        if let Some(a) = a {
            let both = a.assigned.iter().chain(&a.revoking).map(|(p, _)| *p).collect();
            w.beat_with(&a, Some(both)).unwrap();
        }
    }
    assert_eq!(w.beat(&a), Err(GroupError::UnknownMember));
    assert_eq!(w.now_of("b").assigned.len(), 2);
    assert!(matches!(w.commit(Some(("a", a.epoch)), p(0), 1), Err(GroupError::UnknownMember)));
    w.pass(Duration::from_secs(46));
    assert!(w.c.group(&group()).unwrap().members.is_empty());
    assert_eq!(w.c.next_deadline(), None);
}

#[test]
fn an_instance_that_comes_back_finds_its_partitions() {
    let mut w = World::new(4);
    let of = |member: &str, instance: &str| Join { instance: Some(instance.into()), ..join(member) };
    w.try_join(of("a1", "a")).unwrap();
    w.try_join(of("b1", "b")).unwrap();
    let a = w.now_of("a1");
    w.beat(&a).unwrap();
    let (a, b) = (w.now_of("a1"), w.now_of("b1"));
    assert_eq!(
        w.try_join(of("a2", "a")),
        Err(GroupError::InstanceInUse { member: "a1".into() }),
        "it is alive"
    );
    let leave = Leave { group: group(), member: id("a1"), epoch: a.epoch, comes_back: true };
    let outcome = w.c.leave(&leave, w.now);
    w.took(outcome).unwrap();
    assert_eq!(w.now_of("b1").assigned, b.assigned, "they wait for it");
    assert!(matches!(w.beat(&a), Err(GroupError::Fenced { .. })));
    let back = w.try_join(of("a2", "a")).unwrap();
    assert_eq!(indexes(&back.assigned), indexes(&a.assigned));
    assert!(matches!(w.commit(Some(("a1", a.epoch)), p(0), 1), Err(GroupError::UnknownMember)));
    // One that does not come back within its session loses them.
    let leave = Leave { group: group(), member: id("a2"), epoch: back.epoch, comes_back: true };
    let outcome = w.c.leave(&leave, w.now);
    w.took(outcome).unwrap();
    w.pass(Duration::from_secs(40));
    let b = w.now_of("b1");
    w.beat(&b).unwrap();
    w.pass(Duration::from_secs(10));
    assert_eq!(w.now_of("b1").assigned.len(), 4);
    w.check();
}

#[test]
fn topics_that_come_grow_and_go() {
    let mut w = World::new(2);
    let both = Subscription { topics: [name("orders")].into(), pattern: Some("pay.*".into()) };
    let a = w.try_join(Join { subscription: both, ..join("a") }).unwrap();
    assert_eq!(a.assigned.len(), 2);
    let entry = |id, partitions| TopicEntry { id: TopicId(id), partitions };
    let now = |list: &[(&str, u64, u32)]| {
        Arc::new(Topics::new(list.iter().map(|(n, id, c)| (name(n), entry(*id, *c))), []))
    };
    w.topics(now(&[("orders", 1, 3), ("payments", 2, 1), ("other", 3, 9)]));
    assert_eq!(w.now_of("a").assigned.len(), 4);
    w.topics(now(&[("payments", 2, 1), ("other", 3, 9)]));
    let a = w.now_of("a");
    assert_eq!((a.assigned.len(), a.revoking.len()), (1, 3));
    assert_eq!(w.beat(&a).unwrap().revoking.len(), 0);
    // A changed subscription.
    let beat = Heartbeat {
        group: group(),
        member: id("a"),
        epoch: a.epoch,
        revision: 0,
        owned: None,
        subscription: Some(Subscription { topics: [name("other")].into(), pattern: None }),
    };
    let outcome = w.c.heartbeat(beat, w.now);
    w.took(outcome).unwrap();
    let a = w.now_of("a");
    w.beat(&a).unwrap();
    assert_eq!(w.now_of("a").assigned.len(), 9);
    w.fail_over(now(&[("payments", 2, 1), ("other", 3, 10)]));
    assert_eq!(w.now_of("a").assigned.len(), 10, "noticed at the take-over");
    w.check();
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut w = World::new(2);
    let d = || join("a");
    let none = Subscription::default();
    let internal = Subscription { topics: [name("__x")].into(), pattern: None };
    let pattern = Subscription { topics: [].into(), pattern: Some("(".into()) };
    for (field, bad) in [
        ("member", Join { member: id(""), ..d() }),
        ("member", Join { member: id("a b"), ..d() }),
        ("instance", Join { instance: Some(String::new()), ..d() }),
        ("session_timeout_ms", Join { session_ms: Some(1), ..d() }),
        ("rebalance_timeout_ms", Join { rebalance_ms: Some(9_999_999), ..d() }),
        ("subscription", Join { subscription: none, ..d() }),
        ("subscription", Join { subscription: internal, ..d() }),
        ("pattern", Join { subscription: pattern, ..d() }),
        ("client", Join { client: "x".repeat(513), ..d() }),
    ] {
        assert!(
            matches!(w.try_join(bad), Err(GroupError::Invalid { field: f, .. }) if f == field),
            "{field}"
        );
    }
    assert!(w.c.is_empty());
    assert!(matches!(w.commit(Some(("a", 1)), p(0), 1), Err(GroupError::UnknownGroup)));
    let queue = GroupConfig { mode: GroupMode::Queue, ..GroupConfig::default() };
    let effects = w.c.set_config(&group(), Some(Arc::new(queue)), w.now);
    assert!(effects.is_empty());
    assert!(matches!(w.try_join(d()), Err(GroupError::Mode { .. })));
    assert!(matches!(w.commit(None, p(0), 1), Err(GroupError::Mode { .. })));
}

#[test]
fn another_assignor_moves_what_it_has_to_move() {
    let mut w = World::new(4);
    w.join("a");
    w.join("b");
    let a = w.now_of("a");
    w.beat(&a).unwrap();
    let range = GroupConfig { assignor: Assignor::Range, ..GroupConfig::default() };
    let effects = w.c.set_config(&group(), Some(Arc::new(range)), w.now);
    w.wrote(effects);
    for _ in 0..2 {
        for m in ["a", "b"] {
            let now = w.now_of(m);
            w.beat(&now).unwrap();
            w.check();
        }
    }
    assert_eq!(
        (indexes(&w.now_of("a").assigned), indexes(&w.now_of("b").assigned)),
        (vec![0, 1], vec![2, 3])
    );
}
