//! The task that keeps a member in its group: one stream to the coordinator, heartbeats, joins again when it must.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_proto::v1::{self, subscribe_request::Request};
use tidemill_types::ErrorCode;
use tokio::{
    sync::{Notify, futures::Notified, mpsc},
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::GroupConsumerConfig;
use crate::{Client, ClientError, TopicPartition};

/// A stream's opening, and its first answer.
const OPEN: Duration = Duration::from_secs(10);
/// A farewell takes at most so long.
const FAREWELL: Duration = Duration::from_secs(3);
/// A coordinator that does not answer a heartbeat for so many intervals is looked for again.
const SILENT: u32 = 3;

/// A member of a group.
#[derive(Debug)]
pub(super) struct Member {
    client: Client,
    config: GroupConsumerConfig,
    id: String,
    incarnation: u64,
    state: Mutex<State>,
    /// For the poll.
    news: Notify,
    /// For the task: send a heartbeat now.
    kick: Notify,
    stop: CancellationToken,
    /// The task has ended.
    ended: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// The last assignment of this life.
    current: Option<v1::GroupAssignment>,
    /// Goes up with every join that succeeded: nothing of an earlier one counts.
    life: u64,
    /// Number of the join, for the coordinator.
    attempt: u64,
    /// What the caller holds, with its topics' ids.
    owned: BTreeSet<(TopicPartition, u64)>,
    /// The revision that the caller has made its own.
    applied: u64,
    fatal: Option<ClientError>,
    /// Why the last try failed.
    last: Option<ClientError>,
    /// When the heartbeat was sent that was answered last.
    heard: Instant,
    polled: Instant,
    /// Left by itself because nobody polled.
    away: bool,
    farewell: bool,
}

/// What the poll sees.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) life: u64,
    /// `None`: not in the group now.
    pub(super) current: Option<v1::GroupAssignment>,
}

