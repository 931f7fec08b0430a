//! Answers that need ownership, without a valid session.

use std::{sync::atomic::Ordering, time::Duration};

use tidemill_partition_log::{FetchError, LogState, OffsetSpec};
use tidemill_types::Offset;

use crate::cluster::{Cluster, batch, produce, settle, submit};

#[tokio::test(start_paused = true)]
async fn a_barrier_proves_ownership_with_the_quorum_down() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "x").await;
    b.meta.valid.store(false, Ordering::SeqCst);
    b.meta.offline.store(true, Ordering::SeqCst);
    let end = log.list_offset(OffsetSpec::Latest).await.unwrap().unwrap();
    assert_eq!(end.offset, Offset(1));
    assert!(log.read(Offset(1), 100).await.unwrap().batches.is_empty());
    assert_eq!(log.counters().barriers, 2);
    // Barriers have no offset.
    assert_eq!(produce(&log, "y").await, Offset(1));
    assert_eq!(c.dump(&log).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_barrier_is_refused_after_a_second_owner_fenced() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let old = c.serve(&a).await;
    produce(&old, "x").await;
    let new = c.serve(&b).await;
    produce(&new, "y").await;
    // The old owner slept through all of it. It may serve what it knows is acknowledged, but nothing about the end.
    a.meta.valid.store(false, Ordering::SeqCst);
    assert_eq!(old.read(Offset(0), 100).await.unwrap().batches.len(), 1);
    assert_eq!(old.list_offset(OffsetSpec::Latest).await, Err(FetchError::NotOwner));
    assert_eq!(old.counters().barriers_refused, 1);
    settle().await;
    assert_eq!(old.state(), LogState::Dropped);
    assert_eq!(old.read(Offset(1), 100).await, Err(FetchError::NotOwner));
}

#[tokio::test(start_paused = true)]
async fn one_barrier_serves_all_who_waited_and_none_who_came_later() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "x").await;
    let ledger = log.describe().open_ledger.unwrap();
    let entries = || c.network.bookies.iter().map(|b| b.entries(ledger)).max().unwrap();
    let before = entries();
    b.meta.valid.store(false, Ordering::SeqCst);
    c.hold_adds(true);
    let ask = || {
        let log = log.clone();
        tokio::spawn(async move { log.confirm_ownership().await })
    };
    let first = ask();
    settle().await;
    let later: Vec<_> = (0..10).map(|_| ask()).collect();
    settle().await;
    assert!(!first.is_finished() && later.iter().all(|l| !l.is_finished()));
    c.hold_adds(false);
    first.await.unwrap().unwrap();
    for l in later {
        l.await.unwrap().unwrap();
    }
    settle().await;
    assert_eq!(entries() - before, 2, "one for the first, one for all who came while it was under way");
}

#[tokio::test(start_paused = true)]
async fn without_an_open_ledger_the_epoch_is_read() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    a.meta.valid.store(false, Ordering::SeqCst);
    log.confirm_ownership().await.unwrap();
    a.meta.offline.store(true, Ordering::SeqCst);
    assert_eq!(log.confirm_ownership().await, Err(FetchError::NotOwner));
    assert_eq!(log.state(), LogState::Serving, "no answer is no verdict");
    a.meta.offline.store(false, Ordering::SeqCst);
    c.serve(&b).await;
    assert_eq!(log.confirm_ownership().await, Err(FetchError::NotOwner));
    assert_eq!(log.state(), LogState::Dropped);
}

#[tokio::test(start_paused = true)]
async fn a_close_voids_a_barrier_and_those_who_wait_are_answered_all_the_same() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "x").await;
    c.clock.advance(Duration::from_secs(24 * 3600));
    produce(&log, "y").await;
    let old = log.describe().open_ledger;
    b.meta.valid.store(false, Ordering::SeqCst);
    c.hold_adds(true);
    let held = submit(&log, batch(&["z"], None)).await;
    let asked = tokio::spawn({
        let log = log.clone();
        async move { log.confirm_ownership().await }
    });
    settle().await;
    b.tick(&log, Duration::ZERO);
    while log.describe().open_ledger == old {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Nothing is acknowledged anywhere, and the answer comes: from the quorum.
    asked.await.unwrap().unwrap();
    c.hold_adds(false);
    assert_eq!(held.await.unwrap().base_offset, Offset(2));
}
