//! The auditor's decisions against the real state machine: what it proposes is applied, and the end is what was wished.

mod cluster;

use std::time::Duration;

use tidemill_ledger::core::repair::Verdict;
use tidemill_types::{
    BookieState, EntryId, EntryRange, LedgerId, LedgerState, MemberId, MemberRole, PartitionId, TopicId,
    Version,
    meta::{Command, CreateLedger, RepairOutcome, Reply},
};
use uuid::Uuid;

use self::cluster::Cluster;
use super::{
    compare::Compared,
    findings::Finding,
    pass::{Memory, Settings},
};

const BROKER: u128 = 100;
const P: PartitionId = PartitionId { topic: TopicId(1), index: 0 };

fn id(n: u128) -> MemberId {
    MemberId(Uuid::from_u128(n))
}

fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn memory() -> Memory {
    Memory::new(Settings { grace: s(60), lost_after: s(3_600), per_bookie: 2, compare_every: s(1_000) })
}

fn all(first: i64) -> Vec<EntryId> {
    vec![EntryId(first)]
}

#[test]
fn a_lost_member_is_replaced_and_may_be_retired() {
    let mut c = Cluster::new();
    let mut m = memory();
    let l = c.ledger(&[1, 2, 3]);
    c.close(l, vec![]);
    assert_eq!(c.pass(&mut m, s(0)).report.ledgers, 0);
    c.expire(3);
    c.set(3, BookieState::Lost);
    let pass = c.pass(&mut m, s(1));
    assert_eq!((pass.commands.len(), pass.report.ledgers), (1, 1));
    assert_eq!(c.record(l).repair.unwrap().target, id(4));
    let pass = c.pass(&mut m, s(2));
    assert_eq!((pass.commands.len(), pass.report.in_progress), (0, 1), "one at a time");
    c.finish(l, RepairOutcome::Replaced { from: id(3), fragments: all(0) });
    assert_eq!(c.ensemble(l), [id(1), id(2), id(4)]);
    assert_eq!(c.pass(&mut m, s(3)).report.ledgers, 0);
    assert_eq!(c.state.named_count(id(3)), 0);
    c.set(3, BookieState::Retired);
}

#[test]
fn another_leader_goes_on_and_a_dead_worker_loses_its_repair() {
    let mut c = Cluster::new();
    let l = c.ledger(&[1, 2, 3]);
    c.close(l, vec![]);
    c.expire(3);
    c.set(3, BookieState::Lost);
    c.pass(&mut memory(), s(0));
    c.expire(4);
    let mut m = memory();
    assert!(c.pass(&mut m, s(0)).commands.is_empty(), "a worker that was just seen away may come back");
    c.pass(&mut m, s(31));
    assert_eq!(c.record(l).repair, None, "taken from it");
    let pass = c.pass(&mut m, s(32));
    assert_eq!((pass.commands.len(), pass.report.stuck), (0, 1), "nobody else could take the copies");
    c.bookie(5, "");
    c.pass(&mut m, s(33));
    assert_eq!(c.record(l).repair.unwrap().target, id(5));
}

#[test]
fn a_repair_that_was_given_up_waits_and_takes_another_target() {
    let mut c = Cluster::new();
    let mut m = memory();
    c.bookie(5, "");
    let l = c.ledger(&[1, 2, 3]);
    c.close(l, vec![]);
    c.expire(3);
    c.set(3, BookieState::Lost);
    c.pass(&mut m, s(0));
    let first = c.record(l).repair.unwrap().target;
    c.finish(l, RepairOutcome::Abandoned);
    assert!(c.pass(&mut m, Duration::from_millis(10)).commands.is_empty(), "not at once");
    c.pass(&mut m, s(2));
    assert_ne!(c.record(l).repair.unwrap().target, first);
}

