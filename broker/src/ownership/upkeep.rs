//! What the manager does from time to time: upkeep of logs, their configuration, a second look at everything.

use std::sync::{Arc, atomic::Ordering};

use tidemill_partition_log::LogState;
use tidemill_types::{TopicConfig, TopicId};

use super::manager::Manager;

/// Every so many ticks all partitions are looked at: a safety net, the events do the work.
const FULL_LOOK: u64 = 10;

impl Manager<'_> {
    /// Once a second.
    pub(super) fn tick(&mut self) {
        self.ticks += 1;
        self.dirty.extend(self.later.drain());
        if self.ticks.is_multiple_of(FULL_LOOK) {
            self.look_at_all();
        }
        let now = self.core.clock.boottime();
        let mut degraded = 0;
        let mut dirty = 0;
        for log in self.core.owned.logs() {
            match log.state() {
                // It lost its epoch, or could not go on: given back, so that it can be acquired again.
                LogState::Dropped => self.end(log.id()),
                LogState::Serving => {
                    log.maintain(now);
                    let described = log.describe();
                    degraded += u32::from(described.degraded);
                    dirty = dirty.max(described.compaction.and_then(|c| c.dirty_permille).unwrap_or(0));
                }
                _ => {}
            }
        }
        self.core.degraded.store(degraded, Ordering::Relaxed);
        self.core.metrics.degraded_ledgers.set(degraded.into());
        self.core.note_cache();
        self.core.metrics.compaction.note(&self.core.logs.compaction(), dirty);
    }

    /// One shared configuration per topic, however many partitions it has.
    pub(super) fn config_of(&mut self, topic: TopicId) -> Arc<TopicConfig> {
        let table = self.core.mirror.table();
        let Some(record) = table.topic(topic).cloned() else { return Arc::default() };
        let control = table.topic_control(topic).map(|c| c.version).unwrap_or_default();
        let deleted = table.is_tombstone(topic);
        drop(table);
        let as_of = (record.version, control);
        if let Some((_, config)) = self.configs.get(&topic).filter(|(known, _)| *known == as_of) {
            return config.clone();
        }
        let mut config = record.config.clone();
        if record.name.is_internal() {
            // What the system writes for itself does not expire by the default of users' topics.
            config.retention_ms = config.retention_ms.or(Some(i64::MAX));
        }
        if deleted {
            // A tombstone keeps its data: it may be undeleted.
            config.retention_ms = Some(i64::MAX);
            config.retention_bytes = None;
        }
        let config = Arc::new(config);
        self.configs.insert(topic, (as_of, config.clone()));
        config
    }

    /// A topic changed: its logs get the new configuration.
    pub(super) fn configure(&mut self, topic: TopicId) {
        if self.core.mirror.table().topic(topic).is_none() {
            self.configs.remove(&topic);
            return;
        }
        let config = self.config_of(topic);
        for log in self.core.owned.logs().into_iter().filter(|l| l.id().topic == topic) {
            log.set_config(config.clone());
        }
    }
}
