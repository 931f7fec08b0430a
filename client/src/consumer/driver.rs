//! The task of a consumer: finds owners, resolves starts, keeps one fetch per broker on its way.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tidemill_types::ErrorCode;
use tokio::{
    sync::Notify,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    ConsumerConfig, Event, Start, TopicPartition,
    fetch::{self, Asked, Fetched},
    state::{Part, Ready, Staged, State},
};
use crate::{At, Client, ClientError, OffsetQuery, offsets};

/// Partitions in one fetch, the protocol's ceiling.
const MAX_PARTITIONS: usize = 10_000;
/// How often followed topics are looked at for new partitions.
const FOLLOW_EVERY: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) config: ConsumerConfig,
    pub(super) state: Mutex<State>,
    /// For the driver: something changed.
    pub(super) changed: Notify,
    /// For the poll: something came.
    pub(super) came: Notify,
    pub(super) stop: CancellationToken,
}

enum Done {
    Fetched(Arc<str>, u64, Vec<Asked>, Result<Vec<Fetched>, ClientError>),
    Started(Asked, Result<i64, ClientError>),
    Topic(Arc<str>, Option<ClientError>),
    Followed(Vec<(Arc<str>, u32)>),
}

pub(super) struct Driver {
    shared: Arc<Shared>,
    tasks: JoinSet<Done>,
    /// The fetch of each broker, with its number and the partitions in it.
    fetching: HashMap<Arc<str>, (u64, AbortHandle, Vec<Asked>)>,
    fetches: u64,
    refreshing: HashSet<Arc<str>>,
    follow_at: Instant,
}

impl Driver {
    pub(super) fn start(shared: Arc<Shared>) {
        let driver = Self {
            shared,
            tasks: JoinSet::new(),
            fetching: HashMap::new(),
            fetches: 0,
            refreshing: HashSet::new(),
            follow_at: Instant::now() + FOLLOW_EVERY,
        };
        tokio::spawn(driver.run());
    }