#[test]
fn owners_get_the_grace_to_roll_before_their_ledger_is_recovered() {
    for state in [BookieState::Draining, BookieState::Lost] {
        let mut c = Cluster::new();
        let mut m = memory();
        let l = c.ledger(&[1, 2, 3]);
        if state == BookieState::Lost {
            c.expire(3);
        }
        c.set(3, state);
        assert!(c.pass(&mut m, s(0)).recoveries.is_empty());
        assert!(c.pass(&mut m, s(59)).recoveries.is_empty());
        let pass = c.pass(&mut m, s(60));
        assert_eq!(pass.recoveries.len(), 1);
        assert!(c.pass(&mut m, s(61)).recoveries.is_empty(), "once at a time");
        m.found(Finding::Recovered { ledger: l, done: Ok(()) }, &pass.table, s(62));
        c.close(l, vec![]);
        c.pass(&mut m, s(63));
        assert_eq!(c.record(l).repair.unwrap().target, id(4), "then its copies move");
    }
}

#[test]
fn a_ledger_without_a_live_owner_is_closed_after_the_grace() {
    let mut c = Cluster::new();
    let mut m = memory();
    c.ledger(&[1, 2, 3]);
    assert!(c.pass(&mut m, s(0)).recoveries.is_empty());
    c.expire(BROKER);
    assert!(c.pass(&mut m, s(1)).recoveries.is_empty());
    assert_eq!(c.pass(&mut m, s(61)).recoveries.len(), 1);
}

#[test]
fn what_is_under_is_looked_at_and_cleared_only_by_a_whole_pass() {
    let mut c = Cluster::new();
    let mut m = memory();
    let l = c.ledger(&[1, 2, 3]);
    c.close(l, vec![EntryRange { first: EntryId(3), last: EntryId(4) }]);
    let pass = c.pass(&mut m, s(0));
    assert_eq!(pass.looks.len(), 1);
    let looked = |c: &Cluster, verdict| Finding::Looked { record: Box::new(c.record(l)), verdict };
    assert_eq!(m.found(looked(&c, Verdict::Unknown), &pass.table, s(0)), None);
    assert!(c.pass(&mut m, s(0)).looks.is_empty(), "not at once again");
    assert_eq!(c.pass(&mut m, s(5)).looks.len(), 1);
    let verdict = Verdict::Lacks { bookie: id(2), limbo_count: 0 };
    let start = m.found(looked(&c, verdict), &pass.table, s(5)).unwrap();
    c.lead(start);
    c.finish(l, RepairOutcome::Filled);
    assert!(!c.record(l).fragments[0].under.is_empty(), "a repair clears nothing");
    assert_eq!(c.pass(&mut m, s(90)).looks.len(), 1);
    let checked = m.found(looked(&c, Verdict::Complete), &pass.table, s(91)).unwrap();
    c.lead(checked);
    assert!(c.record(l).fragments[0].under.is_empty());
    assert_eq!(c.pass(&mut m, s(200)).report.ledgers, 0);
}

#[test]
fn closed_ledgers_grow_to_the_copies_that_the_topic_wants() {
    let mut c = Cluster::new();
    let mut m = memory();
    let l = c.ledger(&[1, 2]);
    assert_eq!(c.pass(&mut m, s(0)).report.ledgers, 0, "its writer's as long as it is open");
    c.close(l, vec![]);
    c.pass(&mut m, s(1));
    let target = c.record(l).repair.unwrap().target;
    c.finish(l, RepairOutcome::Grown { fragments: all(0) });
    assert_eq!(c.ensemble(l), [id(1), id(2), target]);
    assert_eq!(c.pass(&mut m, s(2)).report.ledgers, 0);
}

#[test]
fn ledgers_that_nobody_can_link_any_more_are_removed() {
    let mut c = Cluster::new();
    let mut m = memory();
    let epoch = c.state.partition(P).unwrap().epoch;
    let create = CreateLedger { partition: P, epoch, ensemble: vec![id(1), id(2)], ack_quorum: 2 };
    let Reply::Ledger(spare) = c.broker(Command::CreateLedger(create)) else { panic!() };
    assert!(c.pass(&mut m, s(0)).commands.is_empty(), "of the current epoch");
    c.expire(BROKER);
    c.open(BROKER, MemberRole::Broker, "");
    c.acquire();
    c.pass(&mut m, s(1));
    assert_eq!(c.state.ledger(spare.id), None);
}

