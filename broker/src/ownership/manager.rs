//! The loop that follows the view of the quorum and makes this process hold what is assigned to it.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use tidemill_meta_client::{MetaError, Session, ViewEvent};
use tidemill_types::{
    Epoch, MemberRole, PartitionId, PartitionRecord, TopicConfig, TopicId, Version,
    meta::{AcquireItem, Change, MAX_BATCH, Rejection, Release},
};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    open,
    plan::{Holding, Step, step},
    release,
    table::Held,
};
use crate::{convert::topic::live_owner, core::Core};

/// Maintenance of logs, and a second look at what an event may have missed.
const TICK: Duration = Duration::from_secs(1);

/// Why [`run`] came back. Nothing is held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The session is gone.
    SessionLost,
    /// Everything was handed over, or the deadline passed.
    Drained,
}

/// What a task of the manager brings back.
pub(super) enum Done {
    Acquired(Vec<AcquireItem>, Result<Vec<Result<PartitionRecord, Rejection>>, MetaError>),
    Opened(PartitionId),
    Ended(PartitionId, Epoch),
    Released(Vec<Release>, Result<(), MetaError>),
}

pub(super) struct Manager<'a> {
    pub(super) core: &'a Arc<Core>,
    session: &'a Session,
    tasks: JoinSet<Done>,
    /// Partitions to be looked at.
    pub(super) dirty: HashSet<PartitionId>,
    /// Partitions whose last try failed: looked at again with the next tick.
    pub(super) later: HashSet<PartitionId>,
    to_acquire: HashMap<PartitionId, Epoch>,
    acquiring: HashSet<PartitionId>,
    wanted: HashSet<PartitionId>,
    to_open: VecDeque<(PartitionId, Epoch, Instant)>,
    opening: usize,
    ending: HashSet<PartitionId>,
    to_release: Vec<Release>,
    release_under_way: bool,
    pub(super) configs: HashMap<TopicId, ((Version, Version), Arc<TopicConfig>)>,
    draining: bool,
    pub(super) ticks: u64,
}

