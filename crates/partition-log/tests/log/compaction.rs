//! Key compaction of a partition: what stays, what a reader sees, what the next owner knows (2.7).

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tidemill_partition_log::{FetchError, GapKind, PartitionLog, ProduceError};
use tidemill_record::{
    Batch, BatchBuilder, Compression, Limits, ProducerFields, check, check_stored, records,
};
use tidemill_types::{
    Cleanup, CleanupPolicy, LedgerId, Offset, Replication, TopicConfig,
    meta::{Command, ControlAction, ControlCommand},
};

use crate::cluster::{Broker, Cluster, NOW_MS};

const SECOND: Duration = Duration::from_secs(1);
pub(crate) type Map = BTreeMap<Bytes, Bytes>;

pub(crate) fn config(policy: CleanupPolicy) -> TopicConfig {
    TopicConfig {
        replication: Replication { copies: 3, ack_quorum: 2 },
        roll_bytes: Some(1_000),
        cleanup: Cleanup { policy, ..Cleanup::default() },
        ..TopicConfig::default()
    }
}

/// A cluster that knows compaction.
pub(crate) fn cluster(f: impl FnOnce(&mut tidemill_partition_log::PartitionLogConfig)) -> Cluster {
    let c = Cluster::with(|c| {
        // What was written just now would be read from memory.
        c.tail_cache_bytes = 0;
        f(c);
    });
    let action = ControlAction::RaiseFeatureLevel { level: 5 };
    c.quorum.own(Command::Control(ControlCommand { epoch: None, action }));
    c
}

/// One batch of these keys and values; no value: a tombstone.
pub(crate) fn keyed(pairs: &[(&str, Option<&str>)], producer: Option<(i64, i16, i32)>) -> Batch {
    let mut b = BatchBuilder::new(Limits::DEFAULT);
    for (n, (k, v)) in pairs.iter().enumerate() {
        b.append(NOW_MS + i64::try_from(n).unwrap(), Some(k.as_bytes()), v.map(str::as_bytes), &[]).unwrap();
    }
    let producer = producer.map(|(id, epoch, base_sequence)| ProducerFields { id, epoch, base_sequence });
    let bytes = b.finish(Compression::None, producer).unwrap();
    Batch { header: check(&bytes, &Limits::DEFAULT).unwrap(), bytes }
}

pub(crate) async fn put(log: &Arc<PartitionLog>, key: &str, value: Option<&str>) -> Offset {
    log.produce(vec![keyed(&[(key, value)], None)]).await.unwrap().base_offset
}

