//! Commits and who may make them.

use std::time::Duration;

use tidemill_group::{GroupError, Reset};

use crate::harness::*;

/// 2.2, KIP-1251: a commit counts by the epoch at which its partition was assigned.
#[test]
fn a_commit_is_judged_by_the_epoch_of_its_partition() {
    let mut w = World::new(2);
    let a = w.join("a");
    let b = w.join("b");
    // a's epoch is old by now; its partitions are as they were when it got them.
    assert!(a.epoch < b.epoch);
    w.commit(Some(("a", a.epoch)), p(0), 3).unwrap();
    w.commit(Some(("a", a.epoch)), p(1), 4).unwrap();
    let now = w.now_of("a");
    let given = now.revoking[0].0;
    w.beat(&now).unwrap();
    assert!(matches!(w.commit(Some(("a", now.epoch)), given, 9), Err(GroupError::Fenced { .. })), "given up");
    assert_eq!(w.offset(given), Some(if given == p(0) { 3 } else { 4 }));
    // b goes, and a gets it back in a later epoch: what a knew before does not count for it.
    w.leave(&w.now_of("b")).unwrap();
    assert!(matches!(w.commit(Some(("a", a.epoch)), given, 9), Err(GroupError::Fenced { .. })));
    let now = w.now_of("a");
    w.commit(Some(("a", now.epoch)), given, 10).unwrap();
    assert!(matches!(w.commit(Some(("a", now.epoch + 1)), given, 11), Err(GroupError::Fenced { .. })));
    assert_eq!(w.offset(given), Some(10));
}

#[test]
fn from_outside_only_while_nobody_is_in() {
    let mut w = World::new(2);
    w.commit(None, p(0), 1).unwrap();
    let a = w.join("a");
    assert_eq!(w.commit(None, p(0), 2), Err(GroupError::NotEmpty { members: 1 }));
    let deleted = w.c.delete(&group());
    assert_eq!(w.took(deleted), Err(GroupError::NotEmpty { members: 1 }));
    w.leave(&a).unwrap();
    w.commit(None, p(0), 2).unwrap();
    assert!(matches!(w.commit(None, p(0), -1), Err(GroupError::Invalid { field: "offset", .. })));
    w.reset(Reset { forget: vec![p(0), p(1)], ..reset() }).unwrap();
    assert_eq!(w.offset(p(0)), None);
    w.commit(None, p(1), 2).unwrap();
    let deleted = w.c.delete(&group());
    w.took(deleted).unwrap();
    let deleted = w.c.delete(&group());
    assert_eq!(w.took(deleted), Err(GroupError::UnknownGroup));
    w.fail_over(orders(2));
    assert!(w.c.is_empty());
}

#[test]
fn offsets_of_an_empty_group_expire_and_those_of_a_running_one_do_not() {
    let mut w = World::new(1);
    let a = w.join("a");
    w.commit(Some(("a", a.epoch)), p(0), 1).unwrap();
    let week = 7 * 24 * 3_600 * 1_000;
    w.now.wall_ms += 10 * week;
    let effects = w.c.expire_offsets(w.now.wall_ms);
    assert!(effects.is_empty(), "a member is there");
    w.leave(&a).unwrap();
    let left = w.now.wall_ms;
    assert!(w.c.expire_offsets(left + week - 1).is_empty());
    let effects = w.c.expire_offsets(left + week);
    w.wrote(effects);
    assert!(w.c.is_empty());
    w.fail_over(orders(1));
    assert!(w.c.is_empty());
}

#[test]
fn offsets_of_a_topic_go_with_it_when_that_is_certain() {
    let mut w = World::new(1);
    w.commit(None, p(0), 1).unwrap();
    w.topics(std::sync::Arc::new(tidemill_group::Topics::default()));
    assert!(w.c.expire_offsets(0).is_empty(), "the view may be an old one");
    let later = tidemill_group::TopicEntry { id: tidemill_types::TopicId(2), partitions: 1 };
    w.topics(std::sync::Arc::new(tidemill_group::Topics::new([(name("later"), later)], [])));
    let effects = w.c.expire_offsets(0);
    w.wrote(effects);
    assert_eq!(w.offset(p(0)), None);
    w.pass(Duration::ZERO);
    w.check();
}
