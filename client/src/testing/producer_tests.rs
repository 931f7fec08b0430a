//! What a user relies on when producing.

use std::time::Duration;

use tidemill_types::ErrorCode;

use super::{Cluster, world::Fault};
use crate::{
    Delivery, DeliveryError, NotDelivered, Producer, ProducerConfig, ProducerError, SendRecord, TopicHandle,
};

fn small() -> ProducerConfig {
    ProducerConfig { linger: Duration::from_millis(1), batch_bytes: 1 << 10, ..ProducerConfig::default() }
}

async fn send(p: &Producer, t: &TopicHandle, partition: u32, value: &str) -> Delivery {
    let record = SendRecord { partition: Some(partition), ..SendRecord::new(None, Some(value.as_bytes())) };
    p.send(t, record).await.unwrap()
}

/// Acknowledged exactly once, in order, at the offset that was told, whatever goes wrong on the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_once_in_order_over_faults() {
    for seed in 1..=12u64 {
        let cluster = Cluster::start(3, 4, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).await;
        cluster.world.lock().fault_every = 2 + seed % 5;
        let client = cluster.client().await;
        let producer = client.producer(small()).await.unwrap();
        let topic = producer.topic("t").await.unwrap();
        let mut deliveries = Vec::new();
        for i in 0..400u32 {
            for p in 0..4 {
                deliveries.push((p, i, send(&producer, &topic, p, &format!("{i:050}")).await));
            }
            if i % 16 == 0 {
                tokio::task::yield_now().await;
            }
        }
        producer.flush().await;
        let counters = producer.counters();
        assert_eq!((counters.sent, counters.acked), (1_600, 1_600), "seed {seed}: {counters:?}");
        assert!(counters.batch_retries > 0, "seed {seed}: no fault hit");
        for (p, i, d) in deliveries {
            let meta = d.await.unwrap_or_else(|e| panic!("seed {seed}: {p}/{i}: {e}"));
            assert_eq!((meta.partition, meta.offset), (p, Some(i.into())), "seed {seed}");
        }
        let world = cluster.world.lock();
        for p in 0..4 {
            let want: Vec<_> = (0..400).map(|i| format!("{i:050}")).collect();
            assert_eq!(world.values("t", p), want, "seed {seed} partition {p}");
        }
    }
}

/// What was sent without a definite answer is asked for at the time-out; only when nobody answers it stays unknown. The
/// partition goes on afterwards, with a new producer id.
#[tokio::test]
async fn a_time_out_in_doubt_is_asked_for_and_the_partition_goes_on() {
    for (fault, silence) in [
        (Fault::Silent, false),
        (Fault::Unknown { written: false }, false),
        (Fault::Unknown { written: false }, true),
    ] {
        let cluster = Cluster::start(1, 2, 1).await;
        let client = cluster.client().await;
        let config = ProducerConfig {
            delivery_timeout: Duration::from_millis(150),
            request_timeout: Duration::from_millis(400),
            outcome_timeout: Duration::from_secs(if silence { 1 } else { 60 }),
            ..small()
        };
        let producer = client.producer(config).await.unwrap();
        let topic = producer.topic("t").await.unwrap();
        let first = send(&producer, &topic, 0, "first").await;
        assert_eq!(first.await.unwrap().offset, Some(0));
        cluster.world.lock().always = fault;
        cluster.world.lock().outcomes_fail = silence;
        let lost: DeliveryError = send(&producer, &topic, 0, "lost").await.await.unwrap_err();
        let kind = if silence { NotDelivered::Unknown } else { NotDelivered::NotWritten };
        assert_eq!(lost.kind, kind, "{fault:?}: {lost}");
        cluster.world.lock().always = Fault::None;
        // The other partition is not touched by it, this one goes on.
        let other = send(&producer, &topic, 1, "other").await;
        assert_eq!(other.await.unwrap().offset, Some(0), "{fault:?}");
        let after = loop {
            // Until the silent stream is given up, later records can be lost in the same way.
            match send(&producer, &topic, 0, "after").await.await {
                Ok(meta) => break meta,
                Err(e) => assert_eq!(fault, Fault::Silent, "{e}"),
            }
        };
        assert!(after.offset >= Some(1), "{fault:?}");
        let c = producer.counters();
        assert_eq!(c.sent, c.acked + c.not_written + c.unknown);
        assert!(cluster.world.lock().next_producer >= 2, "{fault:?}: a new producer id");
        let values = cluster.world.lock().values("t", 0);
        assert_eq!(values.first().unwrap(), "first");
        assert_eq!(values.last().unwrap(), "after");
    }
}

