//! Bugs of producers that users of other systems hit (broker rules 2.8, 1 to 10), each as a test. Those of the client's side (3 and
//! 8) stand beside the client's producer.

use std::time::Duration;

use tidemill_partition_log::{ProduceError, WriteOutcome};
use tidemill_types::{Offset, Replication, TopicConfig};

use crate::cluster::{Cluster, batch, produce, settle, submit};

const PRODUCER: i64 = 7;

fn at(value: &str, sequence: i32) -> tidemill_record::Batch {
    batch(&[value], Some((PRODUCER, 0, sequence)))
}

/// apache/pulsar#5218: dedup recorded the sequence before the write was durable; the write failed, its retry was dropped as a
/// duplicate, the message was lost.
#[tokio::test(start_paused = true)]
async fn bug_1_pulsar_5218_a_retry_is_no_duplicate_of_a_write_that_failed() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    produce(&log, "x").await;
    c.hold_adds(true);
    let first = submit(&log, at("a", 0)).await;
    let mut retry = submit(&log, at("a", 0)).await;
    settle().await;
    assert!(futures::poll!(&mut retry).is_pending(), "not durable, so not a duplicate");
    // The owner loses the partition before the bookies have the entry.
    let next = c.serve(&b).await;
    log.abandon();
    assert_eq!(first.await.unwrap_err(), ProduceError::Unknown);
    assert_eq!(retry.await.unwrap_err().outcome(), WriteOutcome::Unknown, "never: duplicate, ok");
    c.hold_adds(false);
    let again = next.produce(vec![at("a", 0)]).await.unwrap();
    let values: Vec<String> = c.dump(&next).await.into_iter().map(|(_, v)| v).collect();
    assert_eq!(values.iter().filter(|v| *v == "a").count(), 1, "once, not lost: {values:?} {again:?}");
}

/// apache/pulsar#6273: a batch with one old sequence id was dropped whole.
#[tokio::test(start_paused = true)]
async fn bug_2_pulsar_6273_a_call_with_an_old_batch_is_refused_and_never_dropped_in_silence() {
    let c = Cluster::new();
    let log = c.serve(&c.broker(1)).await;
    log.produce(vec![at("a", 0)]).await.unwrap();
    let mixed = log.produce(vec![at("a", 0), at("b", 1)]).await.unwrap_err();
    assert_eq!((mixed.clone(), mixed.outcome()), (ProduceError::Rebatched, WriteOutcome::NotWritten));
    let overlapping = batch(&["a", "b"], Some((PRODUCER, 0, 0)));
    let e = log.produce(vec![overlapping]).await.unwrap_err();
    assert!(matches!(e, ProduceError::OutOfOrder { expected: 1, .. }), "{e:?}");
    assert_eq!(log.produce(vec![at("b", 1)]).await.unwrap().base_offset, Offset(1));
}

/// apache/pulsar#23697: sequences of different producers were mixed.
#[tokio::test(start_paused = true)]
async fn bug_4_pulsar_23697_sequences_belong_to_one_producer() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    let of = |id, sequence| batch(&[&format!("{id}-{sequence}")], Some((id, 0, sequence)));
    for sequence in 0..3 {
        for id in [1, 2] {
            assert!(!log.produce(vec![of(id, sequence)]).await.unwrap().duplicate);
        }
    }
    log.release().await;
    let next = c.serve(&b).await;
    for id in [1, 2] {
        assert!(next.produce(vec![of(id, 2)]).await.unwrap().duplicate);
        assert!(!next.produce(vec![of(id, 3)]).await.unwrap().duplicate);
    }
    assert_eq!(next.produce(vec![of(3, 2)]).await.unwrap_err(), ProduceError::UnknownProducer { id: 3 });
    assert_eq!(c.dump(&next).await.len(), 8);
}

/// redpanda-data/redpanda#3039: a retry was answered by a bumped epoch and written a second time.
#[tokio::test(start_paused = true)]
async fn bug_5_redpanda_3039_a_retry_gets_the_first_offset_and_is_not_written_again() {
    let c = Cluster::new();
    let log = c.serve(&c.broker(1)).await;
    let first = log.produce(vec![at("a", 0)]).await.unwrap();
    produce(&log, "x").await;
    for _ in 0..3 {
        let again = log.produce(vec![at("a", 0)]).await.unwrap();
        assert_eq!(
            (again.base_offset, again.append_time_ms, again.duplicate),
            (first.base_offset, first.append_time_ms, true)
        );
    }
    assert_eq!(c.dump(&log).await.len(), 2);
}

/// redpanda-data/redpanda#5356: the cached offset of a duplicate could no longer be translated; the error made the client write it
/// again. Here offsets are those of the log, whatever became of the ledger that has the batch.
#[tokio::test(start_paused = true)]
async fn bug_6_redpanda_5356_a_duplicate_keeps_its_offset_when_its_ledger_is_gone() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    produce(&log, "x").await;
    log.produce(vec![at("a", 0)]).await.unwrap();
    let end = log.high_watermark();
    log.release().await;
    let log = c.serve(&b).await;
    assert_eq!(log.delete_records(end).await.unwrap(), end);
    assert_eq!(c.quorum.view(c.partition).ledgers.len(), 1, "the ledger of the batch is gone");
    let again = log.produce(vec![at("a", 0)]).await.unwrap();
    assert_eq!((again.base_offset, again.duplicate), (Offset(1), true));
}

