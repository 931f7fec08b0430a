//! Reads from the tail, behind it, by time.

use std::{sync::Arc, time::Duration};

use tidemill_ledger::{LedgerClient, LedgerConfig};
use tidemill_partition_log::{FetchError, GapKind, ListedOffset, OffsetSpec, PartitionLog};
use tidemill_types::{EntryId, Offset};

use crate::cluster::{CLUSTER, Cluster, NOW_MS, batch, batch_at, produce, settle};

/// Three ledgers, the last one open, with entries of one to three records.
async fn fill(c: &Cluster, b: &crate::cluster::Broker, log: &Arc<PartitionLog>) -> i64 {
    let mut next = 0;
    for round in 0..3 {
        for n in 0..40i64 {
            let values: Vec<String> = (0..=n % 3).map(|i| format!("{}", next + i)).collect();
            let refs: Vec<&str> = values.iter().map(String::as_str).collect();
            log.produce(vec![batch_at(&refs, None, NOW_MS + next * 10)]).await.unwrap();
            next += n % 3 + 1;
        }
        if round < 2 {
            let old = log.describe().open_ledger;
            c.clock.advance(Duration::from_secs(24 * 3600));
            produce(log, &next.to_string()).await;
            next += 1;
            b.tick(log, Duration::ZERO);
            while log.describe().open_ledger == old || log.describe().open_ledger.is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    next
}

#[tokio::test(start_paused = true)]
async fn every_offset_is_found_from_the_cache_and_from_bookies() {
    for cache in [0, 32 << 20] {
        let c = Cluster::with(|c| c.tail_cache_bytes = cache);
        let b = c.broker(1);
        let log = c.serve(&b).await;
        let end = fill(&c, &b, &log).await;
        assert_eq!(log.describe().cached_bytes == 0, cache == 0);
        for offset in 0..end {
            let r = log.read(Offset(offset), 1).await.unwrap();
            let first = &r.batches[0];
            assert!(first.base_offset <= Offset(offset) && r.next_offset > Offset(offset), "{offset}");
        }
        let expected: Vec<_> = (0..end).map(|n| (n, n.to_string())).collect();
        assert_eq!(c.dump(&log).await, expected);
        // A whole chain in few large reads.
        let mut at = Offset(0);
        let mut reads = 0;
        while at < Offset(end) {
            at = log.read(at, 1 << 20).await.unwrap().next_offset;
            reads += 1;
        }
        assert!(reads <= 3, "{reads}");
        // And without the index: another owner, whose last ledger was recovered.
        let next = c.broker(2);
        assert_eq!(c.dump(&c.serve(&next).await).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn catch_up_reads_do_not_touch_the_tail_cache() {
    let c = Cluster::with(|c| c.tail_cache_bytes = 2_000);
    let b = c.broker(1);
    let log = c.serve(&b).await;
    let end = fill(&c, &b, &log).await;
    let before = (log.describe().cached_bytes, b.ctx.tail_cache_bytes());
    assert!(before.0 > 0 && before.1 <= 2_000);
    assert_eq!(c.dump(&log).await.len(), usize::try_from(end).unwrap());
    assert_eq!((log.describe().cached_bytes, b.ctx.tail_cache_bytes()), before);
}

#[tokio::test(start_paused = true)]
async fn a_reader_at_the_end_is_woken() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "a").await;
    let waiting = tokio::spawn({
        let log = log.clone();
        async move {
            log.wait_for_data(Offset(1)).await;
            log.read(Offset(1), 100).await
        }
    });
    settle().await;
    assert!(!waiting.is_finished());
    produce(&log, "b").await;
    assert_eq!(waiting.await.unwrap().unwrap().batches[0].base_offset, Offset(1));
    let e = log.read(Offset(9), 100).await.unwrap_err();
    assert!(matches!(e, FetchError::OutOfRange { high_watermark: Offset(2), .. }));
    let waiting = tokio::spawn({
        let log = log.clone();
        async move { log.wait_for_data(Offset(2)).await }
    });
    settle().await;
    log.abandon();
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_trimmed_is_a_gap_and_its_ledgers_go() {
    let c = Cluster::with(|c| c.tail_cache_bytes = 0);
    let b = c.broker(1);
    let log = c.serve(&b).await;
    let end = fill(&c, &b, &log).await;
    let to = Offset(end / 2);
    assert_eq!(log.advance_log_start(to).await.unwrap(), to);
    assert_eq!(log.describe().ledgers, 2);
    let r = log.read(Offset(3), 100).await.unwrap();
    let gap = r.gap.unwrap();
    assert_eq!((gap.kind, gap.from, gap.to), (GapKind::Trimmed, Offset(3), to));
    assert!(r.batches[0].base_offset <= to && r.next_offset > to);
    let earliest = log.list_offset(OffsetSpec::Earliest).await.unwrap().unwrap();
    assert_eq!(earliest.offset, to);
    // Up to the end of the closed ledgers only: what the open one has, the quorum does not know.
    assert!(log.advance_log_start(Offset(end + 100)).await.unwrap() <= Offset(end));
}

#[tokio::test(start_paused = true)]
async fn the_newest_snapshot_is_never_trimmed() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    log.produce(vec![batch(&["a"], Some((7, 0, 0)))]).await.unwrap();
    log.release().await;
    // A ledger behind it that never got anything: the state is in the one before.
    let second = c.serve(&b).await;
    c.hold_adds(true);
    let lost = crate::cluster::submit(&second, batch(&["lost"], None)).await;
    settle().await;
    let third = c.broker(3);
    let log = c.serve(&third).await;
    c.hold_adds(false);
    assert!(lost.await.is_err());
    assert_eq!((log.describe().ledgers, log.high_watermark()), (2, Offset(1)));
    log.advance_log_start(Offset(1)).await.unwrap();
    log.release().await;
    let fourth = c.broker(4);
    let log = c.serve(&fourth).await;
    let o = log.produce(vec![batch(&["a"], Some((7, 0, 0)))]).await.unwrap();
    assert!(o.duplicate);
    // With a snapshot in the open ledger the older ones may go.
    produce(&log, "b").await;
    assert_eq!(log.advance_log_start(Offset(2)).await.unwrap(), Offset(2));
    assert_eq!(log.describe().ledgers, 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_record_of_a_time_is_found_whatever_the_order_of_timestamps() {
    let c = Cluster::with(|c| c.tail_cache_bytes = 0);
    let b = c.broker(1);
    let log = c.serve(&b).await;
    let end = fill(&c, &b, &log).await;
    let at = async |ms| log.list_offset(OffsetSpec::Timestamp(ms)).await.unwrap();
    // By a scan of everything.
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (offset, _) in c.dump(&log).await {
        let r = log.read(Offset(offset), 1).await.unwrap();
        let b = &r.batches[0];
        let records = tidemill_record::records(&b.bytes, &tidemill_record::Limits::DEFAULT).unwrap();
        let record =
            records.map(Result::unwrap).find(|r| b.base_offset.0 + i64::from(r.offset_delta) == offset);
        all.push((offset, record.unwrap().timestamp));
    }
    assert_eq!(all.len(), usize::try_from(end).unwrap());
    for ms in (NOW_MS - 5..NOW_MS + end * 10 + 20).step_by(7) {
        let expected = all.iter().find(|(_, t)| *t >= ms);
        let expected = expected.map(|(o, t)| ListedOffset { offset: Offset(*o), timestamp_ms: *t });
        assert_eq!(at(ms).await, expected, "{}", ms - NOW_MS);
    }
    // Below the log start nothing is found, even when the largest timestamp was there.
    log.produce(vec![batch_at(&["old"], None, 5)]).await.unwrap();
    log.advance_log_start(Offset(40)).await.unwrap();
    let expected = all.iter().find(|(o, t)| *o >= 40 && *t >= NOW_MS + 3);
    assert_eq!(at(NOW_MS + 3).await.map(|l| l.offset.0), expected.map(|(o, _)| *o));
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_being_taken_over_says_so() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    produce(&c.serve(&a).await, "x").await;
    b.meta.offline.store(true, std::sync::atomic::Ordering::SeqCst);
    let log = c.own(&b);
    settle().await;
    assert_eq!(log.read(Offset(0), 1).await, Err(FetchError::NotReady));
    b.meta.offline.store(false, std::sync::atomic::Ordering::SeqCst);
    log.ready().await;
    assert_eq!(log.read(Offset(0), 1).await.unwrap().batches.len(), 1);
}

/// 1.7: an entry tells the LAC of the moment at which it was encoded, so the last one of a ledger that goes idle is told apart.
#[tokio::test(start_paused = true)]
async fn the_last_entry_of_an_idle_ledger_is_told_to_readers_of_its_bookies() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    produce(&log, "a").await;
    let ledger = log.describe().open_ledger.unwrap();
    let record = c.quorum.view(c.partition).ledgers.last().unwrap().clone();
    let entries = c.network.bookies.iter().map(|b| b.entries(ledger)).max().unwrap();
    let last = EntryId(i64::try_from(entries).unwrap() - 1);
    let other = LedgerClient::with_transport(b.meta.clone(), c.network.clone(), LedgerConfig::new(CLUSTER));
    assert!(other.read_lac(&record).await.unwrap() < last, "the entry cannot tell that it is acknowledged");
    let told = async {
        while other.read_lac(&record).await.unwrap() < last {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told).await.expect("an explicit LAC");
    let now = c.network.bookies.iter().map(|b| b.entries(ledger)).max().unwrap();
    assert_eq!(now, entries, "told without an entry");
}
