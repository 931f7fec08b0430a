//! The pipelined form: one task per stream, one future per partition that waits.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{BoxStream, FuturesUnordered},
};
use tidemill_partition_log::{
    LogState, PartitionLog, ProduceError, ProduceHandle, ProduceOutcome, Reservation,
};
use tidemill_proto::{direct::Inbound, v1};
use tidemill_record::Batch;
use tidemill_types::PartitionId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{
    batches,
    cache::Topics,
    lane::{Frame, Item, Lane, State},
    refused,
};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::{Fault, decoding, opening_of},
    limits,
    route::Topic,
};

type Answer = Result<ProduceOutcome, ProduceError>;
/// What a lane answers: an outcome of the log, or a refusal before the log.
type LaneAnswer = Result<Answer, Fault>;

/// Answer messages that wait for the client to read them.
const ANSWERS: usize = 16;

/// Serves one stream until the client ends it, its deadline passes, or the broker stops.
pub(super) fn run(
    core: Arc<Core>,
    inbound: Inbound<v1::ProduceFrame>,
    deadline: Deadline,
) -> BoxStream<'static, Result<v1::ProduceAck, Status>> {
    let (tx, rx) = mpsc::channel(ANSWERS);
    core.metrics.produce_streams.inc();
    tokio::spawn(async move {
        let streams = core.metrics.produce_streams.clone();
        Session::new(core, tx).serve(inbound, deadline).await;
        streams.dec();
    });
    ReceiverStream::new(rx).boxed()
}

/// The handle of a lane's first frame.
struct Head {
    id: PartitionId,
    handle: LogHandle,
}

impl Future for Head {
    type Output = (PartitionId, LaneAnswer);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.handle).poll(cx));
        Poll::Ready((self.id, answer))
    }
}

/// A log's handle whose answer has the lane's type.
struct LogHandle(ProduceHandle);

impl Future for LogHandle {
    type Output = LaneAnswer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Ok)
    }
}

/// A frame that was checked and waits for room: in its partition's credit, then in the broker's budget.
struct Checked {
    frame: Frame,
    topic: Topic,
    id: PartitionId,
    log: Arc<PartitionLog>,
    batches: Vec<Batch>,
}

type Reserving = BoxFuture<'static, Result<Reservation, ProduceError>>;

/// Why no further frame is read.
enum Hold {
    Credit(Checked),
    Budget(Checked, Reserving),
}

struct Session {
    core: Arc<Core>,
    tx: mpsc::Sender<Result<v1::ProduceAck, Status>>,
    topics: Topics,
    lanes: HashMap<PartitionId, (Topic, Lane<LogHandle, LaneAnswer>)>,
    heads: FuturesUnordered<Head>,
    hold: Option<Hold>,
    unanswered_bytes: u64,
    unanswered_frames: usize,
    results: Vec<v1::ProduceResult>,
}

impl Session {
    fn new(core: Arc<Core>, tx: mpsc::Sender<Result<v1::ProduceAck, Status>>) -> Self {
        Self {
            topics: Topics::new(core.clone()),
            core,
            tx,
            lanes: HashMap::new(),
            heads: FuturesUnordered::new(),
            hold: None,
            unanswered_bytes: 0,
            unanswered_frames: 0,
            results: Vec::new(),
        }
    }

