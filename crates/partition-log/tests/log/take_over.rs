//! Another broker takes the partition over.

use std::sync::atomic::Ordering;

use tidemill_partition_log::{LogState, ProduceError, WriteOutcome};
use tidemill_types::{LedgerState, Offset};

use crate::{
    cluster::{Cluster, batch, produce, settle, submit},
    quorum::Fault,
};

#[tokio::test(start_paused = true)]
async fn a_retry_after_the_take_over_is_a_duplicate_with_its_first_offset() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let old = c.serve(&a).await;
    produce(&old, "x").await;
    let first = old.produce(vec![batch(&["a", "b"], Some((7, 0, 0)))]).await.unwrap();

    let new = c.serve(&b).await;
    assert_eq!(new.high_watermark(), Offset(3));
    c.clock.jump_wall(5_000);
    let again = new.produce(vec![batch(&["a", "b"], Some((7, 0, 0)))]).await.unwrap();
    assert_eq!((again.base_offset, again.append_time_ms), (first.base_offset, first.append_time_ms));
    assert!(again.duplicate);
    assert_eq!(new.counters().duplicates_after_take_over, 1);
    let next = new.produce(vec![batch(&["c"], Some((7, 0, 2)))]).await.unwrap();
    assert_eq!((next.base_offset, next.duplicate), (Offset(3), false));
    let values: Vec<String> = c.dump(&new).await.into_iter().map(|(_, v)| v).collect();
    assert_eq!(values, ["x", "a", "b", "c"]);
    assert!(old.state() != LogState::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_old_owner_acknowledges_nothing_more() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let old = c.serve(&a).await;
    produce(&old, "x").await;
    c.hold_adds(true);
    let held = submit(&old, batch(&["late"], Some((7, 0, 0)))).await;
    settle().await;
    let new = c.serve(&b).await;
    c.hold_adds(false);
    let e = held.await.unwrap_err();
    assert_eq!(e, ProduceError::Unknown, "it might have been recovered");
    assert_eq!(old.state(), LogState::Dropped);
    assert_eq!(e.outcome(), WriteOutcome::Unknown);
    // It was not, so the retry is written, once.
    let again = new.produce(vec![batch(&["late"], Some((7, 0, 0)))]).await.unwrap();
    assert_eq!((again.base_offset, again.duplicate), (Offset(1), false));
    assert_eq!(c.dump(&new).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_recovery_kept_is_a_duplicate_although_nobody_acknowledged_it() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let old = c.serve(&a).await;
    produce(&old, "x").await;
    // It reaches one bookie only: not acknowledged, and kept by recovery.
    let ledger = old.describe().open_ledger.unwrap();
    let members = c.quorum.view(c.partition).ledgers[0].fragments[0].ensemble.clone();
    for bookie in c.network.bookies.iter().filter(|b| members[1..].contains(&b.id)) {
        bookie.hold_adds(true);
    }
    let held = submit(&old, batch(&["torn"], Some((7, 0, 0)))).await;
    settle().await;
    assert_eq!(c.quorum.view(c.partition).ledgers[0].id, ledger);
    let new = c.serve(&b).await;
    c.hold_adds(false);
    assert_eq!(held.await.unwrap_err(), ProduceError::Unknown);
    let again = new.produce(vec![batch(&["torn"], Some((7, 0, 0)))]).await.unwrap();
    assert_eq!((again.base_offset, again.duplicate), (Offset(1), true));
    assert_eq!(c.dump(&new).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn waiting_producers_get_their_ledger_in_the_same_command() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    produce(&c.serve(&a).await, "x").await;
    let new = c.own(&b);
    let waiting = submit(&new, batch(&["y"], None)).await;
    assert_eq!(waiting.await.unwrap().base_offset, Offset(1));
    let sent = b.meta.sent.lock().clone();
    assert_eq!(sent, ["start-recovery", "create", "take-over"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_take_over_is_settled() {
    for fault in [Fault::AppliedUnheard, Fault::Lost, Fault::Unavailable] {
        for waiting in [false, true] {
            let c = Cluster::new();
            let (a, b) = (c.broker(1), c.broker(2));
            produce(&c.serve(&a).await, "x").await;
            b.meta.fault("take-over", fault);
            let new = c.own(&b);
            let handle = if waiting { Some(submit(&new, batch(&["y"], None)).await) } else { None };
            assert_eq!(new.ready().await, LogState::Serving);
            if let Some(h) = handle {
                assert_eq!(h.await.unwrap().base_offset, Offset(1));
            }
            produce(&new, "z").await;
            assert_eq!(c.dump(&new).await.len(), 2 + usize::from(waiting));
            let open = c.quorum.view(c.partition).ledgers;
            assert_eq!(open.iter().filter(|l| l.state != LedgerState::Closed).count(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_is_found_behind_empty_and_torn_ledgers() {
    let c = Cluster::with(|c| c.state_entry_every = 300);
    let a = c.broker(1);
    let log = c.serve(&a).await;
    // Several snapshots within the ledger, and producers that only an old one knows.
    for n in 0..30 {
        log.produce(vec![batch(&["v"], Some((n, 0, 0)))]).await.unwrap();
    }
    // An owner that opens a ledger, and gets nothing into it.
    let b = c.broker(2);
    let second = c.serve(&b).await;
    c.hold_adds(true);
    let lost = submit(&second, batch(&["lost"], Some((100, 0, 0)))).await;
    settle().await;
    let d = c.broker(3);
    let third = c.serve(&d).await;
    c.hold_adds(false);
    assert_eq!(lost.await.unwrap_err(), ProduceError::Unknown);
    assert_eq!(third.describe().producers, 30);
    for n in 0..30 {
        let o = third.produce(vec![batch(&["v"], Some((n, 0, 0)))]).await.unwrap();
        assert_eq!((o.base_offset, o.duplicate), (Offset(n), true));
    }
    let o = third.produce(vec![batch(&["lost"], Some((100, 0, 0)))]).await.unwrap();
    assert_eq!((o.base_offset, o.duplicate), (Offset(30), false));
}

#[tokio::test(start_paused = true)]
async fn reads_start_before_the_producers_are_known() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let old = c.serve(&a).await;
    produce(&old, "x").await;
    assert_eq!(old.release().await, LogState::Closed);
    // Released in order: nothing to recover, and no command is needed before it serves.
    let new = c.serve(&b).await;
    assert_eq!(b.meta.sent.lock().len(), 0);
    assert_eq!(c.dump(&new).await, [(0, "x".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_session_ended_drops_the_partition() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let old = c.serve(&a).await;
    produce(&old, "x").await;
    produce(&c.serve(&b).await, "y").await;
    a.meta.valid.store(false, Ordering::SeqCst);
    let e = old.produce(vec![batch(&["z"], None)]).await.unwrap_err();
    assert!(matches!(e, ProduceError::Unknown | ProduceError::NotWritten | ProduceError::NotOwner));
    assert_eq!(old.state(), LogState::Dropped);
}
