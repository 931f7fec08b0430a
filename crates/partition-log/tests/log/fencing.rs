//! Fenced is not "not owner" (1.3 step 4).

use tidemill_ledger::Recovered;
use tidemill_partition_log::{LogState, ProduceError};
use tidemill_types::{LedgerState, Offset, meta::Command};

use crate::{
    cluster::{Cluster, batch, produce, settle, submit},
    quorum::Fault,
};

#[tokio::test(start_paused = true)]
async fn an_owner_recovers_its_own_ledger_and_its_producers_see_nothing() {
    let c = Cluster::new();
    let (a, auditor) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    produce(&log, "x").await;
    let ledger = log.describe().open_ledger.unwrap();
    c.hold_adds(true);
    let mut held = Vec::new();
    for n in 0..5 {
        held.push(submit(&log, batch(&[&n.to_string()], Some((7, 0, n)))).await);
    }
    settle().await;
    // Somebody fences the ledger, and leaves it at that.
    assert!(matches!(auditor.ctx.ledgers.recover(ledger).await.unwrap(), Recovered::Decided(_)));
    c.hold_adds(false);
    for (n, h) in (1..).zip(held) {
        let o = h.await.unwrap();
        assert_eq!((o.base_offset, o.duplicate), (Offset(n), false));
    }
    assert_eq!(log.counters().own_recoveries, 1);
    assert_eq!(log.state(), LogState::Serving);
    assert_ne!(log.describe().open_ledger, Some(ledger));
    let again = log.produce(vec![batch(&["4"], Some((7, 0, 4)))]).await.unwrap();
    assert_eq!((again.base_offset, again.duplicate), (Offset(5), true));
    assert_eq!(c.dump(&log).await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn an_auditor_that_closes_first_is_no_reason_to_give_up() {
    for fault in [None, Some(Fault::AppliedUnheard), Some(Fault::Lost)] {
        let c = Cluster::new();
        let (a, auditor) = (c.broker(1), c.broker(2));
        let log = c.serve(&a).await;
        produce(&log, "x").await;
        let ledger = log.describe().open_ledger.unwrap();
        let Recovered::Decided(end) = auditor.ctx.ledgers.recover(ledger).await.unwrap() else { panic!() };
        let close = tidemill_types::meta::CloseLedger { records: 1, ..end.close };
        auditor.meta.send(Command::Close { close, epoch: None }).unwrap();
        if let Some(f) = fault {
            a.meta.fault("append", f);
        }
        assert_eq!(produce(&log, "y").await, Offset(1));
        assert_eq!(c.dump(&log).await.len(), 2);
        let ledgers = c.quorum.view(c.partition).ledgers;
        assert_eq!(
            ledgers.iter().map(|l| l.state).collect::<Vec<_>>(),
            [LedgerState::Closed, LedgerState::Open]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_owner_cuts_off_what_the_first_one_still_sends() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let old = c.serve(&a).await;
    produce(&old, "x").await;
    let new = c.serve(&b).await;
    // The old one does not know, and its quorum client is cut off: only the bookies tell it.
    a.meta.offline.store(true, std::sync::atomic::Ordering::SeqCst);
    let h = submit(&old, batch(&["zombie"], None)).await;
    settle().await;
    assert_eq!(produce(&new, "y").await, Offset(1));
    a.meta.offline.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(h.await.unwrap_err(), ProduceError::Unknown);
    assert_eq!(old.state(), LogState::Dropped);
    let values: Vec<String> = c.dump(&new).await.into_iter().map(|(_, v)| v).collect();
    assert_eq!(values, ["x", "y"]);
}