    async fn serve(mut self, mut inbound: Inbound<v1::ProduceFrame>, deadline: Deadline) {
        let credit = v1::ProduceAck {
            stream_credit: self.core.config.stream_credit_bytes,
            partition_credit: self.core.config.partition_credit_bytes,
            results: Vec::new(),
        };
        if self.tx.send(Ok(credit)).await.is_err() {
            return;
        }
        let stopping = self.core.stopping.clone();
        let passed = deadline.wait();
        tokio::pin!(passed);
        // How the stream ends once everything that was read is answered.
        let mut end: Option<Result<(), Status>> = None;
        loop {
            self.settle();
            if !self.flush().await {
                // The client is gone. What was handed to a log goes on without it.
                return;
            }
            if let Some(how) = &end
                && self.unanswered_frames == 0
            {
                if let Err(status) = how {
                    let _gone = self.tx.send(Err(status.clone())).await;
                }
                return;
            }
            let read = end.is_none() && self.has_room();
            tokio::select! {
                () = &mut passed => {
                    let _gone = self.tx.send(Err(Fault::deadline_unknown().into())).await;
                    return;
                }
                () = stopping.cancelled(), if end.is_none() => {
                    end = Some(Err(Fault::not_ready("it is stopping").into()));
                }
                () = self.tx.closed() => return,
                Some((id, answer)) = self.heads.next(), if !self.heads.is_empty() => self.head_done(id, answer),
                room = reserved(&mut self.hold) => self.room(room),
                frame = inbound.next(), if read => match frame {
                    Some(Ok(frame)) => self.accept(frame),
                    Some(Err(status)) => end = Some(Err(decoding(status))),
                    None => end = Some(Ok(())),
                },
            }
        }
    }

    /// Reading goes on while the client keeps to its credit; past it the frames wait in the transport.
    fn has_room(&self) -> bool {
        self.hold.is_none()
            && self.unanswered_bytes < self.core.config.stream_credit_bytes
            && self.unanswered_frames < limits::MAX_FRAMES_IN_FLIGHT
    }

    /// Takes all answers that are there already, so that they go in one message.
    fn settle(&mut self) {
        while let Some(Some((id, answer))) = self.heads.next().now_or_never() {
            self.head_done(id, answer);
        }
        if let Some(Hold::Credit(checked)) = self.hold.take_if(|h| matches!(h, Hold::Credit(_))) {
            self.admit(checked);
        }
    }

    /// Sends what was answered; false when the client is gone.
    async fn flush(&mut self) -> bool {
        while !self.results.is_empty() {
            let rest = self.results.split_off(self.results.len().min(limits::MAX_RESULTS));
            let results = std::mem::replace(&mut self.results, rest);
            let ack = v1::ProduceAck { stream_credit: 0, partition_credit: 0, results };
            if self.tx.send(Ok(ack)).await.is_err() {
                return false;
            }
        }
        true
    }

    fn accept(&mut self, f: v1::ProduceFrame) {
        let frame = Frame {
            correlation: f.correlation,
            bytes: f.batches.len() as u64,
            records: 0,
            arrived: Instant::now(),
        };
        self.unanswered_bytes += frame.bytes;
        self.unanswered_frames += 1;
        self.core.metrics.in_flight_bytes.inc_by(signed(frame.bytes));
        let (topic, id) =
            match self.topics.get(&f.topic).and_then(|t| t.partition(f.partition).map(|id| (t, id))) {
                Ok(found) => found,
                // No partition, so no order to keep.
                Err(fault) => return self.answer(None, frame, Err(fault)),
            };
        match self.check(frame, &topic, id, f) {
            Ok(checked) => self.admit(checked),
            Err(fault) => self.push(&topic, id, frame, State::Done(Err(fault))),
        }
    }

    fn check(
        &self,
        mut frame: Frame,
        topic: &Topic,
        id: PartitionId,
        f: v1::ProduceFrame,
    ) -> Result<Checked, Fault> {
        let log = self.core.log(topic, id, f.epoch)?;
        // A take-over under way bears some waiting, so that pipelined frames keep their order; but it must not use
        // the credit up that other partitions live on.
        if log.state() == LogState::Recovering
            && self.unanswered_bytes > self.core.config.stream_credit_bytes / 2
        {
            return Err(opening_of(topic, id));
        }
        let batches = batches::split(f.batches, topic.max_batch, topic.compacted)?;
        frame.records = batches::count(&batches);
        Ok(Checked { frame, topic: topic.clone(), id, log, batches })
    }

    /// Lets a frame into its lane when the partition's credit and the broker's budget have room, else holds it.
    fn admit(&mut self, c: Checked) {
        let used = self.lanes.get(&c.id).map_or(0, |(_, l)| l.bytes());
        if used > 0 && used + c.frame.bytes > self.core.config.partition_credit_bytes {
            self.hold = Some(Hold::Credit(c));
            return;
        }
        let (log, bytes) = (c.log.clone(), usize::try_from(c.frame.bytes).unwrap_or(usize::MAX));
        let mut reserving: Reserving = Box::pin(async move { log.reserve(bytes).await });
        match (&mut reserving).now_or_never() {
            Some(room) => self.submit(c, room),
            None => self.hold = Some(Hold::Budget(c, reserving)),
        }
    }

