//! The task of one coordinator.

use std::{sync::Arc, time::Duration};

use tidemill_group::{Coordinator, Effects, Now, log::Key};
use tidemill_partition_log::{FetchError, PartitionLog, ProduceError};
use tidemill_types::{GroupName, Offset};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    News, Operation, Release, Stage, View,
    load::{self, Failed},
    records,
};
use crate::{core::Core, fault::Fault};

/// Operations that go into one entry.
const BATCH: usize = 1_024;
/// Bytes of one entry, about.
const ENTRY: usize = 2 << 20;
/// Sessions and time-outs are looked at so often.
const TICK: Duration = Duration::from_millis(100);
/// A tick that comes so late means that this process stood still: members may have been heard meanwhile, for all it knows.
const STALL: Duration = Duration::from_secs(3);
/// Offsets expire by days: looked at so often.
const EXPIRY: Duration = Duration::from_secs(60);
/// Gauges are set so often.
const COUNT: Duration = Duration::from_secs(1);
/// The log is cut behind a snapshot after so many bytes at least, and four times the state.
const SNAPSHOT_AFTER: u64 = 4 << 20;
/// Bytes of one part of a snapshot.
const PART: usize = 256 << 10;

/// The coordinator ends: its log is gone, or an append failed.
struct End;

/// One coordinator with its log.
pub(super) struct Runner {
    core: Arc<Core>,
    log: Arc<PartitionLog>,
    operations: mpsc::Receiver<Operation>,
    stage: watch::Sender<Stage>,
    news: Arc<News>,
    view: watch::Receiver<View>,
    /// Bytes behind the log start.
    bytes: u64,
    snapshot: Option<Snapshot>,
}

/// A snapshot under way.
struct Snapshot {
    /// Where its first record stands.
    first: Option<Offset>,
    after: Option<Key>,
    bytes: u64,
}

impl Runner {
    pub(super) fn new(
        core: Arc<Core>,
        log: Arc<PartitionLog>,
        operations: mpsc::Receiver<Operation>,
        stage: watch::Sender<Stage>,
        news: Arc<News>,
    ) -> Self {
        let view = core.groups.view.subscribe();
        Self { core, log, operations, stage, news, view, bytes: 0, snapshot: None }
    }

    /// Until the partition is given up, or the coordinator has to be loaded again.
    pub(super) async fn run(mut self) {
        let began = Instant::now();
        let mut c = match load::load(&self.log).await {
            Ok((c, bytes)) => {
                self.bytes = bytes;
                c
            }
            Err(Failed::NotOwner) => return,
            Err(Failed::Broken(why)) => {
                tracing::error!(partition = %self.log.id(), why, "consumer groups cannot be served");
                self.stage.send_replace(Stage::Broken(why));
                self.log.wait_for_data(Offset(i64::MAX)).await;
                return;
            }
        };
        c.loaded(self.now());
        let view = self.view.borrow_and_update().clone();
        let mut effects = self.configure(&mut c, &view);
        effects.merge(c.set_topics(view.topics, self.now()));
        if self.append(effects, Vec::new()).await.is_err() {
            return;
        }
        let groups = c.len();
        tracing::debug!(partition = %self.log.id(), groups, took = ?began.elapsed(), "a coordinator is loaded");
        self.stage.send_replace(Stage::Serving);
        let log = self.log.clone();
        let ended = log.wait_for_data(Offset(i64::MAX));
        tokio::pin!(ended);
        tokio::select! {
            () = &mut ended => {}
            _end = self.serve(&mut c) => {}
        }
        self.stage.send_replace(Stage::Loading);
    }