/// It was written, only no answer said so: the question after it finds it, at its offset, and nobody guesses.
#[tokio::test]
async fn a_batch_in_doubt_that_was_written_is_a_success_at_its_offset() {
    let cluster = Cluster::start(2, 1, 1).await;
    let client = cluster.client().await;
    let config = ProducerConfig {
        delivery_timeout: Duration::from_millis(150),
        outcome_timeout: Duration::from_secs(60),
        ..small()
    };
    let producer = client.producer(config).await.unwrap();
    let topic = producer.topic("t").await.unwrap();
    assert_eq!(send(&producer, &topic, 0, "first").await.await.unwrap().offset, Some(0));
    cluster.world.lock().always = Fault::Unknown { written: true };
    let doubtful = send(&producer, &topic, 0, "doubtful").await;
    let meta = doubtful.await.unwrap();
    assert_eq!(meta.offset, Some(1));
    cluster.world.lock().always = Fault::None;
    assert_eq!(send(&producer, &topic, 0, "after").await.await.unwrap().offset, Some(2));
    assert_eq!(cluster.world.lock().values("t", 0), ["first", "doubtful", "after"]);
    let c = producer.counters();
    assert_eq!((c.sent, c.acked, c.unknown), (3, 3, 0));
}

/// What was never sent is surely not written.
#[tokio::test]
async fn a_time_out_without_an_owner_is_not_written() {
    let cluster = Cluster::start(1, 1, 1).await;
    cluster.world.lock().partition("t", 0).unwrap().owner = None;
    let client = cluster.client().await;
    let config = ProducerConfig { delivery_timeout: Duration::from_millis(100), ..small() };
    let producer = client.producer(config).await.unwrap();
    let topic = producer.topic("t").await.unwrap();
    let lost = send(&producer, &topic, 0, "lost").await.await.unwrap_err();
    assert_eq!((lost.kind, lost.code), (NotDelivered::NotWritten, Some(ErrorCode::NoOwner)), "{lost}");
    cluster.world.lock().partition("t", 0).unwrap().owner = Some(0);
    while send(&producer, &topic, 0, "after").await.await.is_err() {}
    let values = cluster.world.lock().values("t", 0);
    assert_eq!(values, ["after"]);
}

#[tokio::test]
async fn memory_is_bounded_and_comes_back() {
    let cluster = Cluster::start(1, 1, 1).await;
    cluster.world.lock().always = Fault::NoOwner;
    let client = cluster.client().await;
    let config = ProducerConfig { memory_bytes: 64 << 10, ..small() };
    let producer = client.producer(config).await.unwrap();
    let topic = producer.topic("t").await.unwrap();
    let value = [7u8; 1_000 - 200];
    let record = SendRecord::new(None, Some(&value));
    let mut taken = 0;
    let full = loop {
        match producer.try_send(&topic, &record) {
            Ok(_) => taken += 1,
            Err(e) => break e,
        }
    };
    assert!(matches!(full, ProducerError::Full { limit: 65_536, .. }), "{full}");
    assert!((1..=64 * 1024 / 800).contains(&taken), "{taken}");
    let waits = producer.send(&topic, record);
    tokio::pin!(waits);
    assert!(futures::poll!(waits.as_mut()).is_pending());
    cluster.world.lock().always = Fault::None;
    waits.await.unwrap().await.unwrap();
    producer.close().await;
    assert_eq!(producer.counters().acked, taken + 1);
    assert!(matches!(producer.try_send(&topic, &record), Err(ProducerError::Closed { .. })));
    assert_eq!(producer.shared_free(), 64 << 10);
}

