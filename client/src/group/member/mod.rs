//! A member of a group as the poll sees it. A task keeps it in the group (`task`), over one stream to the coordinator
//! (`stream`).

mod stream;
mod task;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_proto::v1;
use tidemill_types::ErrorCode;
use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::GroupConsumerConfig;
use crate::{Client, ClientError, TopicPartition};

/// A farewell takes at most so long.
const FAREWELL: Duration = Duration::from_secs(3);

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
}

impl State {
    /// Not in the group any more.
    fn out(&mut self) {
        self.current = None;
        self.owned.clear();
    }
}