impl Member {
    pub(super) fn start(client: Client, config: GroupConsumerConfig) -> Arc<Self> {
        let now = Instant::now();
        let member = Arc::new(Self {
            id: config.member.clone().unwrap_or_else(|| format!("{:032x}", rand::random::<u128>())),
            // Never 0: that means "not told".
            incarnation: rand::random::<u64>() | 1,
            state: Mutex::new(State {
                current: None,
                life: 0,
                attempt: 1,
                owned: BTreeSet::new(),
                applied: 0,
                fatal: None,
                last: None,
                heard: now,
                polled: now,
                away: false,
                farewell: false,
            }),
            news: Notify::new(),
            kick: Notify::new(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            client,
            config,
        });
        let task = member.clone();
        tokio::spawn(async move {
            task.run().await;
            task.ended.cancel();
            task.news.notify_waiters();
        });
        member
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }

    /// Waits for the first assignment.
    pub(super) async fn joined(&self, deadline: Instant) -> Result<(), ClientError> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let state = self.state.lock();
                if let Some(e) = &state.fatal {
                    return Err(e.clone());
                }
                if state.current.is_some() {
                    return Ok(());
                }
            }
            if timeout_at(deadline, news).await.is_err() {
                let last = self.state.lock().last.clone();
                let what = format!("join group {}", self.config.group);
                // Somebody else has the instance id: that is what has to be told.
                return Err(match last {
                    Some(e) if e.code == Some(ErrorCode::InstanceInUse) => e,
                    last => ClientError::deadline(&what, last.as_ref()),
                });
            }
        }
    }

    /// The life and the epoch, while it is in the group as far as it knows.
    pub(super) fn epoch(&self) -> Option<(u64, u64)> {
        let state = self.state.lock();
        state.current.as_ref().map(|a| (state.life, a.epoch))
    }

    /// The caller polls: it is alive.
    pub(super) fn polled(&self) {
        let mut state = self.state.lock();
        state.polled = Instant::now();
        if std::mem::take(&mut state.away) {
            self.kick.notify_one();
        }
    }

    /// What is assigned now. A member that has not been heard for its whole session counts as removed, without being told.
    pub(super) fn seen(&self) -> Result<Seen, ClientError> {
        let mut state = self.state.lock();
        if let Some(e) = &state.fatal {
            return Err(e.clone());
        }
        let session = state.current.as_ref().map(|a| Duration::from_millis(a.session_timeout_ms.into()));
        if session.is_some_and(|s| state.heard.elapsed() >= s) {
            state.out();
        }
        Ok(Seen { life: state.life, current: state.current.clone() })
    }

    /// The caller holds these now, and acts upon this revision: confirms what was to be given up.
    pub(super) fn applied(&self, life: u64, revision: u64, owned: BTreeSet<(TopicPartition, u64)>) {
        let mut state = self.state.lock();
        if state.life != life {
            return;
        }
        let news = state.applied != revision || state.owned != owned;
        state.applied = revision;
        state.owned = owned;
        drop(state);
        if news {
            self.kick.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().farewell = true;
        self.stop.cancel();
    }

    /// Says farewell and waits for it.
    pub(super) async fn leave(&self, deadline: Instant) {
        self.stop();
        // A coordinator that does not answer will notice by itself.
        drop(timeout_at(deadline.min(Instant::now() + FAREWELL), self.ended.cancelled()).await);
    }

    async fn run(&self) {
        let mut attempt = 0;
        loop {
            let error = tokio::select! {
                error = self.session() => error,
                () = self.stop.cancelled() => break,
            };
            let heard = self.state.lock().current.is_some();
            match error {
                // It left because nobody polled: back with the next poll.
                Ended::Away => {
                    self.farewell().await;
                    self.state.lock().out();
                    self.news.notify_waiters();
                    loop {
                        if !self.state.lock().away {
                            break;
                        }
                        tokio::select! {
                            () = self.kick.notified() => {}
                            () = self.stop.cancelled() => return,
                        }
                    }
                    continue;
                }
                Ended::Failed(e) => match e.code {
                    Some(ErrorCode::UnknownMember | ErrorCode::FencedMember | ErrorCode::UnknownGroup) => {
                        tracing::debug!(group = self.config.group, error = %e, "joins again");
                        self.state.lock().out();
                        self.news.notify_waiters();
                    }
                    _ if !e.retryable => {
                        self.state.lock().fatal = Some(e);
                        self.news.notify_waiters();
                        return;
                    }
                    _ => {
                        self.state.lock().last = Some(e.clone());
                        self.client.inner.coordinators.learn(&self.config.group, &e);
                        let pause =
                            e.retry_after.unwrap_or_default().max(self.client.backoff().wait(attempt));
                        attempt = if heard && attempt > 4 { 0 } else { attempt + 1 };
                        tokio::select! {
                            () = sleep(if e.owner.is_some() && attempt == 1 { Duration::ZERO } else { pause }) => {}
                            () = self.stop.cancelled() => break,
                        }
                    }
                },
            }
        }
        if self.state.lock().farewell {
            self.farewell().await;
        }
    }

    /// One stream: joins, or goes on as what it is, then heartbeats.
    async fn session(&self) -> Ended {
        match self.stream().await {
            Ok(ended) => ended,
            Err(e) => Ended::Failed(e),
        }
    }

    async fn stream(&self) -> Result<Ended, ClientError> {
        let what = format!("member {} of group {}", self.id, self.config.group);
        let address = self.client.coordinator(&self.config.group).await?;
        let call = self.client.call_to(&address, OPEN)?;
        let (tx, rx) = mpsc::channel(8);
        let mut sent = Instant::now();
        let first = self.opening();
        drop(tx.send(first).await);
        // No deadline of the call as a whole: it lives as long as the member.
        let opening = call.groups();
        let answer = timeout(OPEN, async move {
            let mut opening = opening;
            opening.subscribe(ReceiverStream::new(rx)).await
        })
        .await;
        let mut answers = match answer {
            Err(_) => return Err(ClientError::deadline(&what, None)),
            Ok(Err(status)) => return Err(ClientError::from_status(&what, &status)),
            Ok(Ok(r)) => r.into_inner(),
        };
        let mut interval = Duration::from_secs(3);
        // The first answer comes for what opened the stream.
        let mut waits = true;
        loop {
            let (polled, in_group) = {
                let state = self.state.lock();
                (state.polled, state.current.is_some())
            };
            let patience = if in_group { interval * SILENT } else { OPEN };
            let poll_by = polled + self.config.max_poll_interval;
            tokio::select! {
                answer = answers.message() => match answer {
                    Ok(Some(r)) => {
                        waits = false;
                        if let Some(a) = r.assignment {
                            interval = Duration::from_millis(a.heartbeat_interval_ms.max(1).into());
                            self.take(a, sent);
                        }
                    }
                    Ok(None) => return Err(ClientError::new(ErrorCode::NotReady, format!("{what}: the stream ended"))),
                    Err(status) => return Err(ClientError::from_status(&what, &status)),
                },
                () = sleep_until(sent + patience), if waits => return Err(ClientError::deadline(&what, None)),
                () = sleep_until(poll_by), if in_group => {
                    let mut state = self.state.lock();
                    if state.polled.elapsed() >= self.config.max_poll_interval {
                        tracing::warn!(group = self.config.group, "nobody polls: the member leaves");
                        state.away = true;
                        return Ok(Ended::Away);
                    }
                }
                () = self.beat(sent + interval), if !waits => {
                    let Some(request) = self.heartbeat() else {
                        return Err(ClientError::new(ErrorCode::UnknownMember, format!("{what}: not in the group")));
                    };
                    sent = Instant::now();
                    waits = true;
                    if tx.send(request).await.is_err() {
                        return Err(ClientError::new(ErrorCode::NotReady, format!("{what}: the stream broke")));
                    }
                }
            }
        }
    }

    async fn beat(&self, at: Instant) {
        tokio::select! {
            () = sleep_until(at) => {}
            () = self.kick.notified() => {}
        }
    }

    /// The request that opens a stream.
    fn opening(&self) -> v1::SubscribeRequest {
        if let Some(beat) = self.heartbeat() {
            return beat;
        }
        let state = self.state.lock();
        let ms = |t: Option<Duration>| t.map_or(0, |t| u32::try_from(t.as_millis()).unwrap_or(u32::MAX));
        let c = &self.config;
        let join = v1::JoinGroupRequest {
            group: c.group.clone(),
            member: self.id.clone(),
            incarnation: self.incarnation,
            attempt: state.attempt,
            instance: c.instance.clone().unwrap_or_default(),
            subscription: Some(v1::Subscription {
                topics: c.topics.clone(),
                pattern: c.pattern.clone().unwrap_or_default(),
            }),
            session_timeout_ms: ms(c.session_timeout),
            rebalance_timeout_ms: ms(c.rebalance_timeout),
            client: c.client.clone(),
        };
        v1::SubscribeRequest { request: Some(Request::Join(join)) }
    }

    fn heartbeat(&self) -> Option<v1::SubscribeRequest> {
        let state = self.state.lock();
        let a = state.current.as_ref()?;
        let partitions = state
            .owned
            .iter()
            .map(|(p, topic_id)| v1::GroupPartition {
                topic: p.topic.to_string(),
                partition: p.partition,
                topic_id: *topic_id,
            })
            .collect();
        let beat = v1::HeartbeatRequest {
            group: self.config.group.clone(),
            member: self.id.clone(),
            epoch: a.epoch,
            revision: state.applied,
            owned: Some(v1::OwnedPartitions { partitions }),
            subscription: None,
        };
        Some(v1::SubscribeRequest { request: Some(Request::Heartbeat(beat)) })
    }

    /// An assignment came. Streams keep order, and one that was replaced is not read any more: it is never an older one.
    fn take(&self, a: v1::GroupAssignment, sent: Instant) {
        let mut state = self.state.lock();
        if state.current.is_none() {
            state.life += 1;
            state.attempt += 1;
            state.applied = 0;
            state.owned.clear();
        }
        state.heard = sent;
        let news = state.current.as_ref() != Some(&a);
        state.current = Some(a);
        drop(state);
        if news {
            self.news.notify_waiters();
        }
    }

    async fn farewell(&self) {
        let Some((_, epoch)) = self.epoch() else { return };
        let request = v1::LeaveGroupRequest {
            group: self.config.group.clone(),
            member: self.id.clone(),
            epoch,
            comes_back: self.config.instance.is_some(),
        };
        let leave = self.client.call_coordinator(&self.config.group, "leave a group", |call| {
            let request = call.request(request.clone());
            async move { call.groups().leave_group(request).await }
        });
        // The session ends it otherwise.
        drop(timeout(FAREWELL, leave).await);
    }
}

impl State {
    /// Not in the group any more.
    fn out(&mut self) {
        self.current = None;
        self.owned.clear();
    }
}

/// Why a stream is over.
enum Ended {
    /// Nobody polls.
    Away,
    Failed(ClientError),
}