#[tokio::test]
async fn refusals_are_typed() {
    let cluster = Cluster::start(1, 2, 1).await;
    let client = cluster.client().await;
    let bad = client.producer(ProducerConfig { max_in_flight: 6, ..small() }).await.unwrap_err();
    assert_eq!(bad.code, Some(ErrorCode::InvalidArgument));
    let producer = client.producer(small()).await.unwrap();
    let other = client.producer(small()).await.unwrap();
    assert_eq!(producer.topic("none").await.unwrap_err().code, Some(ErrorCode::UnknownTopic));
    let topic = producer.topic("t").await.unwrap();
    let record = SendRecord::new(None, None);
    assert_eq!(other.try_send(&topic, &record).unwrap_err().code(), ErrorCode::InvalidArgument);
    let far = SendRecord { partition: Some(2), ..record };
    assert_eq!(producer.send(&topic, far).await.unwrap_err().code(), ErrorCode::UnknownPartition);
    let huge = vec![0; 2 << 20];
    let e = producer.send(&topic, SendRecord::new(None, Some(&huge))).await.unwrap_err();
    assert_eq!(e.code(), ErrorCode::MessageTooLarge);
    let timeless = SendRecord { timestamp: Some(-5), ..record };
    assert_eq!(producer.send(&topic, timeless).await.unwrap_err().code(), ErrorCode::InvalidArgument);
}

#[tokio::test]
async fn keys_land_as_kafka_puts_them_and_dropped_producers_still_send() {
    let cluster = Cluster::start(2, 4, 1).await;
    let client = cluster.client().await;
    let producer = client.producer(small()).await.unwrap();
    let topic = producer.topic("t").await.unwrap();
    let want = tidemill_record::partition_for_key(b"k", std::num::NonZeroU32::new(4).unwrap());
    let d = producer.send(&topic, SendRecord::new(Some(b"k"), Some(b"v"))).await.unwrap();
    assert_eq!(d.partition(), want);
    drop(producer);
    assert_eq!(d.await.unwrap().partition, want);
}

/// apache/pulsar#2047: the sequence counter was reset after a failed first send, and two messages shared an id. Here a failed first
/// batch spends its producer id, and the next one begins anew under another id.
#[tokio::test]
async fn bug_3_pulsar_2047_a_failed_first_send_shares_no_sequence_with_the_next() {
    let cluster = Cluster::start(1, 1, 1).await;
    let client = cluster.client().await;
    let config = ProducerConfig { delivery_timeout: Duration::from_millis(150), ..small() };
    let producer = client.producer(config).await.unwrap();
    let topic = producer.topic("t").await.unwrap();
    cluster.world.lock().always = Fault::NotWritten;
    send(&producer, &topic, 0, "first").await.await.unwrap_err();
    cluster.world.lock().always = Fault::None;
    let mut written = 0;
    while written < 3 {
        written += usize::from(send(&producer, &topic, 0, "next").await.await.is_ok());
    }
    let mut world = cluster.world.lock();
    assert_eq!(world.values("t", 0), ["next"; 3], "nothing of the first, and none was taken for its retry");
    let ids: Vec<i64> = world
        .partition("t", 0)
        .unwrap()
        .producers
        .iter()
        .filter(|(_, k)| !k.is_empty())
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(ids.len(), 1, "one id wrote: {ids:?}");
    assert!(ids[0] > 1, "and not the one of the failed batch");
}

/// confluentinc/librdkafka#4953: out-of-order on one partition bumped the epoch for all, with duplicates on another one. Here a
/// partition that fails takes another id for itself alone.
#[tokio::test]
async fn bug_8_librdkafka_4953_a_failure_on_one_partition_leaves_the_others_alone() {
    let cluster = Cluster::start(1, 2, 1).await;
    let client = cluster.client().await;
    let config = ProducerConfig { delivery_timeout: Duration::from_millis(300), ..small() };
    let producer = client.producer(config).await.unwrap();
    let topic = producer.topic("t").await.unwrap();
    for p in 0..2 {
        send(&producer, &topic, p, "a").await.await.unwrap();
    }
    let ids = |p: u32| -> Vec<i64> {
        let mut world = cluster.world.lock();
        let mut ids: Vec<i64> = world.partition("t", p).unwrap().producers.keys().copied().collect();
        ids.sort_unstable();
        ids
    };
    let one = ids(1);
    // The broker of partition 0 has forgotten the producer: out of order there.
    cluster.world.lock().partition("t", 0).unwrap().producers.clear();
    send(&producer, &topic, 0, "lost").await.await.unwrap_err();
    while send(&producer, &topic, 0, "b").await.await.is_err() {}
    for _ in 0..5 {
        send(&producer, &topic, 1, "b").await.await.unwrap();
    }
    assert_eq!(ids(1), one, "the other partition goes on with its id");
    assert_eq!(cluster.world.lock().values("t", 1), ["a", "b", "b", "b", "b", "b"]);
}
