//! 2.8, groups and offsets: bugs that users of other systems hit, each by its number.

use std::time::Duration;

use tidemill_group::GroupError;

use crate::harness::*;

/// apache/kafka#15212: a partition that came back into the target while it was being revoked lost the epoch of its
/// assignment, and was given to two members.
#[test]
fn bug_11_a_partition_that_is_wanted_again_while_it_is_revoked_keeps_its_epoch_and_its_one_owner() {
    let mut w = World::new(2);
    let a = w.join("a");
    assert_eq!(indexes(&a.assigned), [0, 1]);
    let b = w.join("b");
    // a has to give one up, b waits for it.
    let a = w.now_of("a");
    assert_eq!((a.assigned.len(), a.revoking.len(), b.assigned.len()), (1, 1, 0));
    let (given, since) = a.revoking[0];
    // b goes before a has confirmed: the partition is a's again by target, and still to be given up first.
    w.leave(&b).unwrap();
    let again = w.now_of("a");
    assert_eq!(again.revoking, [(given, since)]);
    w.check();
    // A commit of it counts by the epoch of its assignment, until it is confirmed.
    w.commit(Some(("a", again.epoch)), given, 7).unwrap();
    // c comes: nobody but a may hold it.
    let c = w.join("c");
    assert!(c.assigned.is_empty());
    let a = w.now_of("a");
    let a = w.beat(&a).unwrap();
    w.check();
    let holders =
        [w.now_of("a"), w.now_of("c")].iter().filter(|m| m.assigned.iter().any(|(p, _)| *p == given)).count();
    assert_eq!(holders, 1);
    assert!(a.revoking.is_empty());
}

/// apache/kafka#21305: a member that was fenced could not come back with epoch 0.
#[test]
fn bug_12_a_fenced_member_joins_again_with_epoch_0() {
    let mut w = World::new(4);
    let a = w.join("a");
    w.pass(Duration::from_secs(46));
    assert_eq!(w.beat(&a), Err(GroupError::UnknownMember));
    let again = w.join("a");
    assert_eq!(again.assigned.len(), 4);
    assert!(again.epoch > a.epoch);
    // Also while it is still in the group: a restart without an end of its session.
    let third = w.join("a");
    assert_eq!(third.assigned.len(), 4);
    assert!(matches!(w.beat(&again), Err(GroupError::Fenced { .. })), "the earlier life is over");
    w.beat(&third).unwrap();
    w.check();
}

/// apache/kafka#22045: an empty group whose epoch was ahead of its assignment's made every later step fail.
#[test]
fn bug_13_an_empty_group_goes_on() {
    let mut w = World::new(4);
    let a = w.join("a");
    w.leave(&a).unwrap();
    w.topics(orders(6));
    w.fail_over(orders(6));
    assert!(w.c.group(&group()).unwrap().members.is_empty());
    let a = w.join("a");
    assert_eq!((a.assigned.len(), a.epoch), (6, w.c.group(&group()).unwrap().epoch));
    w.beat(&a).unwrap();
}

/// robot-head/crabka#521: a partition was offered before its old owner had revoked it.
#[test]
fn bug_15_nothing_is_granted_before_it_is_given_up() {
    let mut w = World::new(4);
    let a0 = w.join("a");
    let b = w.join("b");
    assert!(b.assigned.is_empty());
    // Whatever b says, and whatever a says about another assignment than the one it was told.
    assert!(w.beat(&b).unwrap().assigned.is_empty());
    w.beat_with(&a0, Some([].into())).unwrap();
    assert!(w.now_of("b").assigned.is_empty(), "a heartbeat about an older assignment confirmed something");
    let a = w.now_of("a");
    w.beat_with(&a, None).unwrap();
    assert!(w.now_of("b").assigned.is_empty(), "no word about what it owns confirmed something");
    w.beat_with(&a, Some(a.assigned.iter().chain(&a.revoking).map(|(p, _)| *p).collect())).unwrap();
    assert!(w.now_of("b").assigned.is_empty(), "it still has them");
    w.beat(&a).unwrap();
    assert_eq!(w.now_of("b").assigned.len(), 2);
    w.check();
}

/// platformatic/kafka#267: an error about a stale epoch was taken for "no offset", and the consumer began at the end.
#[test]
fn bug_16_a_fetch_with_a_stale_epoch_is_an_error_and_never_no_offset() {
    let mut w = World::new(2);
    let a = w.join("a");
    w.commit(Some(("a", a.epoch)), p(0), 5).unwrap();
    let now = w.join("a");
    let fetch = |epoch| w.c.fetch(&group(), Some(&(id("a"), epoch)), Some(&[p(0)]));
    assert!(matches!(fetch(a.epoch), Err(GroupError::Fenced { .. })));
    assert!(matches!(fetch(now.epoch + 1), Err(GroupError::Fenced { .. })));
    assert_eq!(fetch(now.epoch).unwrap()[0].1.as_ref().map(|c| c.offset), Some(5));
    assert_eq!(w.c.fetch(&group(), Some(&(id("x"), 1)), None), Err(GroupError::UnknownMember));
}

/// redpanda-data/redpanda#31483: the map of offsets differed from a replay of its log, when offsets expired. The random
/// interleavings stand in `random.rs`; this is the one with expiry and a commit right after.
#[test]
fn bug_17_expiry_and_a_later_commit_replay_to_the_same_map() {
    let mut w = World::new(2);
    w.commit(None, p(0), 5).unwrap();
    w.commit(None, p(1), 6).unwrap();
    let week = 7 * 24 * 3_600 * 1_000;
    w.now.wall_ms += week / 2;
    w.commit(None, p(1), 7).unwrap();
    let effects = w.c.expire_offsets(w.now.wall_ms + week / 2);
    w.wrote(effects);
    assert_eq!((w.offset(p(0)), w.offset(p(1))), (None, Some(7)));
    w.commit(None, p(0), 8).unwrap();
    w.fail_over(orders(2));
    assert_eq!((w.offset(p(0)), w.offset(p(1))), (Some(8), Some(7)));
}
