//! Everything that is wrong: a typed error with field and limit, nothing written, the connection usable.

use bytes::Bytes;
use tidemill_proto::{convert::code_of, v1};
use tidemill_types::ErrorCode;
use tonic::Request;

use crate::{
    harness::{Cluster, batch, code, field, values},
    raw,
    stream::Stream,
};

fn produce(topic: &str, partition: u32, batches: Bytes) -> v1::ProduceRequest {
    v1::ProduceRequest {
        topic: topic.into(),
        partition: Some(partition),
        batches,
        ..v1::ProduceRequest::default()
    }
}

/// A request whose deadline has passed when it arrives.
fn late<T>(message: T) -> Request<T> {
    let mut r = Request::new(message);
    r.metadata_mut().insert("grpc-timeout", "0n".parse().unwrap());
    r
}

fn changed(at: usize, to: &[u8]) -> Bytes {
    let mut b = batch(&values("v", 2), None).to_vec();
    b[at..at + to.len()].copy_from_slice(to);
    b.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn produce_refuses_what_is_wrong() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    b.produce("t", 0, &values("first", 1)).await.unwrap();
    let good = || batch(&values("v", 2), None);
    let mut p = b.producer();
    let long = "x".repeat(250);
    for (what, request, want, name) in [
        ("unknown topic", produce("nope", 0, good()), ErrorCode::UnknownTopic, ""),
        ("partition out of range", produce("t", 1, good()), ErrorCode::UnknownPartition, "partition"),
        ("bad name", produce("a b", 0, good()), ErrorCode::InvalidTopicName, "topic"),
        ("long name", produce(&long, 0, good()), ErrorCode::InvalidTopicName, "topic"),
        ("empty name", produce("", 0, good()), ErrorCode::InvalidTopicName, "topic"),
        ("nothing", produce("t", 0, Bytes::new()), ErrorCode::InvalidArgument, "records"),
        ("bad CRC", produce("t", 0, changed(65, b"zz")), ErrorCode::InvalidBatch, "batches[0]"),
        (
            "truncated",
            produce("t", 0, good().slice(..good().len() - 1)),
            ErrorCode::InvalidBatch,
            "batches[0]",
        ),
        ("cut header", produce("t", 0, good().slice(..20)), ErrorCode::InvalidBatch, "batches[0]"),
        ("wrong magic", produce("t", 0, changed(16, &[1])), ErrorCode::InvalidBatch, "batches[0]"),
        (
            "absurd length",
            produce("t", 0, changed(8, &i32::MAX.to_be_bytes())),
            ErrorCode::InvalidBatch,
            "batches[0]",
        ),
        (
            "negative length",
            produce("t", 0, changed(8, &(-1i32).to_be_bytes())),
            ErrorCode::InvalidBatch,
            "batches[0]",
        ),
        (
            "absurd count",
            produce("t", 0, changed(57, &i32::MAX.to_be_bytes())),
            ErrorCode::InvalidBatch,
            "batches[0]",
        ),
        (
            "above max.message.bytes",
            produce("t", 0, batch(&["y".repeat(2 << 20)], None)),
            ErrorCode::MessageTooLarge,
            "batches[0]",
        ),
        (
            "above an entry",
            produce(
                "t",
                0,
                std::iter::repeat_n(batch(&["y".repeat(1_045_000)], None), 8)
                    .collect::<Vec<_>>()
                    .concat()
                    .into(),
            ),
            ErrorCode::MessageTooLarge,
            "batches",
        ),
        (
            "above the message limit",
            produce("t", 0, vec![0; 9 << 20].into()),
            ErrorCode::MessageTooLarge,
            "message",
        ),
    ] {
        let e = p.produce(request).await.unwrap_err();
        assert_eq!(code(&e), want, "{what}: {e:?}");
        if !name.is_empty() {
            let (found, allowed) = field(&e);
            assert_eq!(found, name, "{what}");
            assert!(!allowed.is_empty(), "{what}");
        }
    }
    // An expired deadline is not written, and says so.
    let e = raw::producer(&b).await.produce(late(produce("t", 0, good()))).await.unwrap_err();
    let (found, details) = code_of(&e).unwrap();
    assert_eq!((found, details["outcome"].as_str()), (ErrorCode::DeadlineExceeded, "NOT_WRITTEN"));
    // A newer epoch than the broker's: somebody else owns the partition by now, and no wait for a take-over changes that.
    let newer = v1::ProduceRequest { epoch: 1_000, ..produce("t", 0, good()) };
    assert_eq!(code(&p.produce(newer).await.unwrap_err()), ErrorCode::NotOwner);
    // On the same connection: nothing of all that is there, and the next call works.
    let r = p.produce(produce("t", 0, good())).await.unwrap().into_inner();
    assert_eq!((r.base_offset, r.count), (1, 2));
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_survives_bad_frames_and_an_oversized_one_ends_it_with_a_type() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    let mut s = Stream::open(&b).await;
    s.send(1, "nope", 0, batch(&values("v", 1), None)).await;
    s.send(2, "t", 7, batch(&values("v", 1), None)).await;
    s.send(3, "t", 0, changed(16, &[9])).await;
    s.send(4, "t", 0, batch(&["y".repeat(2 << 20)], None)).await;
    s.send(5, "t", 0, batch(&values("v", 1), None)).await;
    let mut r = s.results(5).await;
    r.sort_by_key(|r| r.correlation);
    let codes: Vec<_> = r.iter().map(|r| r.error.as_ref().map_or("OK", |e| e.code.as_str())).collect();
    assert_eq!(codes, ["UNKNOWN_TOPIC", "UNKNOWN_PARTITION", "INVALID_BATCH", "MESSAGE_TOO_LARGE", "OK"]);
    assert_eq!(r[4].base_offset, 0, "nothing of the others was written");
    s.send(6, "t", 0, vec![0; 12 << 20].into()).await;
    let e = s.end().await.unwrap_err();
    assert_eq!((code(&e), field(&e).0.as_str()), (ErrorCode::MessageTooLarge, "message"));
    assert_eq!(b.produce("t", 0, &values("v", 1)).await.unwrap().base_offset, 1);
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetch_offsets_and_admin_refuse_what_is_wrong() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    b.produce("t", 0, &values("v", 3)).await.unwrap();
    let of = |topic: &str, partition, offset| v1::FetchPartition {
        topic: topic.into(),
        partition,
        offset,
        ..v1::FetchPartition::default()
    };
    let partitions = vec![
        of("nope", 0, 0),
        of("t", 9, 0),
        of("a/b", 0, 0),
        of("t", 0, -1),
        of("t", 0, 4),
        of("t", 0, i64::MAX),
        of("t", 0, 1),
    ];
    let r = v1::FetchRequest { partitions, max_wait_ms: 300_000, ..v1::FetchRequest::default() };
    let answer = b.consumer().fetch(r.clone()).await.unwrap().into_inner().partitions;
    let codes: Vec<_> = answer.iter().map(|p| p.error.as_ref().map_or("OK", |e| e.code.as_str())).collect();
    let want = [
        "UNKNOWN_TOPIC",
        "UNKNOWN_PARTITION",
        "INVALID_TOPIC_NAME",
        "INVALID_ARGUMENT",
        "OFFSET_OUT_OF_RANGE",
        "OFFSET_OUT_OF_RANGE",
        "OK",
    ];
    assert_eq!(codes, want);
    let beyond = answer[4].error.as_ref().unwrap();
    assert_eq!((beyond.log_start, beyond.log_end), (0, 3));
    assert_eq!(answer[6].batches.len(), 1);
    for (request, name) in [
        (v1::FetchRequest { partitions: vec![], ..r.clone() }, "partitions"),
        (v1::FetchRequest { partitions: vec![of("t", 0, 0); 10_001], ..r.clone() }, "partitions"),
        (v1::FetchRequest { max_bytes: u32::MAX, ..r.clone() }, "max_bytes"),
        (v1::FetchRequest { max_wait_ms: 300_001, ..r }, "max_wait_ms"),
    ] {
        let e = b.consumer().fetch(request).await.unwrap_err();
        assert_eq!((code(&e), field(&e).0.as_str()), (ErrorCode::InvalidArgument, name));
    }
    let create = |name: &str, partitions, key: &str, value: &str| v1::CreateTopicRequest {
        name: name.into(),
        partitions,
        config: [(key.to_owned(), value.to_owned())].into_iter().filter(|(k, _)| !k.is_empty()).collect(),
        if_not_exists: false,
    };
    for (request, want, name) in [
        (create("..", 1, "", ""), ErrorCode::InvalidTopicName, "topic"),
        (create("__offsets", 1, "", ""), ErrorCode::InvalidTopicName, "name"),
        (create("x", 0, "", ""), ErrorCode::InvalidArgument, "partitions"),
        (create("x", 100_001, "", ""), ErrorCode::InvalidArgument, "partitions"),
        (create("x", 1, "copies", "9"), ErrorCode::InvalidArgument, "config.copies"),
        (create("x", 1, "ackQuorum", "4"), ErrorCode::InvalidArgument, "config.ackQuorum"),
        (create("x", 1, "retention", "1"), ErrorCode::UnknownConfigKey, "config.retention"),
    ] {
        let e = b.admin().create_topic(request).await.unwrap_err();
        assert_eq!((code(&e), field(&e).0.as_str()), (want, name));
    }
    let e = b.admin().delete_topic(v1::DeleteTopicRequest { name: "nope".into() }).await.unwrap_err();
    assert_eq!(code(&e), ErrorCode::UnknownTopic);
    let e = raw::admin(&b).await.cluster_status(late(v1::ClusterStatusRequest {})).await.unwrap_err();
    assert_eq!(code(&e), ErrorCode::DeadlineExceeded);
    let all = b.metadata().describe(v1::DescribeRequest::default()).await.unwrap().into_inner();
    assert_eq!(all.topics.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["t"]);
    b.stop().await;
    c.stop().await;
}
