//! `Compact`: one list of ledgers for another, and what never got there (2.7).

use tidemill_types::meta::{Command, Compaction, CompactionStep, Rejection, Reply};
use tidemill_types::{
    ChainElement, Cleanup, CleanupPolicy, Epoch, LedgerId, LedgerState, Offset, TopicConfig,
};

use crate::harness::*;

fn step(epoch: Epoch, step: CompactionStep) -> Command {
    Command::Compact(Compaction { partition: p(0), epoch, step })
}

fn swap(epoch: Epoch, old: &[LedgerId], new: &[LedgerId]) -> Command {
    step(epoch, CompactionStep::Swap { old: old.to_vec(), new: new.to_vec() })
}

fn discard(epoch: Epoch, ledgers: &[LedgerId]) -> Command {
    step(epoch, CompactionStep::Discard { ledgers: ledgers.to_vec() })
}

/// A closed ledger that covers so many offsets and stands in no chain.
fn output(c: &mut Cluster, span: u64) -> LedgerId {
    let (s, epoch) = c.owner(0);
    let l = c.create(0);
    let close = c.closing(l, 3, span);
    c.ok(s, Command::Close { close, epoch: Some(epoch) });
    l
}

/// Ledgers of 7, 5 and 3 records, and an open one.
fn chain_of_four() -> (Cluster, Vec<LedgerId>) {
    let mut c = Cluster::controlled();
    c.acquire(11, 0);
    let mut all = vec![c.create(0)];
    let (s, epoch) = c.owner(0);
    c.ok(s, append(epoch, None, all[0], 0));
    let mut base = 0;
    for records in [7u64, 5, 3] {
        let next = c.create(0);
        base += i64::try_from(records).unwrap();
        let close = c.closing(*all.last().unwrap(), 9, records);
        c.ok(s, roll(epoch, close, next, base));
        all.push(next);
    }
    (c, all)
}

fn chain(c: &Cluster) -> Vec<(LedgerId, i64)> {
    c.partition(0).chain.iter().map(|e: &ChainElement| (e.ledger, e.base_offset.0)).collect()
}

#[test]
fn a_swap_takes_a_list_for_a_list_and_the_old_records_go() {
    let (mut c, l) = chain_of_four();
    let (s, epoch) = c.owner(0);
    let new = [output(&mut c, 4), output(&mut c, 8)];
    let version = c.partition(0).version;
    let applied = c.send(s, swap(epoch, &l[..2], &new));
    let Ok(Reply::Partition(part)) = applied.result else { panic!("{:?}", applied.result) };
    assert_eq!((part.version.0, applied.changes.len()), (version.0 + 1, 1));
    assert_eq!(chain(&c), [(new[0], 0), (new[1], 4), (l[2], 12), (l[3], 15)]);
    assert!(c.state.ledger(l[0]).is_none() && c.state.ledger(l[1]).is_none(), "R20: they are gone");
    // Sent once more after an unknown outcome: refused, and nothing changes.
    assert_conflict(&c.no(s, swap(epoch, &l[..2], &new)), "does not begin");
    // The chain goes on as before: a roll behind it, a swap of the new ones.
    let next = c.create(0);
    c.ok(s, roll(epoch, c.closing(l[3], 1, 1), next, 16));
    let again = output(&mut c, 15);
    c.ok(s, swap(epoch, &[new[0], new[1], l[2]], &[again]));
    assert_eq!(chain(&c), [(again, 0), (l[3], 15), (next, 16)]);
}

