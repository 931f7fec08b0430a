//! Topics, produce, fetch, offsets, on one broker.

use tidemill_proto::v1::{self, list_offsets_partition::At};
use tidemill_types::ErrorCode;

use crate::harness::{Cluster, batch, code, values, within};

fn record(key: Option<&'static str>, value: &'static str) -> v1::Record {
    v1::Record {
        key: key.map(Into::into),
        value: Some(value.into()),
        headers: vec![v1::Header { key: "h".into(), value: Some("1".into()) }],
        ..v1::Record::default()
    }
}

fn at(topic: &str, at: At) -> v1::ListOffsetsRequest {
    let p =
        v1::ListOffsetsPartition { topic: topic.into(), at: Some(at), ..v1::ListOffsetsPartition::default() };
    v1::ListOffsetsRequest { partitions: vec![p] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_produced_is_fetched() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    let t = b.create("orders", 2, &[("retention.ms", "60000")]).await;
    assert_eq!(
        (t.partitions.len(), t.config["copies"].as_str(), t.config["retention.ms"].as_str()),
        (2, "3", "60000")
    );
    assert!(t.partitions.iter().all(|p| p.owner == b.address && p.epoch == 1 && p.owner_name == "broker-0"));

    // Records in convenient form: an equal key goes to an equal partition.
    let mut request = v1::ProduceRequest {
        topic: "orders".into(),
        records: vec![record(Some("k"), "one"), record(None, "two")],
        compression: v1::Compression::Zstd.into(),
        ..v1::ProduceRequest::default()
    };
    let first = b.producer().produce(request.clone()).await.unwrap().into_inner();
    assert_eq!((first.base_offset, first.count, first.epoch, first.duplicate), (0, 2, 1, false));
    request.records[1].key = Some("other".into());
    let second = b.producer().produce(request).await.unwrap().into_inner();
    assert_eq!((second.partition, second.base_offset), (first.partition, 2));

    let p = b.fetch("orders", first.partition, 1, true, 0).await;
    let got: Vec<_> =
        p.records.iter().map(|r| (r.offset, r.value.clone().unwrap(), r.headers[0].key.clone())).collect();
    let want = [(1, "two"), (2, "one"), (3, "two")].map(|(o, v)| (o, v.into(), "h".to_owned()));
    assert_eq!(got, want);
    assert_eq!((p.next_offset, p.high_watermark, p.log_start, p.gap), (4, 4, 0, None));

    // Batches come back as the very bytes.
    let sent = batch(&values("v", 3), None);
    let request = v1::ProduceRequest {
        topic: "orders".into(),
        partition: Some(1 - first.partition),
        batches: sent.clone(),
        ..v1::ProduceRequest::default()
    };
    b.producer().produce(request).await.unwrap();
    let p = b.fetch("orders", 1 - first.partition, 2, false, 0).await;
    assert_eq!((p.batches.len(), p.batches[0].base_offset, &p.batches[0].batch), (1, 0, &sent));

    // Offsets by position and by time.
    for (spec, want) in [
        (At::Earliest(true), (0, -1)),
        (At::Latest(true), (4, -1)),
        (At::TimestampMs(0), (0, p_time(&b, first.partition).await)),
        (At::TimestampMs(i64::MAX), (-1, -1)),
    ] {
        let mut r = at("orders", spec);
        r.partitions[0].partition = first.partition;
        let o = b.consumer().list_offsets(r).await.unwrap().into_inner().offsets.remove(0);
        assert_eq!((o.error, o.offset, o.timestamp_ms), (None, want.0, want.1), "{spec:?}");
    }
    assert!(b.metric("tidemill_broker_produce_records_total") >= 7.0);

    // What people look at.
    let d = b
        .admin()
        .describe_partition(v1::DescribePartitionRequest {
            topic: "orders".into(),
            partition: first.partition,
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!((d.state.as_str(), d.high_watermark, d.chain.len()), ("serving", 4, 1));
    let ledgers =
        b.admin().list_ledgers(v1::ListLedgersRequest::default()).await.unwrap().into_inner().ledgers;
    assert_eq!(ledgers.len(), 2);
    assert!(
        ledgers
            .iter()
            .all(|l| l.topic == "orders" && l.fragments[0].names.iter().all(|n| n.starts_with("bookie-")))
    );
    let s = b.admin().cluster_status(v1::ClusterStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((s.topics, s.partitions, s.ledgers, s.partitions_without_owner), (1, 2, 2, 0));
    assert_eq!(s.members.iter().filter(|m| m.role == "bookie" && m.live && m.load == 2).count(), 3);
    assert_eq!(s.quorum.iter().filter(|q| q.reachable && q.role == "leader").count(), 1);
    b.stop().await;
    c.stop().await;
}

async fn p_time(b: &crate::harness::Broker, partition: u32) -> i64 {
    b.fetch("orders", partition, 0, true, 0).await.records[0].timestamp_ms
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_poll_wakes_with_the_first_record() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    let mut consumer = b.consumer();
    let waiting = tokio::spawn(async move {
        let p = v1::FetchPartition { topic: "t".into(), ..v1::FetchPartition::default() };
        let r = v1::FetchRequest { partitions: vec![p], max_wait_ms: 300_000, ..v1::FetchRequest::default() };
        consumer.fetch(r).await.unwrap().into_inner().partitions.remove(0)
    });
    crate::harness::eventually("a waiting fetch", async || {
        (b.metric("tidemill_broker_fetch_waiting") >= 1.0).then_some(())
    })
    .await;
    b.produce("t", 0, &values("v", 1)).await.unwrap();
    let p = within("the long poll", waiting).await.unwrap();
    assert_eq!((p.batches.len(), p.next_offset), (1, 1));
    // Without data it ends at its own time, empty.
    let p = b.fetch("t", 0, 1, false, 1).await;
    assert_eq!((p.error, p.batches.len(), p.next_offset), (None, 0, 1));
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_altered_and_deleted_and_limits_are_shared() {
    let c = Cluster::start(3).await;
    let config = tidemill_broker::BrokerConfig { max_copies: Some(1), ..c.config("broker-0") };
    let b = c.start_broker(config).await;
    within("a broker", b.sup.health().ready()).await;
    let t = b.create("t", 1, &[]).await;
    assert_eq!(
        (t.config["copies"].as_str(), t.config["ackQuorum"].as_str()),
        ("1", "1"),
        "clamped, stored, shown"
    );
    let again =
        v1::CreateTopicRequest { name: "t".into(), partitions: 1, ..v1::CreateTopicRequest::default() };
    assert_eq!(code(&b.admin().create_topic(again.clone()).await.unwrap_err()), ErrorCode::TopicExists);
    let same = v1::CreateTopicRequest { if_not_exists: true, ..again.clone() };
    assert_eq!(b.admin().create_topic(same).await.unwrap().into_inner().topic.unwrap().id, t.id);
    let other = v1::CreateTopicRequest { if_not_exists: true, partitions: 2, ..again };
    assert_eq!(code(&b.admin().create_topic(other).await.unwrap_err()), ErrorCode::TopicExists);

    let alter = v1::AlterTopicRequest {
        name: "t".into(),
        partitions: 3,
        config: [("max.message.bytes".to_owned(), "2048".to_owned())].into(),
    };
    let t = b.admin().alter_topic(alter).await.unwrap().into_inner().topic.unwrap();
    assert_eq!(
        (t.partitions.len(), t.config["max.message.bytes"].as_str(), t.config["copies"].as_str()),
        (3, "2048", "1")
    );
    b.produce("t", 2, &values("v", 1)).await.unwrap();
    let e = b.produce("t", 2, &["x".repeat(3_000)]).await.unwrap_err();
    assert_eq!(code(&e), ErrorCode::MessageTooLarge);
    let shrink =
        v1::AlterTopicRequest { name: "t".into(), partitions: 1, ..v1::AlterTopicRequest::default() };
    assert_eq!(code(&b.admin().alter_topic(shrink).await.unwrap_err()), ErrorCode::InvalidArgument);

    // A fetch over three partitions keeps to its limit, and none is starved.
    for p in 0..3 {
        for _ in 0..4 {
            b.produce("t", p, &["y".repeat(1_000)]).await.unwrap();
        }
    }
    let mut seen = std::collections::HashSet::new();
    for _ in 0..3 {
        let partitions = (0..3)
            .map(|p| v1::FetchPartition { topic: "t".into(), partition: p, ..v1::FetchPartition::default() })
            .collect();
        let r = v1::FetchRequest { partitions, max_bytes: 1_500, ..v1::FetchRequest::default() };
        let answer = b.consumer().fetch(r).await.unwrap().into_inner().partitions;
        let bytes: usize = answer.iter().flat_map(|p| &p.batches).map(|b| b.batch.len()).sum();
        assert!((1..=1_500).contains(&bytes), "{bytes}");
        assert!(answer.iter().all(|p| p.error.is_none() && p.high_watermark >= 4));
        seen.extend(answer.iter().filter(|p| !p.batches.is_empty()).map(|p| p.partition));
    }
    assert_eq!(seen.len(), 3);

    b.admin().delete_topic(v1::DeleteTopicRequest { name: "t".into() }).await.unwrap();
    assert_eq!(code(&b.produce("t", 0, &values("v", 1)).await.unwrap_err()), ErrorCode::UnknownTopic);
    let d = v1::DescribeRequest { topics: vec!["t".into(), "not a name".into()] };
    assert_eq!(b.metadata().describe(d).await.unwrap().into_inner().unknown, ["not a name", "t"]);
    b.stop().await;
    c.stop().await;
}