    async fn run(mut self) {
        let shared = self.shared.clone();
        loop {
            let wake = self.plan();
            tokio::select! {
                () = shared.stop.cancelled() => return,
                () = shared.changed.notified() => self.drop_outdated(),
                Some(done) = self.tasks.join_next() => {
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    /// Fetches whose partitions were all moved or paused are of no use; one that waits long would also hold up a
    /// partition that was added or sought.
    fn drop_outdated(&mut self) {
        let now = Instant::now();
        let mut state = self.shared.state.lock();
        let mut waiting: HashSet<Arc<str>> = HashSet::new();
        let topology = &self.shared.client.inner.topology;
        for (source, _) in
            state.partitions.iter().filter(|(_, p)| p.wants(now) && p.start.is_none() && p.stale.is_none())
        {
            if let Some(owner) = topology.route(&source.topic, source.partition).and_then(|(r, _)| r.owner) {
                waiting.insert(owner);
            }
        }
        self.fetching.retain(|broker, (_, task, asked)| {
            if !waiting.contains(broker) {
                return true;
            }
            task.abort();
            for a in asked.iter() {
                if let Some(part) = state.current(&a.source, a.generation) {
                    part.busy = false;
                }
            }
            false
        });
    }

    /// Starts what can be started; says when to look again.
    fn plan(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        let mut wake: Option<Instant> = None;
        let mut soonest = |t: Instant| wake = Some(wake.map_or(t, |w: Instant| w.min(t)));
        let mut fetches: HashMap<Arc<str>, Vec<(u64, Asked)>> = HashMap::new();
        let mut stale: HashMap<Arc<str>, u64> = HashMap::new();
        for (source, part) in &mut state.partitions {
            if !part.wants(now) {
                if let Some(t) = part.not_before.filter(|_| !part.busy && !part.paused && !part.stopped) {
                    soonest(t);
                }
                continue;
            }
            part.not_before = None;
            if let Some(start) = part.start {
                part.busy = true;
                let asked = Asked { source: source.clone(), generation: part.generation, from: 0, epoch: 0 };
                self.tasks.spawn(resolve(shared.clone(), asked, start));
                continue;
            }
            let known = shared.client.inner.topology.route(&source.topic, source.partition);
            match known.filter(|(_, g)| part.stale.is_none_or(|s| *g > s)) {
                Some((route, generation)) => match route.owner {
                    Some(owner) => {
                        part.stale = None;
                        let asked = Asked {
                            source: source.clone(),
                            generation: part.generation,
                            from: part.fetch_at,
                            epoch: route.epoch,
                        };
                        fetches.entry(owner).or_default().push((part.turn, asked));
                    }
                    None => {
                        part.stale = Some(generation);
                        let pause = shared.client.backoff().wait(part.attempt);
                        part.attempt += 1;
                        part.not_before = Some(now + pause);
                        part.failing_since.get_or_insert(now);
                        soonest(now + pause);
                    }
                },
                None => {
                    let seen = stale.entry(source.topic.clone()).or_default();
                    *seen = (*seen).max(part.stale.unwrap_or(0));
                }
            }
        }
        for (topic, seen) in stale {
            if self.refreshing.insert(topic.clone()) {
                let client = shared.client.clone();
                self.tasks.spawn(async move {
                    let answer = client.inner.topology.refresh(&client, &topic, seen).await;
                    Done::Topic(topic, answer.err())
                });
            }
        }
        for (broker, mut wanted) in fetches {
            if self.fetching.contains_key(&broker) || !state.has_room(&broker) {
                continue;
            }
            // Those that were served longest ago come first.
            wanted.sort_by_key(|(turn, _)| *turn);
            wanted.truncate(MAX_PARTITIONS);
            let asked: Vec<Asked> = wanted.into_iter().map(|(_, a)| a).collect();
            for a in &asked {
                if let Some(part) = state.current(&a.source, a.generation) {
                    part.busy = true;
                }
            }
            let (task, list) = (shared.clone(), asked.clone());
            let to = broker.clone();
            self.fetches += 1;
            let number = self.fetches;
            let handle = self.tasks.spawn(async move {
                let answer = fetch::fetch(&task.client, &task.config, &to, &list).await;
                Done::Fetched(to, number, list, answer)
            });
            self.fetching.insert(broker, (number, handle, asked));
        }
        if !state.followed.is_empty() {
            if self.follow_at <= now {
                self.follow_at = now + FOLLOW_EVERY;
                let (client, topics) = (shared.client.clone(), state.followed.clone());
                self.tasks.spawn(async move { Done::Followed(fetch::counts(&client, topics).await) });
            }
            soonest(self.follow_at);
        }
        wake
    }

    fn done(&mut self, done: Done) {
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        match done {
            Done::Fetched(broker, number, asked, answer) => {
                // One that was given up while it ended must not count beside its successor.
                if self.fetching.get(&broker).is_none_or(|(current, ..)| *current != number) {
                    return;
                }
                self.fetching.remove(&broker);
                match answer {
                    Ok(fetched) => self.fetched(&mut state, broker, asked, fetched),
                    Err(e) => {
                        for a in asked {
                            self.failed(&mut state, &a, &e);
                        }
                    }
                }
            }
            Done::Started(asked, result) => match result {
                Ok(offset) => {
                    if let Some(part) = state.current(&asked.source, asked.generation) {
                        part.begin(Start::Offset(offset));
                    }
                }
                Err(e) => self.failed(&mut state, &asked, &e),
            },
            Done::Topic(topic, error) => {
                self.refreshing.remove(&topic);
                if let Some(e) = error {
                    let topology = &shared.client.inner.topology;
                    let asked: Vec<Asked> = state
                        .partitions
                        .iter()
                        .filter(|(s, p)| s.topic == topic && !p.busy && !p.stopped)
                        .filter(|(s, p)| p.stale.is_some() || topology.route(&s.topic, s.partition).is_none())
                        .map(|(s, p)| Asked {
                            source: s.clone(),
                            generation: p.generation,
                            from: p.fetch_at,
                            epoch: 0,
                        })
                        .collect();
                    for a in asked {
                        self.failed(&mut state, &a, &e);
                    }
                }
            }
            Done::Followed(counts) => {
                for (topic, count) in counts {
                    for partition in 0..count {
                        let source = TopicPartition { topic: topic.clone(), partition };
                        if !state.partitions.contains_key(&source) {
                            let generation = state.generation();
                            state.partitions.insert(source, Part::new(generation, Start::Earliest));
                        }
                    }
                }
            }
        }
        drop(state);
        shared.came.notify_one();
    }

    fn fetched(&self, state: &mut State, broker: Arc<str>, asked: Vec<Asked>, fetched: Vec<Fetched>) {
        let mut events = VecDeque::new();
        let mut missing: HashMap<TopicPartition, Asked> =
            asked.into_iter().map(|a| (a.source.clone(), a)).collect();
        for f in fetched {
            missing.remove(&f.asked.source);
            match f.result {
                Ok(decoded) => {
                    state.turn += 1;
                    let turn = state.turn;
                    let Some(part) = state.current(&f.asked.source, f.asked.generation) else { continue };
                    part.busy = false;
                    part.attempt = 0;
                    part.failing_since = None;
                    part.fetch_at = decoded.next;
                    part.stopped = decoded.stop;
                    if !decoded.events.is_empty() {
                        part.turn = turn;
                    }
                    events.extend(decoded.events);
                }
                Err(e) => self.failed(state, &f.asked, &e),
            }
        }
        for a in missing.into_values() {
            let e =
                ClientError::new(ErrorCode::NotReady, format!("fetch {}: missing in the answer", a.source));
            self.failed(state, &a, &e);
        }
        state.stage(Ready { broker: Some(broker), events });
    }

    /// A partition could not be served: learn from it, wait, and tell the caller when it matters.
    fn failed(&self, state: &mut State, asked: &Asked, e: &ClientError) {
        let now = Instant::now();
        let topology = &self.shared.client.inner.topology;
        let source = &asked.source;
        let Some(part) = state.current(source, asked.generation) else { return };
        part.busy = false;
        if !e.retryable {
            part.stopped = true;
        } else {
            match &e.owner {
                Some(h) => {
                    topology.hint(&source.topic, source.partition, &h.address, h.epoch);
                    part.stale = None;
                }
                None => {
                    part.stale = topology.route(&source.topic, source.partition).map(|(_, g)| g);
                }
            }
            let pause = if e.owner.is_some() && part.attempt == 0 {
                Duration::ZERO
            } else {
                self.shared.client.backoff().wait(part.attempt)
            };
            part.attempt = part.attempt.saturating_add(1);
            part.not_before = Some(now + pause.max(e.retry_after.unwrap_or_default()));
            let since = *part.failing_since.get_or_insert(now);
            if now.duration_since(since) < self.shared.config.report_after {
                return;
            }
            part.failing_since = Some(now);
        }
        let event = Event::Failed { source: source.clone(), error: e.clone() };
        let staged = Staged {
            source: source.clone(),
            generation: asked.generation,
            position: None,
            event: Some(event),
        };
        state.stage(Ready { broker: None, events: VecDeque::from([staged]) });
    }
}

/// Turns a start into an offset.
async fn resolve(shared: Arc<Shared>, asked: Asked, start: Start) -> Done {
    let at = match start {
        Start::Offset(offset) => return Done::Started(asked, Ok(offset)),
        Start::Earliest => At::Earliest,
        Start::Latest => At::Latest,
        Start::Timestamp(ms) => At::Timestamp(ms),
    };
    let result = match one(&shared.client, &asked.source, at).await {
        // No record is that young: the end.
        Ok(None) => one(&shared.client, &asked.source, At::Latest).await.map(Option::unwrap_or_default),
        Ok(Some(offset)) => Ok(offset),
        Err(e) => Err(e),
    };
    Done::Started(asked, result)
}

async fn one(client: &Client, source: &TopicPartition, at: At) -> Result<Option<i64>, ClientError> {
    let query = OffsetQuery { topic: source.topic.clone(), partition: source.partition, at };
    let found = offsets::list(client, &[query], client.deadline()).await?;
    Ok(found.first().and_then(|f| f.offset))
}