#[test]
fn swaps_that_are_refused() {
    let (mut c, l) = chain_of_four();
    let (s, epoch) = c.owner(0);
    let new = output(&mut c, 12);
    let mismatch = Rejection::EpochMismatch { current: epoch };
    assert_eq!(c.no(s, swap(Epoch(0), &l[..2], &[new])), mismatch);
    let other = c.session(12);
    assert_eq!(c.no(other, swap(epoch, &l[..2], &[new])), mismatch);
    assert_conflict(&c.no(s, swap(epoch, &l[1..3], &[new])), "does not begin");
    assert_conflict(&c.no(s, swap(epoch, &l, &[new])), "does not begin");
    assert_conflict(&c.no(s, swap(epoch, &l[..1], &[new])), "the new ledgers end at 12, the old ones at 7");
    assert_conflict(&c.no(s, swap(epoch, &l[..3], &[new])), "the new ledgers end at 12, the old ones at 15");
    assert_invalid(&c.no(s, swap(epoch, &l[..2], &[])), "new");
    assert_invalid(&c.no(s, swap(epoch, &[], &[new])), "old");
    assert_conflict(&c.no(s, swap(epoch, &l[..2], &[l[2]])), "in the chain already");
    assert!(matches!(c.no(s, swap(epoch, &l[..2], &[LedgerId(99)])), Rejection::NotFound { .. }));
    let open = c.create(0);
    let state = Rejection::LedgerState { ledger: open, state: LedgerState::Open };
    assert_eq!(c.no(s, swap(epoch, &l[..2], &[open])), state);
    let half = output(&mut c, 6);
    assert_invalid(&c.no(s, swap(epoch, &l[..2], &[half, half])), "new");
    let empty = output(&mut c, 0);
    assert_invalid(&c.no(s, swap(epoch, &l[..2], &[new, empty])), "new");
    // Another owner since: neither its predecessor nor the predecessor's ledgers get in.
    c.expire(11);
    c.acquire(12, 0);
    let (s, epoch) = c.owner(0);
    assert_conflict(&c.no(s, swap(epoch, &l[..2], &[new])), "in epoch");
    // What stands in the chain still is what stood there.
    assert_eq!(chain(&c).len(), 4);
}

#[test]
fn retention_that_came_first_makes_a_swap_fail() {
    let (mut c, l) = chain_of_four();
    let (s, epoch) = c.owner(0);
    let new = output(&mut c, 12);
    c.ok(s, Command::AdvanceLogStart { partition: p(0), epoch, to: Offset(8) });
    assert_conflict(&c.no(s, swap(epoch, &l[..2], &[new])), "does not begin");
    c.ok(s, discard(epoch, &[new]));
    assert!(c.state.ledger(new).is_none());
    // And the other way round: the swapped ledgers are trimmed as any other.
    let new = output(&mut c, 5);
    c.ok(s, swap(epoch, &l[1..2], &[new]));
    c.ok(s, Command::AdvanceLogStart { partition: p(0), epoch, to: Offset(12) });
    assert_eq!(chain(&c), [(l[2], 12), (l[3], 15)]);
}

#[test]
fn only_what_stands_in_no_chain_is_discarded() {
    let (mut c, l) = chain_of_four();
    let (s, epoch) = c.owner(0);
    let (closed, open) = (output(&mut c, 5), c.create(0));
    assert_conflict(&c.no(s, discard(epoch, &[closed, l[0]])), "in the chain already");
    assert!(c.state.ledger(closed).is_some(), "all or nothing");
    c.ok(s, discard(epoch, &[closed, open]));
    c.ok(s, discard(epoch, &[closed, open]));
    assert!(c.state.ledger(closed).is_none() && c.state.ledger(open).is_none());
    assert_eq!(c.no(c.session(12), discard(epoch, &[closed])), Rejection::EpochMismatch { current: epoch });
}

#[test]
fn a_lower_feature_level_knows_nothing_of_it() {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, epoch) = c.owner(0);
    let low = |r: Rejection| assert!(matches!(r, Rejection::FeatureLevel { needed: 5, .. }), "{r:?}");
    low(c.no(s, swap(epoch, &[l], &[l])));
    let cleanup = Cleanup { policy: CleanupPolicy::Compact, ..Cleanup::default() };
    let config = TopicConfig { cleanup, ..TopicConfig::default() };
    low(c.no(s, Command::CreateTopic { name: name("c"), partitions: 1, config: config.clone() }));
    let topic = p(0).topic;
    let alter = Command::AlterTopic { topic, version: None, partitions: None, config: Some(config) };
    low(c.no(s, alter));
}