/// Owns partitions under `session` until it is lost or `drain` is cancelled. Before it returns every partition of the
/// session is dropped or handed over (metadata, Sessions).
pub(crate) async fn run(core: &Arc<Core>, session: &Session, drain: &CancellationToken) -> Ended {
    let mut events = core.mirror.events();
    let mut m = Manager::new(core, session);
    m.look_at_all();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deadline: Option<Instant> = None;
    let ended = loop {
        m.work();
        if deadline.is_some() && m.core.owned.len() == 0 {
            break Ended::Drained;
        }
        tokio::select! {
            biased;
            _ = session.lost() => break Ended::SessionLost,
            () = drain.cancelled(), if deadline.is_none() => {
                deadline = Some(Instant::now() + core.config.drain_deadline());
                m.draining = true;
                m.look_at_all();
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => break Ended::Drained,
            Some(done) = m.tasks.join_next(), if !m.tasks.is_empty() => match done {
                Ok(done) => m.finished(done),
                Err(e) => tracing::error!(error = %e, "a task of the ownership manager failed"),
            },
            event = events.next() => match event {
                Some(event) => m.event(&event),
                None => break Ended::Drained,
            },
            _ = tick.tick() => m.tick(),
        }
    };
    // Tasks first: none may put a partition back.
    m.tasks.shutdown().await;
    let left = core.owned.abandon_all();
    core.metrics.partitions_dropped.inc_by(left as u64);
    core.metrics.partitions_owned.set(0);
    core.metrics.partitions_opening.set(0);
    if left > 0 {
        tracing::warn!(partitions = left, ?ended, "partitions were dropped");
    }
    ended
}

impl<'a> Manager<'a> {
    fn new(core: &'a Arc<Core>, session: &'a Session) -> Self {
        Self {
            core,
            session,
            tasks: JoinSet::new(),
            dirty: HashSet::new(),
            later: HashSet::new(),
            to_acquire: HashMap::new(),
            acquiring: HashSet::new(),
            wanted: HashSet::new(),
            to_open: VecDeque::new(),
            opening: 0,
            ending: HashSet::new(),
            to_release: Vec::new(),
            release_under_way: false,
            configs: HashMap::new(),
            draining: false,
            ticks: 0,
        }
    }

    /// Marks every partition that can concern this broker.
    pub(super) fn look_at_all(&mut self) {
        let me = self.core.member;
        let table = self.core.mirror.table();
        let mine = |p: &PartitionRecord| p.assigned == Some(me) || p.owner.is_some_and(|o| o.broker == me);
        self.dirty.extend(table.partitions().filter(|p| mine(p)).map(|p| p.id));
        drop(table);
        self.dirty.extend(self.core.owned.ids());
    }

    fn event(&mut self, event: &ViewEvent) {
        let ViewEvent::Changes(w) = event else { return self.look_at_all() };
        for change in &w.changes {
            match change {
                Change::Partition(p) => {
                    self.dirty.insert(p.id);
                }
                Change::PartitionRemoved(id) => {
                    self.dirty.insert(*id);
                }
                // A broker's session began or ended: what it held may be free.
                Change::Member(m) if m.role == MemberRole::Broker => self.look_at_all(),
                Change::Topic(t) => self.configure(t.id),
                Change::TopicControl(c) => self.configure(c.topic),
                _ => {}
            }
        }
    }

    /// Does all that can be done without waiting.
    fn work(&mut self) {
        let wanted = self.core.owned.take_wanted();
        let news = wanted.iter().any(|id| !self.wanted.contains(id));
        self.wanted.extend(wanted);
        let steps: Vec<(PartitionId, Step)> = {
            let table = self.core.mirror.table();
            let me = (self.core.member, self.session.id());
            let judge = |id: PartitionId| {
                let record = table.partition(id);
                let live = record.is_some_and(|r| live_owner(r, &table).is_some());
                let holding = self.core.owned.holding(id);
                match step(record.map(AsRef::as_ref), live, me, holding) {
                    Step::Stay if self.draining && matches!(holding, Holding::Serving(_)) => {
                        (id, Step::Release)
                    }
                    step => (id, step),
                }
            };
            self.dirty.drain().map(judge).collect()
        };
        for (id, step) in steps {
            self.apply(id, step);
        }
        if self.draining {
            self.to_acquire.clear();
            self.forget_unopened();
        } else {
            self.send_acquire();
        }
        if news {
            let (first, rest): (VecDeque<_>, VecDeque<_>) =
                self.to_open.drain(..).partition(|(id, ..)| self.wanted.contains(id));
            self.to_open = first;
            self.to_open.extend(rest);
        }
        self.start_opening();
        self.send_release();
        self.core.metrics.partitions_owned.set(i64::try_from(self.core.owned.len()).unwrap_or(i64::MAX));
        let waiting = self.opening + self.to_open.len();
        self.core.metrics.partitions_opening.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    fn apply(&mut self, id: PartitionId, step: Step) {
        match step {
            Step::Stay => {}
            // The answer to a command under way decides.
            Step::Acquire(_) | Step::Adopt(_) if self.acquiring.contains(&id) => {}
            Step::Acquire(seen) => {
                self.to_acquire.insert(id, seen);
            }
            Step::Adopt(epoch) => self.acquired(id, epoch),
            Step::Release => self.end(id),
            Step::Drop => {
                if let Some(held) = self.core.owned.remove(id) {
                    if let Held::Log(log) = held {
                        log.abandon();
                    }
                    self.core.metrics.partitions_dropped.inc();
                }
                // It may be free for this broker again.
                self.later.insert(id);
            }
        }
    }

    fn send_acquire(&mut self) {
        if !self.acquiring.is_empty() || self.to_acquire.is_empty() {
            return;
        }
        let mut ids: Vec<PartitionId> = self.to_acquire.keys().copied().collect();
        // Partitions with waiting clients first, then in order, so that all brokers' logs read alike.
        ids.sort_unstable_by_key(|id| (!self.wanted.contains(id), *id));
        ids.truncate(MAX_BATCH);
        let items: Vec<AcquireItem> = ids
            .into_iter()
            .filter_map(|partition| {
                self.to_acquire.remove(&partition).map(|seen| AcquireItem { partition, seen })
            })
            .collect();
        self.acquiring.extend(items.iter().map(|i| i.partition));
        let session = self.session.clone();
        self.tasks.spawn(async move {
            let outcome = match session.acquire(items.clone()).await {
                Ok(Ok(each)) => Ok(each),
                Ok(Err(r)) => Err(MetaError::Unavailable { why: r.to_string() }),
                Err(e) => Err(e),
            };
            Done::Acquired(items, outcome)
        });
    }

    fn acquired(&mut self, id: PartitionId, epoch: Epoch) {
        self.core.owned.put(id, Held::Opening(epoch));
        let job = (id, epoch, Instant::now());
        if self.wanted.contains(&id) { self.to_open.push_front(job) } else { self.to_open.push_back(job) }
    }

    fn start_opening(&mut self) {
        while self.opening < self.core.config.takeover_concurrency {
            let Some((id, epoch, since)) = self.to_open.pop_front() else { return };
            self.wanted.remove(&id);
            if self.core.owned.holding(id) != Holding::Serving(epoch) {
                continue;
            }
            let config = self.config_of(id.topic);
            self.opening += 1;
            self.tasks.spawn(open::open(self.core.clone(), self.session.clone(), (id, epoch), since, config));
        }
    }

    /// Ends a partition in order; the `Release` follows when its log has ended.
    pub(super) fn end(&mut self, id: PartitionId) {
        // One that is still being opened is ended when it has a log.
        if let Some(log) = self.core.owned.log(id)
            && self.ending.insert(id)
        {
            self.tasks.spawn(release::end(log));
        }
    }

    /// Nothing was opened yet: nothing has to be finished.
    fn forget_unopened(&mut self) {
        for (id, epoch, _) in self.to_open.drain(..) {
            self.core.owned.put(id, Held::Released(epoch));
            self.to_release.push(Release { partition: id, epoch });
        }
    }

    fn send_release(&mut self) {
        if self.release_under_way || self.to_release.is_empty() {
            return;
        }
        let rest = self.to_release.split_off(self.to_release.len().min(MAX_BATCH));
        let items = std::mem::replace(&mut self.to_release, rest);
        self.release_under_way = true;
        let session = self.session.clone();
        self.tasks.spawn(release::send(session, items));
    }

    fn finished(&mut self, done: Done) {
        match done {
            Done::Acquired(items, Ok(each)) => {
                self.acquiring.clear();
                for (item, verdict) in items.iter().zip(each) {
                    match verdict {
                        Ok(record) => self.acquired(item.partition, record.epoch),
                        Err(why) => {
                            tracing::debug!(partition = %item.partition, %why, "not acquired");
                            self.later.insert(item.partition);
                        }
                    }
                    // The assignment may have moved on meanwhile.
                    self.dirty.insert(item.partition);
                }
            }
            Done::Acquired(items, Err(error)) => {
                tracing::warn!(%error, partitions = items.len(), "acquire failed");
                self.acquiring.clear();
                self.later.extend(items.iter().map(|i| i.partition));
            }
            Done::Opened(id) => {
                self.opening -= 1;
                self.dirty.insert(id);
            }
            Done::Ended(id, epoch) => {
                self.ending.remove(&id);
                self.dirty.insert(id);
                // From here on the log is out of reach, then the `Release` is sent (M27).
                if self.core.owned.holding(id) == Holding::Releasing(epoch) {
                    self.core.owned.put(id, Held::Released(epoch));
                    self.to_release.push(Release { partition: id, epoch });
                }
            }
            Done::Released(items, Ok(())) => {
                self.release_under_way = false;
                for r in items {
                    self.core.owned.remove_epoch(r.partition, r.epoch);
                    self.core.metrics.releases.inc();
                    self.later.insert(r.partition);
                }
            }
            // Sent again, the very same: it changes nothing when the first one was applied.
            Done::Released(items, Err(error)) => {
                tracing::warn!(%error, partitions = items.len(), "release failed");
                self.release_under_way = false;
                self.to_release.extend(items);
            }
        }
    }
}
