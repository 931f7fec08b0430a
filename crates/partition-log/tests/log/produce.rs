//! Order, offsets, verdicts, limits.

use std::time::Duration;

use tidemill_partition_log::{LogState, ProduceError, WriteOutcome};
use tidemill_types::{LedgerState, Offset};

use crate::cluster::{Cluster, NOW_MS, batch, produce, settle, submit};

#[tokio::test(start_paused = true)]
async fn offsets_follow_the_order_of_calls() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.own(&b);
    // Before the take-over has ended: they wait, in order.
    let first = submit(&log, batch(&["a", "b"], None)).await;
    let second = submit(&log, batch(&["c"], None)).await;
    assert_eq!(first.await.unwrap().base_offset, Offset(0));
    let o = second.await.unwrap();
    assert_eq!((o.base_offset, o.append_time_ms, o.duplicate), (Offset(2), NOW_MS, false));
    let values: Vec<String> = c.dump(&log).await.into_iter().map(|(_, v)| v).collect();
    assert_eq!(values, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_become_one_entry_and_keep_their_offsets() {
    let c = Cluster::with(|c| c.coalesce_after = 2);
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "x").await;
    let ledger = log.describe().open_ledger.unwrap();
    let before = c.network.bookies.iter().map(|b| b.entries(ledger)).max().unwrap();
    c.hold_adds(true);
    let mut handles = Vec::new();
    for n in 0..20 {
        handles.push(submit(&log, batch(&[&n.to_string()], None)).await);
    }
    c.hold_adds(false);
    for (n, h) in (1..).zip(handles) {
        assert_eq!(h.await.unwrap().base_offset, Offset(n));
    }
    settle().await;
    let after = c.network.bookies.iter().map(|b| b.entries(ledger)).max().unwrap();
    assert!(after - before <= 4, "{} entries for 20 calls", after - before);
    assert_eq!(c.dump(&log).await.len(), 21);
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_a_pushed_batch_waits_for_its_outcome() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "x").await;
    c.hold_adds(true);
    let first = submit(&log, batch(&["a"], Some((7, 0, 0)))).await;
    let mut retry = submit(&log, batch(&["a"], Some((7, 0, 0)))).await;
    settle().await;
    assert!(futures::poll!(&mut retry).is_pending(), "not written, so not a duplicate yet");
    c.hold_adds(false);
    let (first, retry) = (first.await.unwrap(), retry.await.unwrap());
    assert_eq!((first.base_offset, first.duplicate), (Offset(1), false));
    assert_eq!((retry.base_offset, retry.duplicate), (Offset(1), true));
    assert_eq!(c.dump(&log).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn refusals_change_nothing() {
    let c = Cluster::with(|c| c.max_message_bytes = 200);
    let b = c.broker(1);
    let log = c.serve(&b).await;
    let send = async |batches| {
        let e = log.produce(batches).await.unwrap_err();
        assert_eq!(e.outcome(), WriteOutcome::NotWritten);
        e
    };
    let large = "x".repeat(300);
    assert!(matches!(send(vec![batch(&[&large], None)]).await, ProduceError::TooLarge { max: 200, .. }));
    assert_eq!(send(vec![]).await, ProduceError::Empty);
    assert_eq!(send(vec![batch(&["a"], Some((7, 0, 3)))]).await, ProduceError::UnknownProducer { id: 7 });
    // The second batch is wrong, so the first is not noted either.
    let torn = vec![batch(&["a"], Some((7, 0, 0))), batch(&["b"], Some((7, 0, 9)))];
    assert_eq!(send(torn).await, ProduceError::OutOfOrder { expected: 1, found: 9 });
    let good = vec![batch(&["a"], Some((7, 0, 0))), batch(&["b"], Some((7, 0, 1)))];
    assert_eq!(log.produce(good.clone()).await.unwrap().base_offset, Offset(0));
    let again = log.produce(good).await.unwrap();
    assert!(again.duplicate && again.base_offset == Offset(0));
    let mixed = vec![batch(&["b"], Some((7, 0, 1))), batch(&["c"], Some((7, 0, 2)))];
    assert_eq!(send(mixed).await, ProduceError::Rebatched);
    assert_eq!(
        send(vec![batch(&["a"], Some((7, 0, 9)))]).await,
        ProduceError::OutOfOrder { expected: 2, found: 9 }
    );
    log.produce(vec![batch(&["n"], Some((7, 1, 0)))]).await.unwrap();
    let fenced = ProduceError::ProducerFenced { current: 1, found: 0 };
    assert_eq!(send(vec![batch(&["c"], Some((7, 0, 2)))]).await, fenced);
    assert_eq!(c.dump(&log).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_in_flight_budget_gives_back_pressure_and_comes_back() {
    let c = Cluster::with(|c| c.in_flight_bytes = 1_000);
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "x").await;
    c.hold_adds(true);
    let big = "x".repeat(800);
    let held = submit(&log, batch(&[&big], None)).await;
    let refused = log.produce(vec![batch(&[&big], None)]).await.unwrap_err();
    assert!(matches!(refused, ProduceError::Overloaded { .. }));
    c.hold_adds(false);
    held.await.unwrap();
    log.produce(vec![batch(&[&big], None)]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn append_time_is_bounded_by_quorum_time_and_never_goes_back() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    c.clock.jump_wall(3_600_000);
    let o = log.produce(vec![batch(&["a"], None)]).await.unwrap();
    assert_eq!(o.append_time_ms, NOW_MS + 60_000);
    c.clock.jump_wall(-7_200_000);
    let o = log.produce(vec![batch(&["a"], None)]).await.unwrap();
    assert_eq!(o.append_time_ms, NOW_MS + 60_000);
}

#[tokio::test(start_paused = true)]
async fn a_drop_tells_not_written_from_unknown() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    // No ledger is open and none can be opened.
    b.meta.offline.store(true, std::sync::atomic::Ordering::SeqCst);
    let parked = submit(&log, batch(&["a"], None)).await;
    settle().await;
    log.abandon();
    assert_eq!(parked.await.unwrap_err(), ProduceError::NotWritten);
    assert_eq!(log.produce(vec![batch(&["a"], None)]).await.unwrap_err(), ProduceError::NotOwner);

    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "x").await;
    c.hold_adds(true);
    let handed = submit(&log, batch(&["a"], None)).await;
    settle().await;
    log.abandon();
    assert_eq!(handed.await.unwrap_err(), ProduceError::Unknown);
}

#[tokio::test(start_paused = true)]
async fn an_idle_ledger_is_closed_and_the_next_produce_opens_another() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "a").await;
    let first = log.describe().open_ledger.unwrap();
    b.tick(&log, Duration::from_secs(599));
    settle().await;
    assert_eq!(log.describe().open_ledger, Some(first));
    b.tick(&log, Duration::from_secs(1));
    while log.describe().open_ledger.is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    settle().await;
    assert_eq!(std::sync::Arc::strong_count(&log), 1, "no task holds an idle partition");
    let record = c.quorum.state.lock().ledger(first).cloned().unwrap();
    assert_eq!((record.state, record.records), (LedgerState::Closed, Some(1)));
    assert_eq!(produce(&log, "b").await, Offset(1));
    assert_ne!(log.describe().open_ledger, Some(first));
    assert_eq!(c.dump(&log).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_finishes_what_is_in_flight_and_leaves_a_closed_chain() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "a").await;
    c.hold_adds(true);
    let held = submit(&log, batch(&["b"], None)).await;
    let release = tokio::spawn({
        let log = log.clone();
        async move { log.release().await }
    });
    settle().await;
    assert_eq!(log.state(), LogState::Releasing);
    assert_eq!(log.produce(vec![batch(&["c"], None)]).await.unwrap_err(), ProduceError::NotOwner);
    c.hold_adds(false);
    assert_eq!(held.await.unwrap().base_offset, Offset(1));
    assert_eq!(release.await.unwrap(), LogState::Closed);
    let ledgers = c.quorum.view(c.partition).ledgers;
    assert!(ledgers.iter().all(|l| l.state == LedgerState::Closed));
    assert!(log.confirm_ownership().await.is_err(), "M27");
}