/// Maintenance once a (manual) second until `done`.
pub(crate) async fn tick_until(b: &Broker, log: &Arc<PartitionLog>, what: &str, done: impl Fn() -> bool) {
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

/// The next passes end, and so many did since the take-over.
pub(crate) async fn passes(b: &Broker, log: &Arc<PartitionLog>, n: u64) {
    tick_until(b, log, "passes", || log.describe().compaction.is_some_and(|c| c.passes >= n)).await;
}

/// Updates until so many further ledgers are closed; the values are unique. Notes them in `map`.
pub(crate) async fn fill(b: &Broker, log: &Arc<PartitionLog>, ledgers: usize, keys: usize, map: &mut Map) {
    for round in 0..ledgers {
        let old = log.describe().open_ledger;
        for i in 0..12 {
            let key = format!("key-{}", (round * 7 + i * 5) % keys);
            let value = format!("{:040}", log.high_watermark().0);
            put(log, &key, Some(&value)).await;
            map.insert(key.into(), value.into());
        }
        tick_until(b, log, "a roll", || log.describe().open_ledger.is_some_and(|now| Some(now) != old)).await;
    }
}

/// Offset, key and value.
pub(crate) type Seen = (i64, Bytes, Option<Bytes>);

/// Every record from `at` on in order, through reads of so many bytes, and the gaps.
pub(crate) async fn read_all(
    log: &Arc<PartitionLog>,
    mut at: Offset,
    bytes: usize,
) -> (Vec<Seen>, Vec<(GapKind, i64, i64)>) {
    let (mut out, mut gaps) = (Vec::new(), Vec::new());
    while at < log.high_watermark() {
        let r = log.read(at, bytes).await.unwrap();
        assert!(r.next_offset > at, "{r:?}");
        if let Some(g) = r.gap {
            assert_eq!(g.from, at);
            gaps.push((g.kind, g.from.0, g.to.0));
        }
        for b in r.batches {
            check_stored(&b.bytes, &Limits { batch: 64 << 20, ..Limits::DEFAULT }).unwrap();
            for record in records(&b.bytes, &Limits::DEFAULT).unwrap() {
                let record = record.unwrap();
                let offset = b.base_offset.0 + i64::from(record.offset_delta);
                if offset >= at.0 {
                    out.push((offset, record.key.unwrap(), record.value));
                }
            }
        }
        at = r.next_offset;
    }
    assert!(out.windows(2).all(|w| w[0].0 < w[1].0), "in order, none twice");
    (out, gaps)
}

pub(crate) fn map_of(seen: &[Seen]) -> Map {
    let mut map = Map::new();
    for (_, k, v) in seen {
        match v {
            Some(v) => drop(map.insert(k.clone(), v.clone())),
            None => drop(map.remove(k)),
        }
    }
    map
}

pub(crate) fn chain(c: &Cluster) -> Vec<LedgerId> {
    c.quorum.view(c.partition).partition.chain.iter().map(|e| e.ledger).collect()
}

/// Bookies collect what the quorum does not know any more.
pub(crate) fn collect_gone(c: &Cluster, once: &[LedgerId]) {
    for l in once.iter().filter(|l| c.quorum.state.lock().ledger(**l).is_none()) {
        c.network.bookies.iter().for_each(|b| b.collect(*l));
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_record_of_each_key_stays_at_its_offset() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    let mut map = Map::new();
    fill(&b, &log, 6, 10, &mut map).await;
    let end = log.high_watermark();
    passes(&b, &log, 1).await;
    let before = chain(&c);
    let clean_to = log.describe().compaction.unwrap().clean_to;
    collect_gone(&c, &(1..40).map(LedgerId).collect::<Vec<_>>());
    for bytes in [1, 1 << 20] {
        let (seen, gaps) = read_all(&log, Offset(0), bytes).await;
        assert_eq!(map_of(&seen), map);
        assert!(gaps.iter().all(|g| g.0 == GapKind::Compacted), "{gaps:?}");
        assert_eq!(gaps.first().map(|g| g.1), Some(0), "what was at the start is gone");
        let mut keys: Vec<_> = seen.iter().filter(|s| s.0 < clean_to.0).map(|s| &s.1).collect();
        assert!(!keys.is_empty());
        keys.sort();
        assert!(keys.windows(2).all(|w| w[0] != w[1]), "one record of each key below {clean_to}");
    }
    // Offsets go on, and a second run finds enough to do only when enough is dirty.
    assert_eq!((log.high_watermark(), log.log_start()), (end, Offset(0)));
    assert_eq!(put(&log, "key-3", Some("x")).await, end);
    map.insert("key-3".into(), "x".into());
    assert_eq!(chain(&c), before);
    fill(&b, &log, 5, 10, &mut map).await;
    passes(&b, &log, 2).await;
    let next = c.serve(&c.broker(2)).await;
    assert_eq!(map_of(&read_all(&next, Offset(0), 1).await.0), map);
}

#[tokio::test(start_paused = true)]
async fn keys_that_do_not_fit_take_several_passes() {
    // 56 keys fit at once; each ledger has 12 records.
    let c = cluster(|c| c.compaction_keys_bytes = 1);
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(TopicConfig { roll_bytes: Some(12_000), ..config(CleanupPolicy::Compact) }));
    let mut map = Map::new();
    // One ledger with more keys than fit, then some smaller ones.
    let old = log.describe().open_ledger;
    for n in 0..130 {
        let (k, v) = (format!("key-{}", n % 100), format!("{n:040}"));
        put(&log, &k, Some(&v)).await;
        map.insert(k.into(), v.into());
    }
    tick_until(&b, &log, "a roll", || log.describe().open_ledger != old).await;
    let rule = Cleanup { min_dirty_permille: Some(0), ..config(CleanupPolicy::Compact).cleanup };
    log.set_config(Arc::new(TopicConfig { cleanup: rule, ..config(CleanupPolicy::Compact) }));
    fill(&b, &log, 4, 150, &mut map).await;
    passes(&b, &log, 3).await;
    tick_until(&b, &log, "the end", || {
        log.describe().compaction.is_some_and(|c| c.dirty_permille == Some(0) && c.progress_percent.is_none())
    })
    .await;
    let clean_to = log.describe().compaction.unwrap().clean_to;
    let (seen, _) = read_all(&log, Offset(0), 1 << 20).await;
    assert_eq!(map_of(&seen), map);
    let mut keys: Vec<_> = seen.iter().filter(|s| s.0 < clean_to.0).map(|s| s.1.clone()).collect();
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all, "one record of each key below {clean_to}");
}