/// redpanda-data/redpanda#22670: the state of an idle producer expired; then "out of order" for ever.
#[tokio::test(start_paused = true)]
async fn bug_7_redpanda_22670_an_expired_producer_has_an_error_of_its_own_and_can_go_on() {
    let c = Cluster::with(|c| c.producer_expiry = Duration::from_secs(60));
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.produce(vec![at("a", 0)]).await.unwrap();
    b.tick(&log, Duration::from_secs(61));
    assert_eq!(
        log.produce(vec![at("b", 1)]).await.unwrap_err(),
        ProduceError::UnknownProducer { id: PRODUCER }
    );
    assert_eq!(
        log.produce(vec![at("c", 5)]).await.unwrap_err(),
        ProduceError::UnknownProducer { id: PRODUCER }
    );
    // With its next epoch, or a new id, it goes on at once.
    log.produce(vec![batch(&["b"], Some((PRODUCER, 1, 0)))]).await.unwrap();
    log.produce(vec![batch(&["c"], Some((PRODUCER + 1, 0, 0)))]).await.unwrap();
}

/// apache/kafka#13796: the first sequence was not checked when no state exists: a retry loop, or reordering.
#[tokio::test(start_paused = true)]
async fn bug_9_kafka_13796_the_first_sequence_is_checked_without_state() {
    let c = Cluster::new();
    let log = c.serve(&c.broker(1)).await;
    assert_eq!(
        log.produce(vec![at("b", 1)]).await.unwrap_err(),
        ProduceError::UnknownProducer { id: PRODUCER }
    );
    assert_eq!(log.produce(vec![at("a", 0)]).await.unwrap().base_offset, Offset(0));
    assert_eq!(log.produce(vec![at("b", 1)]).await.unwrap().base_offset, Offset(1));
    // A new epoch has to begin at 0 as well.
    let e = log.produce(vec![batch(&["c"], Some((PRODUCER, 1, 2)))]).await.unwrap_err();
    assert_eq!(e, ProduceError::OutOfOrder { expected: 0, found: 2 });
}

/// AutoMQ/automq#437: duplicates with idempotence on, while the partition was reassigned.
#[tokio::test(start_paused = true)]
async fn bug_10_automq_437_a_retry_at_the_next_owner_is_written_once() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    for sequence in 0..4 {
        log.produce(vec![at(&format!("v{sequence}"), sequence)]).await.unwrap();
    }
    // In flight when the owner is taken away: its bookies have them or not, and the next owner finds out.
    let flying: Vec<_> = [submit(&log, at("v4", 4)).await, submit(&log, at("v5", 5)).await].into();
    let next = c.serve(&b).await;
    log.abandon();
    drop(flying);
    for sequence in 4..8 {
        next.produce(vec![at(&format!("v{sequence}"), sequence)]).await.unwrap();
    }
    let values: Vec<String> = c.dump(&next).await.into_iter().map(|(_, v)| v).collect();
    assert_eq!(values, (0..8).map(|n| format!("v{n}")).collect::<Vec<_>>());
}

/// 100 000 producers on one partition: known, bounded, and known to the next owner.
#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_producers_are_known_after_a_take_over() {
    const PRODUCERS: i64 = 100_000;
    const A_CALL: i64 = 500;
    let c = Cluster::with(|c| c.state_entry_every = 1 << 40);
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    log.set_config(std::sync::Arc::new(TopicConfig {
        replication: Replication { copies: 3, ack_quorum: 2 },
        ..TopicConfig::default()
    }));
    let one = |id: i64, sequence| batch(&["v"], Some((id, 0, sequence)));
    for first in (0..PRODUCERS).step_by(usize::try_from(A_CALL).unwrap()) {
        log.produce((first..first + A_CALL).map(|id| one(id, 0)).collect()).await.unwrap();
    }
    assert_eq!(log.describe().producers, usize::try_from(PRODUCERS).unwrap());
    log.release().await;
    let next = c.serve(&b).await;
    assert_eq!(next.describe().producers, usize::try_from(PRODUCERS).unwrap());
    for id in [0, 1, 4_711, PRODUCERS - 1] {
        let again = next.produce(vec![one(id, 0)]).await.unwrap();
        assert_eq!((again.duplicate, again.base_offset), (true, Offset(id)));
        assert!(!next.produce(vec![one(id, 1)]).await.unwrap().duplicate);
    }
    // Written down as a whole at the start of the next ledger: the owner after that replays one ledger's entries.
    next.release().await;
    let last = c.serve(&c.broker(3)).await;
    assert_eq!(last.describe().producers, usize::try_from(PRODUCERS).unwrap());
}
