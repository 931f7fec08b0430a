//! The services of a broker.

use std::pin::Pin;

use futures::Stream;
use tidemill_proto::{
    convert::{Details, status},
    v1,
};
use tidemill_types::ErrorCode;
use tokio::{
    sync::mpsc,
    time::{Duration, Instant, timeout_at},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{
    Broker,
    world::{Fault, World},
};

type Answer<T> = Result<Response<T>, Status>;

fn error(code: ErrorCode) -> v1::Error {
    v1::Error {
        code: code.wire().into(),
        message: "test".into(),
        retryable: code.retryable(),
        ..v1::Error::default()
    }
}

fn describe(world: &World, name: &str) -> Option<v1::Topic> {
    let logs = world.topics.get(name)?;
    let partitions = logs.iter().zip(0..).map(|(p, index)| v1::Partition {
        index,
        owner: p.owner.map_or_else(String::new, |o| world.addresses[o].clone()),
        epoch: p.epoch,
        owner_name: String::new(),
    });
    Some(v1::Topic { name: name.into(), partitions: partitions.collect(), ..v1::Topic::default() })
}

#[tonic::async_trait]
impl v1::metadata_server::Metadata for Broker {
    async fn describe(&self, r: Request<v1::DescribeRequest>) -> Answer<v1::DescribeResponse> {
        let mut world = self.world.lock();
        world.describes += 1;
        let names = r.into_inner().topics;
        let (known, unknown): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|n| world.topics.contains_key(n));
        let topics = known.iter().filter_map(|n| describe(&world, n)).collect();
        let brokers = world.addresses.iter().map(|a| v1::Broker {
            address: a.clone(),
            live: true,
            ..v1::Broker::default()
        });
        Ok(Response::new(v1::DescribeResponse {
            topics,
            brokers: brokers.collect(),
            unknown,
            ..v1::DescribeResponse::default()
        }))
    }
}

impl Broker {
    /// The answer to a frame; `None`: none, now or later. `Err`: the stream ends.
    fn produce_frame(&self, f: &v1::ProduceFrame) -> Result<Option<v1::ProduceResult>, Status> {
        let mut world = self.world.lock();
        let fault = world.fault();
        let refuse = |e| {
            Ok(Some(v1::ProduceResult { correlation: f.correlation, error: Some(e), ..Default::default() }))
        };
        let me = self.me;
        let addresses = world.addresses.clone();
        match fault {
            Fault::NotWritten => return refuse(error(ErrorCode::NotWritten)),
            Fault::NoOwner => return refuse(error(ErrorCode::NoOwner)),
            Fault::Silent => return Ok(None),
            Fault::Moved { hint } => {
                let (owner, epoch) = world.move_away(&f.topic, f.partition);
                let owner = if hint { owner } else { String::new() };
                return refuse(v1::Error { owner, epoch, ..error(ErrorCode::NotOwner) });
            }
            Fault::Drop { written: false } => return Err(Status::unavailable("test")),
            Fault::Unknown { written: false } => return refuse(error(ErrorCode::OutcomeUnknown)),
            Fault::None | Fault::Drop { .. } | Fault::Unknown { .. } => {}
        }
        let Some(p) = world.partition(&f.topic, f.partition) else {
            return refuse(error(ErrorCode::UnknownPartition));
        };
        if p.owner != Some(me) {
            let owner = p.owner.map_or_else(String::new, |o| addresses[o].clone());
            return refuse(v1::Error { owner, epoch: p.epoch, ..error(ErrorCode::NotOwner) });
        }
        let done = p.append(&f.batches);
        self.grown.notify_waiters();
        match (done, fault) {
            (_, Fault::Drop { .. }) => Err(Status::unavailable("test")),
            (Ok(_), Fault::Unknown { .. }) => refuse(error(ErrorCode::OutcomeUnknown)),
            (Ok((base_offset, duplicate)), _) => Ok(Some(v1::ProduceResult {
                correlation: f.correlation,
                base_offset,
                append_time_ms: 7,
                duplicate,
                error: None,
            })),
            (Err((code, expected_sequence)), _) => refuse(v1::Error { expected_sequence, ..error(code) }),
        }
    }
}

#[tonic::async_trait]
impl v1::producer_server::Producer for Broker {
    type ProduceStreamStream = Pin<Box<dyn Stream<Item = Result<v1::ProduceAck, Status>> + Send>>;

    async fn produce(&self, _: Request<v1::ProduceRequest>) -> Answer<v1::ProduceResponse> {
        Err(Status::unimplemented("test"))
    }

