//! One stream to one broker.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tidemill_proto::{direct::outbound, v1};
use tidemill_runtime::defaults;
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, timeout_at},
};
use tokio_stream::wrappers::ReceiverStream;

use super::Event;
use crate::{Client, ClientError};

/// Frames that are unanswered at once, besides the credit in bytes: bounds the queue to the stream.
pub(super) const MAX_FRAMES: usize = 1_024;

/// A stream as the driver sees it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) address: Arc<str>,
    /// Goes up with every stream, so that what an old one still says is told apart.
    pub(super) generation: u64,
    pub(super) state: LinkState,
    pub(super) stream_credit: u64,
    pub(super) partition_credit: u64,
    pub(super) unanswered: HashMap<u64, Unanswered>,
    pub(super) unanswered_bytes: u64,
    /// Frames in the order of their sending, for the request time-out.
    pub(super) order: VecDeque<(Instant, u64)>,
    pub(super) watched: bool,
    /// Lanes that have something to send; each at most once.
    pub(super) ready: VecDeque<usize>,
}

#[derive(Debug)]
pub(super) enum LinkState {
    Down,
    Opening(AbortHandle, mpsc::Sender<v1::ProduceFrame>),
    Up(AbortHandle, mpsc::Sender<v1::ProduceFrame>),
}

/// A frame without an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unanswered {
    pub(super) lane: usize,
    pub(super) number: u64,
    pub(super) bytes: u64,
}

impl Link {
    pub(super) fn new(address: Arc<str>) -> Self {
        Self {
            address,
            generation: 0,
            state: LinkState::Down,
            stream_credit: defaults::STREAM_CREDIT,
            partition_credit: defaults::PARTITION_CREDIT,
            unanswered: HashMap::new(),
            unanswered_bytes: 0,
            order: VecDeque::new(),
            watched: false,
            ready: VecDeque::new(),
        }
    }

    /// Whether a frame of so many bytes may go: within the credit, or alone.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.unanswered.is_empty()
            || (self.unanswered.len() < MAX_FRAMES && self.unanswered_bytes + bytes <= self.stream_credit)
    }

    /// Takes the answered frame off.
    pub(super) fn take(&mut self, correlation: u64) -> Option<Unanswered> {
        let u = self.unanswered.remove(&correlation)?;
        self.unanswered_bytes = self.unanswered_bytes.saturating_sub(u.bytes);
        while self.order.front().is_some_and(|(_, c)| !self.unanswered.contains_key(c)) {
            self.order.pop_front();
        }
        Some(u)
    }

    /// Ends the stream and gives the lanes that have unanswered frames on it, and its ready list.
    pub(super) fn cut(&mut self) -> (Vec<usize>, VecDeque<usize>) {
        if let LinkState::Opening(task, _) | LinkState::Up(task, _) =
            std::mem::replace(&mut self.state, LinkState::Down)
        {
            task.abort();
        }
        // Unless it is opened again, nothing of it is heard any more.
        self.generation += 1;
        self.unanswered_bytes = 0;
        self.order.clear();
        let sent = self.unanswered.drain().map(|(_, u)| u.lane).collect();
        (sent, std::mem::take(&mut self.ready))
    }
}

/// Runs a stream until it ends; always ends with [`Event::Broken`] unless it is aborted.
pub(super) async fn run(
    client: Client,
    address: Arc<str>,
    link: usize,
    generation: u64,
    frames: mpsc::Receiver<v1::ProduceFrame>,
    events: mpsc::Sender<Event>,
) {
    let error = match pump(&client, &address, link, generation, frames, &events).await {
        Ok(()) => ClientError::from_status(
            &format!("produce stream to {address}"),
            &tonic::Status::unavailable("the broker ended the stream"),
        ),
        Err(e) => e,
    };
    // The driver is gone when this fails.
    let _ = events.send(Event::Broken { link, generation, error }).await;
}

async fn pump(
    client: &Client,
    address: &Arc<str>,
    link: usize,
    generation: u64,
    frames: mpsc::Receiver<v1::ProduceFrame>,
    events: &mpsc::Sender<Event>,
) -> Result<(), ClientError> {
    let what = format!("produce stream to {address}");
    let config = &client.inner.config;
    let opened_by = Instant::now() + config.connect_timeout + config.attempt_timeout;
    let call = client.call_to(address, config.attempt_timeout)?;
    let fail = |s: &tonic::Status| ClientError::from_status(&what, s);
    let late = || ClientError::deadline(&what, None);
    let mut stub = call.producer();
    // No deadline on the request itself: the stream lives as long as the producer.
    let opened = timeout_at(opened_by, stub.produce_stream(outbound(ReceiverStream::new(frames)))).await;
    let mut answers = opened.map_err(|_| late())?.map_err(|s| fail(&s))?.into_inner();
    let first = timeout_at(opened_by, answers.message()).await;
    let Some(first) = first.map_err(|_| late())?.map_err(|s| fail(&s))? else { return Ok(()) };
    let or = |n: u64, default: u64| if n == 0 { default } else { n };
    let opened = Event::Opened {
        link,
        generation,
        stream_credit: or(first.stream_credit, defaults::STREAM_CREDIT),
        partition_credit: or(first.partition_credit, defaults::PARTITION_CREDIT),
    };
    let mut results = first.results;
    if events.send(opened).await.is_err() {
        return Ok(());
    }
    loop {
        if !results.is_empty() && events.send(Event::Answers { link, generation, results }).await.is_err() {
            return Ok(());
        }
        match answers.message().await.map_err(|s| fail(&s))? {
            Some(ack) => results = ack.results,
            None => return Ok(()),
        }
    }
}
