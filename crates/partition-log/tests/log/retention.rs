//! Retention by size and time, and deletion of records.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tidemill_partition_log::{FetchError, GapKind, PartitionLog, ProduceError};
use tidemill_types::{Offset, Replication, TopicConfig};

use crate::cluster::{Broker, Cluster, NOW_MS, batch, produce};

const SECOND: Duration = Duration::from_secs(1);

fn config(retention_bytes: Option<u64>, retention_ms: Option<i64>) -> Arc<TopicConfig> {
    Arc::new(TopicConfig {
        replication: Replication { copies: 3, ack_quorum: 2 },
        roll_bytes: Some(1_000),
        retention_bytes,
        retention_ms,
        ..TopicConfig::default()
    })
}

/// Maintenance once a (manual) second until `done`.
async fn tick_until(b: &Broker, log: &Arc<PartitionLog>, what: &str, done: impl Fn() -> bool) {
    let run = async {
        while !done() {
            b.tick(log, SECOND);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(600), run)
        .await
        .unwrap_or_else(|_| panic!("{what}: {:?}", log.describe()));
}

/// Some ledgers of about 1 000 bytes.
async fn fill(b: &Broker, log: &Arc<PartitionLog>, ledgers: usize) {
    for _ in 0..ledgers {
        let old = log.describe().open_ledger;
        for _ in 0..12 {
            produce(log, &"v".repeat(40)).await;
        }
        tick_until(b, log, "a roll", || log.describe().open_ledger.is_some_and(|now| Some(now) != old)).await;
    }
}

/// Bytes of the closed ledgers that the quorum has for the partition.
fn closed_bytes(c: &Cluster) -> (u64, u64) {
    let ledgers = c.quorum.view(c.partition).ledgers;
    let bytes: Vec<u64> = ledgers.iter().filter_map(|l| l.length).collect();
    (bytes.iter().sum(), bytes.first().copied().unwrap_or(0))
}

#[tokio::test(start_paused = true)]
async fn size_is_kept_within_a_ledger_and_the_reader_is_told_what_is_gone() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(config(Some(4_000), None));
    let keyed = |s| batch(&["a"], Some((7, 0, s)));
    log.produce(vec![keyed(0)]).await.unwrap();
    let mut start = Offset(0);
    for _ in 0..6 {
        fill(&b, &log, 3).await;
        assert!(log.log_start() >= start, "the log start never goes back");
        start = log.log_start();
    }
    let settled = || {
        let (all, first) = closed_bytes(&c);
        all - first < 4_000
    };
    tick_until(&b, &log, "retention", settled).await;
    let (all, _) = closed_bytes(&c);
    assert!(all + 1_500 >= 4_000, "{all} bytes are less than the topic keeps");
    let start = log.log_start();
    assert!(start > Offset(0));
    assert_eq!(c.quorum.view(c.partition).partition.chain[0].base_offset, start, "whole ledgers");
    // Below the start: a gap with its kind, and the records behind it.
    let r = log.read(Offset(3), 1).await.unwrap();
    let gap = r.gap.unwrap();
    assert_eq!((gap.kind, gap.from, gap.to), (GapKind::Trimmed, Offset(3), start));
    assert_eq!(r.batches[0].base_offset, start);
    // The next owner sees the same, and still knows the producer whose batch is gone.
    let other = c.broker(2);
    let next = c.serve(&other).await;
    assert_eq!(next.log_start(), start);
    let again = next.produce(vec![keyed(0)]).await.unwrap();
    assert_eq!((again.duplicate, again.base_offset), (true, Offset(0)));
    assert!(!next.produce(vec![keyed(1)]).await.unwrap().duplicate);
}

#[tokio::test(start_paused = true)]
async fn time_takes_an_idle_partition_to_its_end_and_keeps_its_producers() {
    let c = Cluster::with(|c| c.producer_expiry = Duration::from_secs(1 << 30));
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(config(None, Some(60_000)));
    log.produce(vec![batch(&["a"], Some((7, 0, 0)))]).await.unwrap();
    fill(&b, &log, 3).await;
    let end = log.high_watermark();
    // It goes idle: the last ledger is closed as well.
    let idle = || log.describe().open_ledger.is_none();
    tick_until(&b, &log, "an idle close", idle).await;
    let before = c.quorum.view(c.partition).partition.chain.len();
    for _ in 0..30 {
        b.tick(&log, SECOND);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(log.log_start(), Offset(0), "the own clock alone deletes nothing");
    assert_eq!(c.quorum.view(c.partition).partition.chain.len(), before);
    b.meta.confirmed.store(NOW_MS + 30 * 86_400_000, Ordering::SeqCst);
    tick_until(&b, &log, "retention", || log.log_start() == end).await;
    let view = c.quorum.view(c.partition);
    assert_eq!(view.ledgers.len(), 1, "only a ledger with the producers' state is left: {view:?}");
    // Nothing more to do, however long it goes on.
    let chain = view.partition.chain;
    for _ in 0..30 {
        b.tick(&log, SECOND);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(c.quorum.view(c.partition).partition.chain, chain);
    let next = c.serve(&c.broker(2)).await;
    assert_eq!((next.log_start(), next.high_watermark()), (end, end));
    assert!(next.produce(vec![batch(&["a"], Some((7, 0, 0)))]).await.unwrap().duplicate);
    let e = next.produce(vec![batch(&["c"], Some((7, 0, 5)))]).await.unwrap_err();
    assert!(matches!(e, ProduceError::OutOfOrder { expected: 1, .. }), "{e:?}");
}

#[tokio::test(start_paused = true)]
async fn records_are_deleted_up_to_any_offset_and_only_forwards() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(config(None, Some(i64::MAX)));
    fill(&b, &log, 2).await;
    let end = log.high_watermark();
    let beyond = log.delete_records(Offset(end.0 + 1)).await.unwrap_err();
    assert!(matches!(beyond, FetchError::OutOfRange { high_watermark, .. } if high_watermark == end));
    assert_eq!(log.delete_records(Offset(5)).await.unwrap(), Offset(5));
    assert_eq!(log.delete_records(Offset(5)).await.unwrap(), Offset(5), "again: success");
    assert_eq!(log.delete_records(Offset(2)).await.unwrap(), Offset(5), "never back");
    let r = log.read(Offset(0), 1).await.unwrap();
    assert_eq!(r.gap.map(|g| (g.kind, g.to)), Some((GapKind::Trimmed, Offset(5))));
    // All of it, with no ledger open: the state of the producers gets one.
    tick_until(&b, &log, "an idle close", || log.describe().open_ledger.is_none()).await;
    assert_eq!(log.delete_records(end).await.unwrap(), end);
    let view = c.quorum.view(c.partition);
    assert_eq!((view.partition.log_start, view.ledgers.len()), (end, 1));
    assert_eq!(produce(&log, "x").await, end, "offsets go on");
}