    async fn serve(&mut self, c: &mut Coordinator) -> End {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        let (mut expired, mut counted) = (Instant::now(), Instant::now());
        loop {
            let done = tokio::select! {
                // Operations first: a heartbeat that waits counts before its session is judged.
                biased;
                first = self.operations.recv() => match first {
                    Some(first) => self.take(c, first).await,
                    None => return End,
                },
                changed = self.view.changed() => {
                    if changed.is_err() {
                        return End;
                    }
                    let view = self.view.borrow_and_update().clone();
                    let mut effects = self.configure(c, &view);
                    effects.merge(c.set_topics(view.topics, self.now()));
                    self.append(effects, Vec::new()).await
                }
                _ = tick.tick() => {
                    let now = self.now();
                    if last.elapsed() > STALL {
                        tracing::warn!(partition = %self.log.id(), stood = ?last.elapsed(), "a coordinator stood still");
                        c.loaded(now);
                    }
                    last = Instant::now();
                    if counted.elapsed() >= COUNT {
                        counted = Instant::now();
                        let members = c.list().map(|g| g.members).sum();
                        self.core.metrics.groups_of(self.log.id().index, c.len(), members);
                    }
                    let mut effects = Effects::default();
                    if c.next_deadline().is_some_and(|t| t <= now.mono) {
                        effects = c.expire_members(now);
                        self.core.metrics.group_members_removed.inc_by(effects.changed.len() as u64);
                    }
                    if expired.elapsed() >= EXPIRY {
                        expired = Instant::now();
                        if let Some(wall_ms) = self.past() {
                            effects.merge(c.expire_offsets(wall_ms));
                        }
                    }
                    match self.append(effects, Vec::new()).await {
                        Ok(()) => self.cut(c).await,
                        end => end,
                    }
                }
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Runs what waits, as one entry.
    async fn take(&mut self, c: &mut Coordinator, first: Operation) -> Result<(), End> {
        let (mut effects, mut releases, mut bytes) = (Effects::default(), Vec::new(), 0);
        let mut next = Some(first);
        while let Some(op) = next {
            let (more, release) = op(c, self.now());
            bytes += more.records.iter().map(tidemill_group::log::Record::size).sum::<usize>();
            effects.merge(more);
            releases.push(release);
            // Records of one operation are never torn apart.
            next =
                if releases.len() < BATCH && bytes < ENTRY { self.operations.try_recv().ok() } else { None };
        }
        self.append(effects, releases).await
    }

    /// Makes the records durable, then gives the answers; without records proves ownership instead.
    async fn append(&mut self, effects: Effects, releases: Vec<Release>) -> Result<(), End> {
        if effects.records.is_empty() {
            if !releases.is_empty()
                && let Err(e) = self.log.confirm_ownership().await
            {
                return self.fail(releases, &self.not_here(&e));
            }
        } else {
            let batch = match records::batch(&effects.records, self.core.clock.realtime_ms()) {
                Ok(batch) => batch,
                Err(why) => return self.fail(releases, &Fault::internal("write records of a group", &why)),
            };
            let bytes = batch.bytes.len() as u64;
            match self.log.produce(vec![batch]).await {
                Ok(_) => self.bytes += bytes,
                Err(e) => return self.fail(releases, &failed(&e)),
            }
        }
        for release in releases {
            release(None);
        }
        self.news.tell(&effects.changed);
        self.count(&effects);
        Ok(())
    }

    /// What is in memory is ahead of the log: it is thrown away.
    fn fail(&self, releases: Vec<Release>, fault: &Fault) -> Result<(), End> {
        tracing::debug!(partition = %self.log.id(), ?fault, "a coordinator ends");
        for release in releases {
            release(Some(fault.clone()));
        }
        Err(End)
    }

    fn not_here(&self, e: &FetchError) -> Fault {
        Fault::new(e.code(), format!("the coordinator moved: {e}"))
    }

    fn count(&self, effects: &Effects) {
        let m = &self.core.metrics;
        let epochs = effects.records.iter().filter(|r| matches!(r.key, Key::Group(_)) && r.value.is_some());
        m.group_rebalances.inc_by(epochs.count() as u64);
        let commits =
            effects.records.iter().filter(|r| matches!(r.key, Key::Offset(..)) && r.value.is_some());
        m.group_commits.inc_by(commits.count() as u64);
    }

    fn configure(&self, c: &mut Coordinator, view: &View) -> Effects {
        let mut effects = Effects::default();
        let gone: Vec<GroupName> =
            c.configured().filter(|n| !view.configs.contains_key(*n)).cloned().collect();
        for name in gone {
            effects.merge(c.set_config(&name, None, self.now()));
        }
        let Ok(topic) = self.core.topic(tidemill_types::OFFSETS_TOPIC) else { return effects };
        for (name, config) in view.configs.iter() {
            if super::partition_of(&topic, name) == self.log.id() && c.config_of(name) != Some(config) {
                effects.merge(c.set_config(name, Some(config.clone()), self.now()));
            }
        }
        effects
    }

    fn now(&self) -> Now {
        Now { mono: self.core.clock.boottime(), wall_ms: self.core.clock.realtime_ms() }
    }

    /// A time that surely has passed: by the quorum's clock and by the own one.
    fn past(&self) -> Option<i64> {
        let quorum = self.core.logs.meta.quorum_time_ms()?;
        Some(quorum.min(self.core.clock.realtime_ms()))
    }

    /// The last record of each key is all that a replay needs: compaction keeps the log short.
    fn compacted(&self) -> bool {
        self.core.topic(tidemill_types::OFFSETS_TOPIC).is_ok_and(|t| t.compacted)
    }

    /// One part of a snapshot, when the log is long enough; with the last one the log begins behind it.
    async fn cut(&mut self, c: &Coordinator) -> Result<(), End> {
        if self.compacted() {
            return Ok(());
        }
        if self.snapshot.is_none() {
            let state: u64 = if self.bytes < SNAPSHOT_AFTER { 0 } else { size(c) };
            if self.bytes < SNAPSHOT_AFTER.max(4 * state) {
                return Ok(());
            }
            self.snapshot = Some(Snapshot { first: None, after: None, bytes: 0 });
        }
        let Some(mut s) = self.snapshot.take() else { return Ok(()) };
        let (part, next) = c.snapshot(s.after.as_ref(), PART);
        if !part.is_empty() {
            let batch = records::batch(&part, self.core.clock.realtime_ms());
            let Ok(batch) = batch else { return Err(End) };
            let bytes = batch.bytes.len() as u64;
            match self.log.produce(vec![batch]).await {
                Ok(done) => {
                    s.first.get_or_insert(done.base_offset);
                    s.bytes += bytes;
                    self.bytes += bytes;
                }
                Err(_) => return Err(End),
            }
        }
        s.after = next;
        if s.after.is_some() {
            self.snapshot = Some(s);
            return Ok(());
        }
        // Everything that lives stands behind its first record.
        let to = s.first.unwrap_or_else(|| self.log.high_watermark());
        match self.log.advance_log_start(to).await {
            Ok(_) => self.bytes = s.bytes,
            Err(FetchError::NotOwner) => return Err(End),
            Err(error) => tracing::debug!(partition = %self.log.id(), %error, "the log is cut later"),
        }
        Ok(())
    }
}

/// Bytes of a snapshot, about.
fn size(c: &Coordinator) -> u64 {
    let offsets: usize = c.list().map(|g| 200 + g.offsets * 96 + g.members * 512).sum();
    offsets as u64
}

/// What a client hears when its records were not appended.
fn failed(e: &ProduceError) -> Fault {
    let why = format!("the coordinator could not write: {e}");
    match e {
        ProduceError::Unknown => Fault::outcome_unknown(why),
        ProduceError::NotOwner | ProduceError::NotWritten | ProduceError::Overloaded { .. } => {
            Fault::new(tidemill_types::ErrorCode::NotReady, why)
        }
        _ => Fault::internal("write records of a group", &e.to_string()),
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.core.metrics.groups_of(self.log.id().index, 0, 0);
    }
}