    fn room(&mut self, room: Result<Reservation, ProduceError>) {
        if let Some(Hold::Budget(c, _)) = self.hold.take() {
            self.submit(c, room);
        }
    }

    fn submit(&mut self, c: Checked, room: Result<Reservation, ProduceError>) {
        let Checked { frame, topic, id, log, batches } = c;
        let state = match room {
            Ok(room) => State::Waiting(LogHandle(log.submit(batches, room))),
            Err(e) => State::Done(Ok(Err(e))),
        };
        self.push(&topic, id, frame, state);
    }

    fn push(&mut self, topic: &Topic, id: PartitionId, frame: Frame, state: State<LogHandle, LaneAnswer>) {
        let mut answered = Vec::new();
        let (_, lane) = self.lanes.entry(id).or_insert_with(|| (topic.clone(), Lane::default()));
        let head = lane.push(Item { frame, state }, &mut |f, a| answered.push((f, a)));
        self.after(id, head, answered);
    }

    fn head_done(&mut self, id: PartitionId, answer: LaneAnswer) {
        let mut answered = Vec::new();
        let Some((_, lane)) = self.lanes.get_mut(&id) else { return };
        let head = lane.done(answer, &mut |f, a| answered.push((f, a)));
        self.after(id, head, answered);
    }

    fn after(&mut self, id: PartitionId, head: Option<LogHandle>, answered: Vec<(Frame, LaneAnswer)>) {
        self.heads.extend(head.map(|handle| Head { id, handle }));
        let topic = match self.lanes.get(&id) {
            Some((topic, lane)) if lane.is_idle() => {
                let topic = topic.clone();
                self.lanes.remove(&id);
                Some(topic)
            }
            Some((topic, _)) => Some(topic.clone()),
            None => None,
        };
        for (frame, answer) in answered {
            self.answer(topic.as_ref().map(|t| (t, id)), frame, answer);
        }
    }

    fn answer(&mut self, of: Option<(&Topic, PartitionId)>, frame: Frame, answer: LaneAnswer) {
        self.unanswered_bytes -= frame.bytes;
        self.unanswered_frames -= 1;
        let m = &self.core.metrics;
        m.in_flight_bytes.dec_by(signed(frame.bytes));
        m.produce_calls.inc();
        let mut result = v1::ProduceResult { correlation: frame.correlation, ..v1::ProduceResult::default() };
        let fault = match (answer, of) {
            (Ok(Ok(done)), _) => {
                result.base_offset = done.base_offset.0;
                result.append_time_ms = done.append_time_ms;
                result.duplicate = done.duplicate;
                m.produce_latency.observe(frame.arrived.elapsed().as_secs_f64());
                m.produce_records.inc_by(frame.records);
                m.produce_bytes.inc_by(frame.bytes);
                m.produce_duplicates.inc_by(done.duplicate.into());
                None
            }
            (Ok(Err(e)), Some((topic, id))) => Some(refused(&self.core, topic, id, &e)),
            (Ok(Err(e)), None) => Some(Fault::new(e.code(), e.to_string())),
            (Err(fault), _) => Some(fault),
        };
        if let Some(fault) = fault {
            m.produce_failed.inc();
            result.error = Some(fault.to_proto());
        }
        self.results.push(result);
    }
}

impl Drop for Session {
    /// The client went away before it had all answers.
    fn drop(&mut self) {
        self.core.metrics.in_flight_bytes.dec_by(signed(self.unanswered_bytes));
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Resolves when the held frame got its share of the budget; never when it waits for credit or none is held.
async fn reserved(hold: &mut Option<Hold>) -> Result<Reservation, ProduceError> {
    match hold {
        Some(Hold::Budget(_, reserving)) => reserving.await,
        _ => std::future::pending().await,
    }
}
