//! Declarations: whose a group is, and resets that happen once.

use tidemill_group::{Declare, GroupError, MAX_RESETS, Release, Released, Reset, ResetOutcome};
use tidemill_types::Claim;

use crate::harness::*;

fn claim(uid: &str, owner: &str) -> Claim {
    Claim { uid: uid.into(), owner: owner.into() }
}

fn declare(w: &mut World, claim: Claim, from: Option<&str>) -> Result<bool, GroupError> {
    let d =
        Declare { group: group(), claim, from_uid: from.map(str::to_owned), topics: [name("orders")].into() };
    let outcome = w.c.declare(d, w.now);
    w.took(outcome)
}

fn release(w: &mut World, uid: &str, delete: bool) -> Result<Released, GroupError> {
    let outcome = w.c.release(&Release { group: group(), uid: uid.into(), delete });
    w.took(outcome)
}

fn once(id: &str, offset: i64) -> Reset {
    Reset { once: Some((id.into(), "earliest".into())), set: vec![(p(0), committed(offset))], ..reset() }
}

#[test]
fn one_object_wins_and_the_others_are_told_which() {
    let mut w = World::new(2);
    assert_eq!(declare(&mut w, claim("1", "ConsumerGroup a/x"), None), Ok(true));
    assert_eq!(declare(&mut w, claim("1", "ConsumerGroup a/x"), None), Ok(false), "nothing is written twice");
    let other = || claim("2", "ConsumerGroup a/y");
    let lost = GroupError::Claimed { owner: "ConsumerGroup a/x".into() };
    assert_eq!(declare(&mut w, other(), None), Err(lost.clone()));
    assert_eq!(declare(&mut w, other(), Some("9")), Err(lost));
    let held = Some(claim("1", "ConsumerGroup a/x"));
    assert_eq!(release(&mut w, "2", true), Ok(Released::NotHolder(held)));
    // Made anew under its name it is the same owner.
    assert_eq!(declare(&mut w, claim("3", "ConsumerGroup a/x"), None), Ok(true));
    // And one whose object is gone is followed.
    assert_eq!(declare(&mut w, other(), Some("3")), Ok(true));
    w.fail_over(orders(2));
    assert_eq!(w.c.group(&group()).unwrap().declared.claim, Some(other()));
    assert_eq!(release(&mut w, "2", false), Ok(Released::Done));
    assert_eq!(release(&mut w, "2", false), Ok(Released::NotHolder(None)));
    assert_eq!(declare(&mut w, claim("4", "ConsumerGroup a/z"), None), Ok(true));
}

#[test]
fn a_declared_group_is_not_forgotten_and_a_deleted_one_is_gone() {
    let mut w = World::new(2);
    declare(&mut w, claim("1", "o"), None).unwrap();
    let week = 7 * 24 * 3_600 * 1_000;
    let effects = w.c.expire_offsets(w.now.wall_ms + 9 * week);
    assert!(effects.is_empty());
    let a = w.join("a");
    assert_eq!(release(&mut w, "1", true), Err(GroupError::NotEmpty { members: 1 }));
    w.leave(&a).unwrap();
    let deleted = w.c.delete(&group());
    assert_eq!(
        w.took(deleted),
        Err(GroupError::Claimed { owner: "o".into() }),
        "the object would bring it back"
    );
    w.reset(once("r", 3)).unwrap();
    assert_eq!(release(&mut w, "1", true), Ok(Released::Done));
    assert_eq!(release(&mut w, "1", true), Ok(Released::Absent));
    w.fail_over(orders(2));
    assert!(w.c.is_empty());
    // A group of that name is a new one.
    assert_eq!(w.reset(once("r", 1)), Ok(ResetOutcome::Done));
}

#[test]
fn a_declared_reset_happens_once_whoever_asks_again() {
    let mut w = World::new(2);
    assert_eq!(w.reset(once("r1", 3)), Ok(ResetOutcome::Done));
    w.commit(None, p(0), 7).unwrap();
    w.fail_over(orders(2));
    assert_eq!(w.reset(once("r1", 3)), Ok(ResetOutcome::Already));
    assert_eq!(w.offset(p(0)), Some(7), "it moved nothing");
    assert_eq!(w.reset(once("r2", 4)), Ok(ResetOutcome::Done));
    // Back to the older id, as after a revert: it was carried out, it is not again.
    assert_eq!(w.reset(once("r1", 3)), Ok(ResetOutcome::Already));
    assert_eq!(w.offset(p(0)), Some(4));
    // A new owner changes nothing about that.
    declare(&mut w, claim("1", "o"), None).unwrap();
    release(&mut w, "1", false).unwrap();
    declare(&mut w, claim("2", "p"), None).unwrap();
    assert_eq!(w.reset(once("r2", 3)), Ok(ResetOutcome::Already));
    // Members or not: what is done is done.
    w.join("a");
    assert_eq!(w.reset(once("r2", 3)), Ok(ResetOutcome::Already));
}

#[test]
fn a_reset_waits_for_members_or_removes_them() {
    let mut w = World::new(2);
    let a = w.join("a");
    w.commit(Some(("a", a.epoch)), p(0), 9).unwrap();
    assert_eq!(w.reset(once("r1", 3)), Err(GroupError::NotEmpty { members: 1 }));
    assert_eq!(w.reset(Reset { evict: true, ..once("r1", 3) }), Ok(ResetOutcome::Done));
    w.check();
    // What the member still does is void: its commit would undo the reset.
    assert!(w.commit(Some(("a", a.epoch)), p(0), 10).is_err());
    assert!(w.beat(&a).is_err());
    assert_eq!(w.offset(p(0)), Some(3));
    let again = w.join("a");
    assert!(again.epoch > a.epoch && indexes(&again.assigned) == [0, 1]);
    w.fail_over(orders(2));
    assert_eq!(w.offset(p(0)), Some(3));
}

#[test]
fn the_memory_of_resets_is_bounded() {
    let mut w = World::new(1);
    for i in 0..MAX_RESETS + 3 {
        w.reset(once(&format!("r{i}"), 1)).unwrap();
    }
    let resets = &w.c.group(&group()).unwrap().declared.resets;
    assert_eq!((resets.len(), resets[0].id.as_str()), (MAX_RESETS, "r3"));
    for bad in [String::new(), "x".repeat(250)] {
        let r = Reset { once: Some((bad, "earliest".into())), ..reset() };
        assert!(matches!(w.reset(r), Err(GroupError::Invalid { field: "id", .. })));
    }
}