#[test]
fn one_bookie_or_one_zone_is_given_up_by_itself_and_no_more() {
    let lost = |zones: [&str; 4], gone: &[u128]| {
        let mut c = Cluster::new();
        for (n, zone) in (1..=4).zip(zones) {
            c.expire(n);
            c.open(n, MemberRole::Bookie, zone);
        }
        let mut m = memory();
        c.pass(&mut m, s(0));
        for n in gone {
            c.expire(*n);
        }
        c.pass(&mut m, s(10));
        assert!(c.pass(&mut m, s(3_600)).commands.is_empty(), "not a second before its time");
        c.pass(&mut m, s(3_610));
        let is_lost = |n: &u128| c.state.member(id(*n)).unwrap().state == BookieState::Lost;
        (1..=4).filter(is_lost).collect::<Vec<u128>>()
    };
    assert_eq!(lost(["", "", "", ""], &[2]), [2]);
    assert_eq!(lost(["", "", "", ""], &[2, 3]), [0; 0], "a person should look");
    assert_eq!(lost(["a", "a", "b", "b"], &[1, 2]), [1, 2]);
    assert_eq!(lost(["a", "a", "b", "b"], &[2, 3]), [0; 0]);
}

#[test]
fn closed_ledgers_are_compared_again_and_again() {
    let mut c = Cluster::new();
    let mut m = memory();
    let l = c.ledger(&[1, 2, 3]);
    assert!(c.pass(&mut m, s(0)).compares.is_empty(), "an open one has no end");
    c.close(l, vec![]);
    let pass = c.pass(&mut m, s(1));
    assert_eq!(pass.compares.len(), 1);
    assert!(c.pass(&mut m, s(2)).compares.is_empty(), "once at a time");
    let same = Compared::Same { copies: 30 };
    let found = |c: &Cluster, compared| Finding::Compared { record: Box::new(c.record(l)), compared };
    assert_eq!(m.found(found(&c, same), &pass.table, s(3)), None);
    assert!(c.pass(&mut m, s(1_002)).compares.is_empty());
    assert_eq!(c.pass(&mut m, s(1_003)).compares.len(), 1);
    let lacks = Compared::Lacks { bookie: id(2), limbo_count: 0 };
    let start = m.found(found(&c, lacks), &pass.table, s(1_004)).unwrap();
    c.lead(start);
    assert_eq!(c.record(l).repair.unwrap().target, id(2), "what is missing is filled up");
    let differs = Compared::Differs { entry: EntryId(1), bookie: id(3) };
    assert_eq!(m.found(found(&c, differs), &pass.table, s(1_005)), None, "an alarm, never a choice");
}

#[test]
fn work_per_bookie_is_bounded() {
    let mut c = Cluster::new();
    let mut m = memory();
    let ledgers: Vec<LedgerId> = (0..5)
        .map(|_| {
            let l = c.ledger(&[1, 2, 3]);
            c.close(l, vec![]);
            l
        })
        .collect();
    c.expire(3);
    c.set(3, BookieState::Lost);
    assert_eq!(c.pass(&mut m, s(0)).commands.len(), 2);
    assert_eq!(c.pass(&mut m, s(1)).commands.len(), 0);
    let mut now = 2;
    while c.state.named_count(id(3)) > 0 {
        let busy = ledgers.iter().find(|l| c.record(**l).repair.is_some()).copied().unwrap();
        c.finish(busy, RepairOutcome::Replaced { from: id(3), fragments: all(0) });
        c.pass(&mut m, s(now));
        now += 1;
        assert!(c.state.repairs(None).count() <= 2);
    }
    assert!(
        ledgers
            .iter()
            .all(|l| c.record(*l).state == LedgerState::Closed && c.record(*l).version > Version(1))
    );
}
