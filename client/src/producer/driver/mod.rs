//! The task of a producer: takes closed batches, finds owners, sends, and decides every batch.

mod answers;
mod batches;
mod lane;
#[cfg(test)]
mod lane_tests;
mod link;
mod route;
mod send;
mod timers;
mod verdict;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
};

use tidemill_proto::v1;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::{
    lane::Lane,
    link::Link,
    timers::{Timer, Timers},
};
use super::{
    accumulator::Partition,
    outcome::Fate,
    shared::{CLOSED, FENCED, OPEN, Shared},
};
use crate::{Client, ClientError, topology::TopicFacts};

/// Events that wait for the driver.
const EVENTS: usize = 256;
/// Events that are handled before the clock is read again.
const TURN: usize = 64;

/// What the outside tells the driver.
#[derive(Debug)]
pub(super) enum Event {
    Opened { link: usize, generation: u64, stream_credit: u64, partition_credit: u64 },
    Answers { link: usize, generation: u64, results: Vec<v1::ProduceResult> },
    Broken { link: usize, generation: u64, error: ClientError },
}

/// What a background question found.
#[derive(Debug)]
enum Found {
    Topic(Arc<str>, Result<TopicFacts, ClientError>),
    Identity(usize, Result<v1::InitProducerResponse, ClientError>),
    Fate(usize, u64, Result<Fate, ClientError>),
}

/// What a caller asks.
#[derive(Debug)]
pub(super) enum Command {
    /// Answered when all batches of now are decided.
    Flush(oneshot::Sender<()>),
    /// Ends after a flush.
    Close(Option<oneshot::Sender<()>>),
}

/// A lane and what the driver does with it.
#[derive(Debug)]
struct Seat {
    partition: Arc<Partition>,
    lane: Lane,
    /// Link and epoch of the owner.
    route: Option<(usize, u64)>,
    /// Knowledge of the topology up to this generation proved wrong.
    stale: Option<u64>,
    /// Waits for its topic's answer.
    asking: bool,
    /// Not before this.
    not_before: Option<Instant>,
    /// The link in whose ready list it stands. Entries of other links are left behind by a change of the owner.
    queued: Option<usize>,
    deadline_armed: bool,
    linger_armed: bool,
    identity_asked: bool,
    identity_attempt: u32,
}

#[derive(Debug)]
pub(super) struct Driver {
    client: Client,
    shared: Arc<Shared>,
    seats: Vec<Seat>,
    links: Vec<Link>,
    by_address: HashMap<Arc<str>, usize>,
    timers: Timers,
    events: mpsc::Sender<Event>,
    questions: JoinSet<Found>,
    asked_topics: HashSet<Arc<str>>,
    correlation: u64,
    /// Ends when all is decided.
    closing: Option<Vec<oneshot::Sender<()>>>,
}

impl Driver {
    /// Starts the task.
    pub(super) fn start(client: Client, shared: Arc<Shared>) -> mpsc::Sender<Command> {
        let (commands, from_callers) = mpsc::channel(64);
        let (events, from_links) = mpsc::channel(EVENTS);
        let driver = Self {
            client,
            shared,
            seats: Vec::new(),
            links: Vec::new(),
            by_address: HashMap::new(),
            timers: Timers::default(),
            events,
            questions: JoinSet::new(),
            asked_topics: HashSet::new(),
            correlation: 0,
            closing: None,
        };
        tokio::spawn(driver.run(from_callers, from_links));
        commands
    }

    async fn run(mut self, mut commands: mpsc::Receiver<Command>, mut events: mpsc::Receiver<Event>) {
        let shared = self.shared.clone();
        let mut callers = true;
        loop {
            let next = self.timers.next();
            tokio::select! {
                // The order is of no importance for fairness: each branch takes all that is there.
                () = shared.wake.notified() => {}
                Some(event) = events.recv() => {
                    self.event(event);
                    for _ in 0..TURN {
                        let Ok(event) = events.try_recv() else { break };
                        self.event(event);
                    }
                }
                Some(found) = self.questions.join_next() => {
                    if let Ok(found) = found {
                        self.found(found);
                    }
                }
                command = commands.recv(), if callers => match command {
                    Some(command) => self.command(command),
                    // The last clone of the producer is gone.
                    None => {
                        callers = false;
                        self.command(Command::Close(None));
                    }
                },
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
            self.take_announced();
            let now = Instant::now();
            while let Some(timer) = self.timers.due(now) {
                self.fire(timer, now);
            }
            if self.is_done() {
                break;
            }
        }
        for link in &mut self.links {
            link.cut();
        }
        for done in self.closing.into_iter().flatten() {
            let _ = done.send(());
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Opened { link, generation, stream_credit, partition_credit } => {
                self.opened(link, generation, stream_credit, partition_credit);
            }
            Event::Answers { link, generation, results } => self.answers(link, generation, results),
            Event::Broken { link, generation, error } => self.broken(link, generation, &error),
        }
    }

    fn found(&mut self, found: Found) {
        match found {
            Found::Topic(topic, result) => self.topic_found(&topic, &result),
            Found::Identity(lane, result) => self.identity_found(lane, result),
            Found::Fate(lane, ordinal, found) => self.fate_found(lane, ordinal, found),
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Flush(done) => {
                self.close_all();
                self.when_decided(done);
            }
            Command::Close(done) => {
                // A fenced producer stays fenced.
                let _ = self.shared.state.compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Acquire);
                self.shared.memory.close();
                self.close_all();
                self.closing.get_or_insert_default().extend(done);
            }
        }
    }

    fn fire(&mut self, timer: Timer, now: Instant) {
        match timer {
            Timer::Linger(lane) => self.linger_over(lane, now),
            Timer::Deadline(lane) => self.deadline(lane, now),
            Timer::Retry(lane) => self.retry(lane, now),
            Timer::Identity(lane) => {
                self.seats[lane].identity_asked = false;
                self.want_identity(lane);
            }
            Timer::Stall(link) => self.stalled(link, now),
        }
    }

    fn is_done(&self) -> bool {
        self.closing.is_some()
            && self.seats.iter().all(|s| s.lane.is_empty())
            && self.seats.iter().all(|s| {
                let acc = s.partition.acc.lock();
                acc.closed.is_empty() && acc.open_since().is_none()
            })
    }

    fn fence(&self) {
        self.shared.state.store(FENCED, Ordering::Release);
    }
}