    async fn produce_stream(
        &self,
        r: Request<Streaming<v1::ProduceFrame>>,
    ) -> Answer<Self::ProduceStreamStream> {
        let mut frames = r.into_inner();
        let (tx, rx) = mpsc::channel(64);
        let this = self.clone();
        tokio::spawn(async move {
            let first =
                v1::ProduceAck { stream_credit: 64 << 10, partition_credit: 16 << 10, results: vec![] };
            let _ = tx.send(Ok(first)).await;
            while let Ok(Some(frame)) = frames.message().await {
                let answer = match this.produce_frame(&frame) {
                    Ok(None) => continue,
                    Ok(Some(result)) => Ok(v1::ProduceAck { results: vec![result], ..Default::default() }),
                    Err(status) => Err(status),
                };
                let last = answer.is_err();
                if tx.send(answer).await.is_err() || last {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(rx))))
    }

    async fn init_producer(&self, _: Request<v1::InitProducerRequest>) -> Answer<v1::InitProducerResponse> {
        let mut world = self.world.lock();
        world.next_producer += 1;
        Ok(Response::new(v1::InitProducerResponse { producer_id: world.next_producer, epoch: 0 }))
    }

    async fn producer_outcome(
        &self,
        r: Request<v1::ProducerOutcomeRequest>,
    ) -> Answer<v1::ProducerOutcomeResponse> {
        use v1::producer_outcome_response::Outcome;
        let r = r.into_inner();
        let mut world = self.world.lock();
        if world.outcomes_fail {
            return Err(Status::unavailable("test"));
        }
        let Some(p) = world.partition(&r.topic, r.partition).filter(|p| p.owner == Some(self.me)) else {
            return Err(status(ErrorCode::NoOwner, "test", Details::default()));
        };
        if r.close {
            p.closed.insert(r.producer_id);
        }
        let known = p.producers.get(&r.producer_id).filter(|k| !k.is_empty());
        let hit =
            known.and_then(|k| k.iter().find(|(f, l, _)| (*f, *l) == (r.first_sequence, r.last_sequence)));
        let outcome = match (known, hit) {
            (_, Some(_)) => Outcome::Written,
            (Some(_), None) => Outcome::NotWritten,
            (None, None) => Outcome::NoState,
        };
        let base_offset = hit.map_or(-1, |h| h.2);
        let answer = v1::ProducerOutcomeResponse {
            outcome: outcome.into(),
            base_offset,
            append_time_ms: 7,
            epoch: p.epoch,
        };
        Ok(Response::new(answer))
    }
}

impl Broker {
    fn fetch_one(&self, a: &v1::FetchPartition) -> v1::FetchedPartition {
        let mut world = self.world.lock();
        let addresses = world.addresses.clone();
        let mut out = v1::FetchedPartition {
            topic: a.topic.clone(),
            partition: a.partition,
            next_offset: a.offset,
            ..v1::FetchedPartition::default()
        };
        let Some(p) = world.partition(&a.topic, a.partition) else {
            out.error = Some(error(ErrorCode::UnknownPartition));
            return out;
        };
        let (log_start, log_end) = (p.log_start, p.end);
        (out.log_start, out.high_watermark) = (log_start, log_end);
        if p.owner != Some(self.me) {
            let owner = p.owner.map_or_else(String::new, |o| addresses[o].clone());
            out.error = Some(v1::Error { owner, epoch: p.epoch, ..error(ErrorCode::NotOwner) });
        } else if a.offset < log_start {
            out.error = Some(v1::Error { log_start, log_end, ..error(ErrorCode::Trimmed) });
        } else if a.offset > log_end {
            out.error = Some(v1::Error { log_start, log_end, ..error(ErrorCode::OffsetOutOfRange) });
        } else {
            let mut from = a.offset;
            if let Some(g) = p.gap.filter(|g| (g.from..g.to).contains(&from)) {
                out.gap = Some(g);
                from = g.to;
            }
            let at = p.entries.partition_point(|(base, _)| *base <= from).saturating_sub(1);
            // Two batches at a time: many fetches, as a large log would need.
            for (base, batch) in p.entries.iter().skip(at).take(2) {
                let count = tidemill_record::BatchHeader::parse(batch).map_or(0, |h| h.count);
                let end = base + i64::from(count);
                if *base > out.next_offset.max(from) {
                    // A gap begins here: the next fetch tells.
                    break;
                }
                if end > from {
                    out.batches.push(v1::FetchedBatch {
                        base_offset: *base,
                        append_time_ms: 7,
                        batch: batch.clone(),
                    });
                    out.next_offset = end;
                }
            }
        }
        out
    }
}

#[tonic::async_trait]
impl v1::consumer_server::Consumer for Broker {
    async fn fetch(&self, r: Request<v1::FetchRequest>) -> Answer<v1::FetchResponse> {
        let r = r.into_inner();
        let until = Instant::now() + Duration::from_millis(r.max_wait_ms.into());
        loop {
            let grown = self.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            let partitions: Vec<_> = r.partitions.iter().map(|a| self.fetch_one(a)).collect();
            let some =
                partitions.iter().any(|p| p.error.is_some() || !p.batches.is_empty() || p.gap.is_some());
            if some || timeout_at(until, grown).await.is_err() {
                return Ok(Response::new(v1::FetchResponse { partitions }));
            }
        }
    }

    async fn list_offsets(&self, r: Request<v1::ListOffsetsRequest>) -> Answer<v1::ListOffsetsResponse> {
        use v1::list_offsets_partition::At;
        let mut world = self.world.lock();
        let r = r.into_inner();
        if r.partitions.is_empty() {
            return Err(status(ErrorCode::InvalidArgument, "test", Details::default()));
        }
        let offsets = r.partitions.into_iter().map(|q| {
            let mut out = v1::ListedOffset {
                topic: q.topic.clone(),
                partition: q.partition,
                ..v1::ListedOffset::default()
            };
            let me = self.me;
            match world.partition(&q.topic, q.partition) {
                None => out.error = Some(error(ErrorCode::UnknownPartition)),
                Some(p) if p.owner != Some(me) => out.error = Some(error(ErrorCode::NotOwner)),
                Some(p) => match q.at {
                    Some(At::Latest(_)) => out.offset = p.end,
                    Some(At::TimestampMs(_)) => out.offset = -1,
                    _ => out.offset = p.log_start,
                },
            }
            out
        });
        Ok(Response::new(v1::ListOffsetsResponse { offsets: offsets.collect() }))
    }
}