#[tokio::test(start_paused = true)]
async fn tombstones_live_for_the_horizon_from_their_first_compaction() {
    let c = cluster(|c| c.delete_horizon = Duration::from_mins(1));
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    let mut map = Map::new();
    put(&log, "gone", Some("1")).await;
    let tombstone = put(&log, "gone", None).await;
    fill(&b, &log, 3, 5, &mut map).await;
    passes(&b, &log, 1).await;
    let has = |seen: &[Seen]| seen.iter().any(|s| s.0 == tombstone.0 && s.2.is_none());
    let (seen, _) = read_all(&log, Offset(0), 1).await;
    assert!(
        has(&seen) && !seen.iter().any(|s| s.0 == tombstone.0 - 1),
        "the value went, the tombstone stays"
    );
    // Another owner, another pass: the time of the first one counts, and only time that has surely passed.
    let other = c.broker(2);
    let log = c.serve(&other).await;
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    c.clock.advance(Duration::from_hours(1));
    fill(&other, &log, 6, 5, &mut map).await;
    passes(&other, &log, 1).await;
    assert!(has(&read_all(&log, Offset(0), 1).await.0));
    // No new records: the time alone is reason enough.
    other.meta.confirmed.store(NOW_MS + 86_400_000, Ordering::SeqCst);
    passes(&other, &log, 2).await;
    let (seen, gaps) = read_all(&log, Offset(0), 1).await;
    assert!(!has(&seen));
    assert_eq!(map_of(&seen), map);
    assert!(gaps.contains(&(GapKind::Compacted, 0, seen[0].0)), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn tombstones_go_though_whoever_compacted_them_is_gone() {
    let c = cluster(|c| c.delete_horizon = Duration::from_mins(1));
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    let mut map = Map::new();
    let tombstone = put(&log, "gone", None).await;
    fill(&b, &log, 3, 5, &mut map).await;
    passes(&b, &log, 1).await;
    let has = |seen: &[Seen]| seen.iter().any(|s| s.0 == tombstone.0);
    // The next owner compacts for nothing but expired tombstones, and did not give the horizon.
    let other = c.broker(2);
    let log = c.serve(&other).await;
    let rule = Cleanup { min_dirty_permille: Some(1_000), ..config(CleanupPolicy::Compact).cleanup };
    log.set_config(Arc::new(TopicConfig { cleanup: rule, ..config(CleanupPolicy::Compact) }));
    // Its state stands in a ledger of its own from the first record on, so that the older ones may be replaced.
    put(&log, "key-0", Some("x")).await;
    map.insert("key-0".into(), "x".into());
    tick_until(&other, &log, "a look", || log.describe().compaction.is_some_and(|c| c.clean_to > tombstone))
        .await;
    assert_eq!(log.describe().compaction.unwrap().passes, 0);
    assert!(has(&read_all(&log, Offset(0), 1).await.0));
    other.meta.confirmed.store(NOW_MS + 86_400_000, Ordering::SeqCst);
    passes(&other, &log, 1).await;
    let (seen, _) = read_all(&log, Offset(0), 1).await;
    assert!(!has(&seen));
    assert_eq!(map_of(&seen), map);
}

#[tokio::test(start_paused = true)]
async fn the_next_owner_knows_the_producers_of_records_that_are_gone() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    let mine = |s: i32| keyed(&[("mine", Some("v"))], Some((7, 0, s)));
    let first = log.produce(vec![mine(0)]).await.unwrap().base_offset;
    let mut map = Map::new();
    fill(&b, &log, 2, 5, &mut map).await;
    let second = log.produce(vec![mine(1)]).await.unwrap().base_offset;
    fill(&b, &log, 3, 5, &mut map).await;
    passes(&b, &log, 1).await;
    assert!(log.describe().compaction.unwrap().clean_to > second);
    let next = c.serve(&c.broker(2)).await;
    for (seq, at) in [(0, first), (1, second)] {
        let again = next.produce(vec![mine(seq)]).await.unwrap();
        assert_eq!((again.duplicate, again.base_offset), (true, at));
    }
    let e = next.produce(vec![mine(5)]).await.unwrap_err();
    assert!(matches!(e, ProduceError::OutOfOrder { expected: 2, .. }), "{e:?}");
    assert!(!next.produce(vec![mine(2)]).await.unwrap().duplicate);
}

#[tokio::test(start_paused = true)]
async fn bug_45_a_reader_in_an_old_ledger_goes_on_in_the_new_ones() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::Delete)));
    let mut map = Map::new();
    fill(&b, &log, 6, 10, &mut map).await;
    // A read that stands in the middle of the first ledger, with what was read ahead in memory.
    let r = log.read(Offset(0), 1).await.unwrap();
    let mut at = r.next_offset;
    assert_eq!((r.gap, at), (None, Offset(1)));
    let old = chain(&c);
    log.set_config(Arc::new(config(CleanupPolicy::Compact)));
    passes(&b, &log, 1).await;
    collect_gone(&c, &old);
    let (seen, gaps) = read_all(&log, at, 1).await;
    at = log.high_watermark();
    assert_eq!(map_of(&seen), map, "up to {at}");
    assert_eq!(gaps[0].0, GapKind::Compacted);
    // An offset that never was is still an error.
    let e = log.read(Offset(at.0 + 1), 1).await.unwrap_err();
    assert!(matches!(e, FetchError::OutOfRange { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_compacted_topic_is_not_trimmed_and_both_policies_are() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    let small = TopicConfig { retention_bytes: Some(2_000), ..config(CleanupPolicy::Compact) };
    log.set_config(Arc::new(small.clone()));
    let mut map = Map::new();
    fill(&b, &log, 8, 40, &mut map).await;
    passes(&b, &log, 1).await;
    assert_eq!(log.log_start(), Offset(0));
    assert_eq!(map_of(&read_all(&log, Offset(0), 1).await.0), map);
    let both = Cleanup { policy: CleanupPolicy::CompactAndDelete, ..small.cleanup };
    log.set_config(Arc::new(TopicConfig { cleanup: both, ..small }));
    fill(&b, &log, 4, 40, &mut map).await;
    tick_until(&b, &log, "retention", || log.log_start() > Offset(0)).await;
    let (_, gaps) = read_all(&log, Offset(0), 1).await;
    assert_eq!(gaps[0].0, GapKind::Trimmed);
}

#[tokio::test(start_paused = true)]
async fn deleted_records_and_times_are_found_in_compacted_ledgers() {
    let c = cluster(|_| {});
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.set_config(Arc::new(config(CleanupPolicy::CompactAndDelete)));
    let mut map = Map::new();
    fill(&b, &log, 6, 10, &mut map).await;
    passes(&b, &log, 1).await;
    let (seen, _) = read_all(&log, Offset(0), 1).await;
    let middle = Offset(seen[seen.len() / 2].0);
    assert_eq!(log.delete_records(middle).await.unwrap(), middle);
    let (left, gaps) = read_all(&log, Offset(0), 1).await;
    assert_eq!(gaps[0], (GapKind::Trimmed, 0, middle.0));
    assert_eq!(left, seen[seen.len() / 2..]);
    // Every record has a timestamp from NOW_MS on: the first that is left answers.
    let spec = tidemill_partition_log::OffsetSpec::Timestamp(NOW_MS);
    assert_eq!(log.list_offset(spec).await.unwrap().unwrap().offset, middle);
    // A pass after it leaves out what is below the start.
    fill(&b, &log, 6, 10, &mut map).await;
    passes(&b, &log, 2).await;
    assert!(read_all(&log, Offset(0), 1).await.0.iter().all(|s| s.0 >= middle.0));
}
