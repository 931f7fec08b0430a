//! The pipelined form.

use std::collections::HashMap;

use tidemill_proto::v1;
use tidemill_record::ProducerFields;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::harness::{Broker, Cluster, batch, values, within};

/// A stream and the answers that came so far.
pub(crate) struct Stream {
    tx: mpsc::Sender<v1::ProduceFrame>,
    acks: Streaming<v1::ProduceAck>,
    pub(crate) credit: (u64, u64),
}

impl Stream {
    pub(crate) async fn open(b: &Broker) -> Self {
        let (tx, rx) = mpsc::channel(1_000);
        let mut acks = b.producer().produce_stream(ReceiverStream::new(rx)).await.unwrap().into_inner();
        let first = acks.message().await.unwrap().unwrap();
        assert!(first.results.is_empty());
        Self { tx, acks, credit: (first.stream_credit, first.partition_credit) }
    }

    pub(crate) async fn send(&self, correlation: u64, topic: &str, partition: u32, batches: bytes::Bytes) {
        let frame = v1::ProduceFrame { correlation, topic: topic.into(), partition, epoch: 0, batches };
        self.tx.send(frame).await.unwrap();
    }

    /// The next `n` results in order.
    pub(crate) async fn results(&mut self, n: usize) -> Vec<v1::ProduceResult> {
        let mut out = Vec::new();
        while out.len() < n {
            let ack = within("answers", self.acks.message()).await.unwrap().unwrap();
            out.extend(ack.results);
        }
        assert_eq!(out.len(), n, "more answers than frames");
        out
    }

    /// How the server ends the stream.
    pub(crate) async fn end(mut self) -> Result<(), tonic::Status> {
        loop {
            match within("the end of the stream", self.acks.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }

    /// Ends the sending side; the server ends after the last answer.
    pub(crate) async fn finish(self) {
        let Self { tx, mut acks, .. } = self;
        drop(tx);
        let end = within("the end of the stream", acks.message()).await.unwrap();
        assert_eq!(end, None);
    }
}

fn code_in(r: &v1::ProduceResult) -> &str {
    r.error.as_ref().map_or("OK", |e| e.code.as_str())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_ordered_within_a_partition_and_each_frame_has_one() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 3, &[]).await;
    let mut s = Stream::open(&b).await;
    assert_eq!(s.credit, (8 << 20, 2 << 20));
    let n = 300u64;
    let mut broken = batch(&values("bad", 1), None).to_vec();
    let last = broken.len() - 1;
    broken[last] ^= 1;
    for i in 0..n {
        let partition = u32::try_from(i % 4).unwrap();
        // Every tenth frame is broken; partition 3 does not exist.
        let payload = if i % 10 == 1 { broken.clone().into() } else { batch(&[format!("v{i}")], None) };
        s.send(i, "t", partition, payload).await;
    }
    let results = s.results(usize::try_from(n).unwrap()).await;
    let mut per: HashMap<u64, Vec<&v1::ProduceResult>> = HashMap::new();
    for r in &results {
        per.entry(r.correlation % 4).or_default().push(r);
    }
    for (partition, results) in per {
        assert_eq!(results.len(), 75);
        let mut offset = 0;
        for (i, r) in results.iter().enumerate() {
            if partition == 3 {
                assert_eq!(code_in(r), "UNKNOWN_PARTITION");
                continue;
            }
            assert_eq!(r.correlation, 4 * i as u64 + partition, "order");
            if r.correlation % 10 == 1 {
                assert_eq!(code_in(r), "INVALID_BATCH");
            } else {
                assert_eq!((code_in(r), r.base_offset), ("OK", offset));
                offset += 1;
            }
        }
        if partition < 3 {
            let p = u32::try_from(partition).unwrap();
            assert_eq!(b.read_all("t", p).await.len(), usize::try_from(offset).unwrap());
        }
    }
    s.finish().await;
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotent_producer_writes_once() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let p = b.producer().init_producer(v1::InitProducerRequest::default()).await.unwrap().into_inner();
        assert_eq!(p.epoch, 0);
        ids.push(p.producer_id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "every producer has its own id");
    let of = |sequence| Some(ProducerFields { id: ids[0], epoch: 0, base_sequence: sequence });
    let mut s = Stream::open(&b).await;
    for (i, sequence) in [0, 2, 2, 0, 9].into_iter().enumerate() {
        s.send(i as u64, "t", 0, batch(&values("v", 2), of(sequence))).await;
    }
    let r = s.results(5).await;
    let seen: Vec<_> = r.iter().map(|r| (code_in(r), r.base_offset, r.duplicate)).collect();
    assert_eq!(
        seen,
        [
            ("OK", 0, false),
            ("OK", 2, false),
            ("OK", 2, true),
            ("OK", 0, true),
            ("OUT_OF_ORDER_SEQUENCE", 0, false)
        ]
    );
    assert_eq!(r[4].error.as_ref().unwrap().expected_sequence, 4);
    assert_eq!(b.read_all("t", 0).await.len(), 4);
    s.finish().await;
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_the_credit_is_written_all_the_same_and_in_order() {
    let c = Cluster::start(3).await;
    let config = tidemill_broker::BrokerConfig {
        stream_credit_bytes: 30_000,
        partition_credit_bytes: 10_000,
        ..c.config("broker-0")
    };
    let b = c.start_broker(config).await;
    within("a broker", b.sup.health().ready()).await;
    b.create("t", 1, &[]).await;
    let mut s = Stream::open(&b).await;
    for i in 0..100 {
        s.send(i, "t", 0, batch(&["z".repeat(4_000)], None)).await;
    }
    let offsets: Vec<i64> = s.results(100).await.iter().map(|r| r.base_offset).collect();
    assert_eq!(offsets, (0..100).collect::<Vec<i64>>());
    assert_eq!(b.metric("tidemill_broker_produce_in_flight_bytes"), 0.0);
    s.finish().await;
    b.stop().await;
    c.stop().await;
}
