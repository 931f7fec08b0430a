//! `Roll`, its unknown outcomes, and what is in flight meanwhile.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use tidemill_partition_log::PartitionLog;
use tidemill_types::{LedgerId, LedgerState, Offset};

use crate::{
    cluster::{Broker, Cluster, batch, produce, settle, submit},
    quorum::Fault,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn rolled(log: &Arc<PartitionLog>, from: LedgerId) -> LedgerId {
    loop {
        match log.describe().open_ledger {
            Some(l) if l != from => return l,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Old enough to be rolled, and used just now, so that it is not idle.
async fn make_due(c: &Cluster, b: &Broker, log: &Arc<PartitionLog>) -> LedgerId {
    produce(log, "first").await;
    c.clock.advance(DAY);
    produce(log, "second").await;
    let ledger = log.describe().open_ledger.unwrap();
    b.tick(log, Duration::ZERO);
    ledger
}

#[tokio::test(start_paused = true)]
async fn a_roll_by_age_closes_with_an_index_and_goes_on() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    let old = make_due(&c, &b, &log).await;
    let new = rolled(&log, old).await;
    assert_eq!(produce(&log, "third").await, Offset(2));
    let view = c.quorum.view(c.partition);
    assert_eq!(
        view.partition.chain.iter().map(|e| (e.ledger, e.base_offset)).collect::<Vec<_>>(),
        [(old, Offset(0)), (new, Offset(2))]
    );
    assert_eq!((view.ledgers[0].state, view.ledgers[0].records), (LedgerState::Closed, Some(2)));
    assert_eq!(c.dump(&log).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn entries_in_flight_at_a_roll_go_into_the_next_ledger_in_order() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "first").await;
    c.clock.advance(DAY);
    produce(&log, "second").await;
    let old = log.describe().open_ledger.unwrap();
    // Nothing is acknowledged any more; the roll does not wait for that.
    c.hold_adds(true);
    let mut held = Vec::new();
    for n in 0..20 {
        held.push(submit(&log, batch(&[&n.to_string()], Some((7, 0, n)))).await);
    }
    b.tick(&log, Duration::ZERO);
    rolled(&log, old).await;
    held.push(submit(&log, batch(&["20"], Some((7, 0, 20)))).await);
    c.hold_adds(false);
    for (n, h) in (2..).zip(held) {
        let o = h.await.unwrap();
        assert_eq!((o.base_offset, o.duplicate), (Offset(n), false));
    }
    assert_eq!(log.counters().rolls_with_pending, 1);
    let values: Vec<String> = c.dump(&log).await.into_iter().map(|(_, v)| v).collect();
    let numbers = (0..=20).map(|n| n.to_string());
    assert_eq!(
        values,
        ["first".to_owned(), "second".to_owned()].into_iter().chain(numbers).collect::<Vec<_>>()
    );
    // The state in front of them does not claim them: a crash now must not make their retries duplicates.
    let next = c.broker(2);
    let new = c.serve(&next).await;
    let o = new.produce(vec![batch(&["20"], Some((7, 0, 20)))]).await.unwrap();
    assert_eq!((o.base_offset, o.duplicate), (Offset(22), true));
}

#[tokio::test(start_paused = true)]
async fn pending_entries_that_a_crash_loses_are_no_duplicates() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "first").await;
    c.clock.advance(DAY);
    produce(&log, "second").await;
    let old = log.describe().open_ledger.unwrap();
    c.hold_adds(true);
    let held = submit(&log, batch(&["lost"], Some((7, 0, 0)))).await;
    b.tick(&log, Duration::ZERO);
    let next_ledger = rolled(&log, old).await;
    settle().await;
    assert_eq!(c.network.bookies.iter().map(|b| b.entries(next_ledger)).sum::<usize>(), 0);
    let next = c.broker(2);
    let new = c.serve(&next).await;
    c.hold_adds(false);
    assert!(held.await.is_err());
    let o = new.produce(vec![batch(&["lost"], Some((7, 0, 0)))]).await.unwrap();
    assert_eq!((o.base_offset, o.duplicate), (Offset(2), false));
}

#[tokio::test(start_paused = true)]
async fn a_roll_of_unknown_outcome_is_settled_and_acknowledges_nothing_above_its_end() {
    for fault in [Fault::AppliedUnheard, Fault::Lost] {
        let c = Cluster::new();
        let b = c.broker(1);
        let log = c.serve(&b).await;
        b.meta.fault("roll", fault);
        let old = make_due(&c, &b, &log).await;
        rolled(&log, old).await;
        assert_eq!(produce(&log, "third").await, Offset(2));
        assert_eq!(c.dump(&log).await.len(), 3);
        let view = c.quorum.view(c.partition);
        assert_eq!(view.ledgers.iter().filter(|l| l.state == LedgerState::Open).count(), 1);
        assert_eq!(view.ledgers[0].records, Some(2));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_quorum_a_roll_is_put_off_and_the_ledger_grows_on() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "first").await;
    c.clock.advance(DAY);
    produce(&log, "second").await;
    let old = log.describe().open_ledger.unwrap();
    b.meta.offline.store(true, Ordering::SeqCst);
    b.tick(&log, Duration::ZERO);
    settle().await;
    assert_eq!(produce(&log, "third").await, Offset(2));
    assert_eq!(log.describe().open_ledger, Some(old));
    b.meta.offline.store(false, Ordering::SeqCst);
    // L' is created, the command is not sent: the same.
    b.meta.fault("roll", Fault::Unavailable);
    b.tick(&log, Duration::ZERO);
    settle().await;
    assert_eq!(produce(&log, "fourth").await, Offset(3));
    assert_eq!(log.describe().open_ledger, Some(old));
    b.tick(&log, Duration::ZERO);
    rolled(&log, old).await;
    // L' was created once.
    assert_eq!(b.meta.sent.lock().iter().filter(|k| **k == "create").count(), 2);
    assert_eq!(c.dump(&log).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_fence_during_a_roll_ends_in_recovery_and_loses_nothing() {
    let c = Cluster::new();
    let (b, auditor) = (c.broker(1), c.broker(2));
    let log = c.serve(&b).await;
    produce(&log, "first").await;
    c.clock.advance(DAY);
    produce(&log, "second").await;
    let old = log.describe().open_ledger.unwrap();
    c.hold_adds(true);
    let held = submit(&log, batch(&["held"], Some((7, 0, 0)))).await;
    b.tick(&log, Duration::ZERO);
    settle().await;
    // In recovery now: the roll's close must fail, whatever it thinks of its end.
    drop(auditor.ctx.ledgers.recover(old).await.unwrap());
    c.hold_adds(false);
    let o = held.await.unwrap();
    assert_eq!((o.base_offset, o.duplicate), (Offset(2), false));
    assert_eq!(log.counters().own_recoveries, 1);
    assert_eq!(c.dump(&log).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_empty_ledger_is_never_rolled() {
    let c = Cluster::with(|c| c.idle_close = 10 * DAY);
    let (a, b) = (c.broker(1), c.broker(2));
    produce(&c.serve(&a).await, "x").await;
    let log = c.own(&b);
    c.hold_adds(true);
    let waiting = submit(&log, batch(&["y"], None)).await;
    log.ready().await;
    settle().await;
    let old = log.describe().open_ledger.unwrap();
    b.tick(&log, 2 * DAY);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(log.describe().open_ledger, Some(old), "no record is acknowledged in it");
    c.hold_adds(false);
    assert_eq!(waiting.await.unwrap().base_offset, Offset(1));
}
