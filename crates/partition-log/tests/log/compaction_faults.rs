//! Key compaction with lost answers, dead owners and dead bookies at every step: the map is the same, and nothing is left.

use std::{collections::BTreeSet, sync::Arc, sync::atomic::Ordering};

use tidemill_types::{CleanupPolicy, Offset, meta::Command};

use crate::{
    cluster::{Cluster, settle},
    compaction::{Map, cluster, collect_gone, config, fill, map_of, passes, put, read_all, tick_until},
    quorum::Fault,
};

/// Ledgers that stand in no chain.
fn unlinked(c: &Cluster) -> BTreeSet<tidemill_types::LedgerId> {
    let state = c.quorum.state.lock();
    let chain: BTreeSet<_> = state.partitions().flat_map(|p| p.chain.iter().map(|e| e.ledger)).collect();
    state.ledgers().map(|l| l.id).filter(|l| !chain.contains(l)).collect()
}

/// What the auditor does with ledgers of older epochs.
fn audit(c: &Cluster) {
    for l in unlinked(c) {
        let (epoch, version) = {
            let state = c.quorum.state.lock();
            let l = state.ledger(l).unwrap();
            (l.epoch, l.version)
        };
        if epoch < c.quorum.view(c.partition).partition.epoch {
            c.quorum.own(Command::RemoveLedger { ledger: l, version });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_changes_nothing() {
    for kind in ["create", "close", "compact"] {
        for fault in [Fault::AppliedUnheard, Fault::Lost, Fault::Unavailable] {
            let c = cluster(|_| {});
            let b = c.broker(1);
            let log = c.serve(&b).await;
            log.set_config(Arc::new(config(CleanupPolicy::Delete)));
            let mut map = Map::new();
            fill(&b, &log, 6, 10, &mut map).await;
            b.meta.fault(kind, fault);
            log.set_config(Arc::new(config(CleanupPolicy::Compact)));
            passes(&b, &log, 1).await;
            assert_eq!(map_of(&read_all(&log, Offset(0), 1).await.0), map, "{kind} {fault:?}");
            // What a pass that failed left is discarded by the next look: only a created ledger whose answer was lost stays.
            tick_until(&b, &log, "discarded", || unlinked(&c).len() <= usize::from(kind == "create")).await;
            let next = c.serve(&c.broker(2)).await;
            audit(&c);
            assert_eq!(unlinked(&c), BTreeSet::new());
            assert_eq!(map_of(&read_all(&next, Offset(0), 1).await.0), map, "{kind} {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_command_leaves_the_same_map() {
    let mut finished = false;
    for allowed in 0.. {
        let c = cluster(|c| c.compacted_ledger_bytes = 400);
        let b = c.broker(1);
        let log = c.serve(&b).await;
        log.set_config(Arc::new(config(CleanupPolicy::Delete)));
        let mut map = Map::new();
        fill(&b, &log, 6, 10, &mut map).await;
        log.set_config(Arc::new(config(CleanupPolicy::Compact)));
        b.meta.left.store(allowed, Ordering::SeqCst);
        let ended = || {
            b.meta.offline.load(Ordering::SeqCst) || log.describe().compaction.is_some_and(|c| c.passes > 0)
        };
        tick_until(&b, &log, "a crash or a pass", ended).await;
        finished = !b.meta.offline.load(Ordering::SeqCst);
        // The process is gone; its bytes that were under way may still arrive.
        log.abandon();
        let other = c.broker(2);
        let next = c.serve(&other).await;
        audit(&c);
        assert_eq!(unlinked(&c), BTreeSet::new(), "orphans are collected after {allowed} commands");
        collect_gone(&c, &(1..60).map(tidemill_types::LedgerId).collect::<Vec<_>>());
        assert_eq!(map_of(&read_all(&next, Offset(0), 1).await.0), map, "after {allowed} commands");
        // The next owner compacts, and writes go on.
        next.set_config(Arc::new(config(CleanupPolicy::Compact)));
        fill(&other, &next, 4, 10, &mut map).await;
        passes(&other, &next, 1).await;
        assert_eq!(map_of(&read_all(&next, Offset(0), 1).await.0), map);
        if finished {
            assert!(allowed > 6, "several ledgers are created and closed before the swap, not {allowed}");
            break;
        }
    }
    assert!(finished);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_replaced_swaps_nothing() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Delete)));
    let mut map = Map::new();
    fill(&b, &log, 6, 10, &mut map).await;
    // The bookies hold the output back; meanwhile the partition goes to another owner, of which this one hears nothing.
    c.hold_adds(true);
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    let under_way = || log.describe().compaction.is_some_and(|c| c.progress_percent.is_some());
    tick_until(&b, &log, "a pass", under_way).await;
    let before = c.quorum.view(c.partition).partition.chain;
    let other = c.broker(2);
    let next = c.own(&other);
    c.hold_adds(false);
    next.ready().await;
    tick_until(&b, &log, "the end of the old owner's pass", || {
        log.describe().compaction.is_none_or(|c| c.progress_percent.is_none())
    })
    .await;
    let after = c.quorum.view(c.partition).partition.chain;
    assert!(after.starts_with(&before[..before.len() - 1]), "{before:?} {after:?}");
    assert_eq!(map_of(&read_all(&next, Offset(0), 1).await.0), map);
}

#[tokio::test(start_paused = true)]
async fn bug_45_retention_during_a_pass_wins_and_the_pass_is_done_again() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Delete)));
    let mut map = Map::new();
    fill(&b, &log, 6, 10, &mut map).await;
    let cut = Offset(c.quorum.view(c.partition).partition.chain[1].base_offset.0);
    c.hold_adds(true);
    log.set_config(Arc::new(config(CleanupPolicy::CompactAndDelete)));
    let under_way = || log.describe().compaction.is_some_and(|c| c.progress_percent.is_some());
    tick_until(&b, &log, "a pass", under_way).await;
    assert_eq!(log.delete_records(cut).await.unwrap(), cut);
    c.hold_adds(false);
    passes(&b, &log, 1).await;
    let described = log.describe().compaction.unwrap();
    assert_eq!(described.failed, 1, "the first swap found another list: {described:?}");
    let (seen, _) = read_all(&log, Offset(0), 1).await;
    let expected: Map = map_of(&seen);
    assert!(seen.iter().all(|s| s.0 >= cut.0) && expected.iter().all(|(k, v)| map[k] == *v));
    tick_until(&b, &log, "discarded", || unlinked(&c).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_does_not_wait_for_a_pass() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Delete)));
    let mut map = Map::new();
    fill(&b, &log, 6, 10, &mut map).await;
    put(&log, "key-1", Some("last")).await;
    map.insert("key-1".into(), "last".into());
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    b.tick(&log, std::time::Duration::from_secs(1));
    assert_eq!(log.release().await, tidemill_partition_log::LogState::Closed);
    settle().await;
    let next = c.serve(&c.broker(2)).await;
    assert_eq!(map_of(&read_all(&next, Offset(0), 1).await.0), map);
    audit(&c);
    assert_eq!(unlinked(&c), BTreeSet::new());
}
