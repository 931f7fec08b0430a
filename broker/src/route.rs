//! From a topic's name and a partition's index to the log that serves it, or to the answer who does.

use std::{num::NonZeroU32, sync::Arc};

use tidemill_meta_client::MetaTable;
use tidemill_partition_log::{LogState, PartitionLog};
use tidemill_types::{Epoch, ErrorCode, PartitionId, TopicId, TopicName, TopicRecord};

use crate::{
    convert::topic::live_owner,
    core::Core,
    deadline::Deadline,
    fault::{Fault, shown},
    ownership::Held,
};

/// What a produce or fetch needs to know of a topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) id: TopicId,
    pub(crate) name: Arc<str>,
    /// Number of partitions.
    pub(crate) count: NonZeroU32,
    /// Largest batch, bytes.
    pub(crate) max_batch: usize,
    /// It is compacted: every record needs a key.
    pub(crate) compacted: bool,
    /// Its records go by time, size or order.
    pub(crate) deletes: bool,
}

impl Topic {
    fn of(t: &TopicRecord, core: &Core) -> Self {
        let max = t.config.max_message_bytes.unwrap_or(core.config.max_message_bytes);
        Self {
            id: t.id,
            name: t.name.as_str().into(),
            count: NonZeroU32::new(t.partitions).unwrap_or(NonZeroU32::MIN),
            compacted: t.config.cleanup.policy.compacts(),
            deletes: t.config.cleanup.policy.deletes(),
            max_batch: usize::try_from(max).unwrap_or(usize::MAX).min(crate::limits::MAX_PRODUCE_BYTES),
        }
    }

    /// The id of one of its partitions.
    ///
    /// # Errors
    /// `UNKNOWN_PARTITION` with the allowed range.
    pub(crate) fn partition(&self, index: u32) -> Result<PartitionId, Fault> {
        if index < self.count.get() {
            Ok(PartitionId { topic: self.id, index })
        } else {
            Err(Fault::unknown_partition(&self.name, index, self.count.get()))
        }
    }
}

/// A valid topic name.
///
/// # Errors
/// `INVALID_TOPIC_NAME` with the rule.
pub(crate) fn topic_name(name: &str) -> Result<TopicName, Fault> {
    TopicName::new(name).map_err(|_| {
        let allowed = "1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', and not '.' or '..'";
        Fault::field(ErrorCode::InvalidTopicName, "topic", &format!("{} is given", shown(name)), allowed)
    })
}

/// Internal topics are written and changed by the system alone.
///
/// # Errors
/// `INVALID_TOPIC_NAME`.
pub(crate) fn not_internal(name: &TopicName) -> Result<(), Fault> {
    if name.is_internal() {
        let allowed = "names that do not begin with two underscores: those belong to the system";
        return Err(Fault::field(ErrorCode::InvalidTopicName, "topic", "an internal name", allowed));
    }
    Ok(())
}

impl Core {
    /// A topic by name, from the view, to be written or read.
    ///
    /// # Errors
    /// `INVALID_TOPIC_NAME`, `UNKNOWN_TOPIC`, `TOPIC_TOMBSTONED`.
    pub(crate) fn topic(&self, name: &str) -> Result<Topic, Fault> {
        let topic = self.any_topic(name)?;
        if self.mirror.table().is_tombstone(topic.id) {
            return Err(Fault::tombstoned(name));
        }
        Ok(topic)
    }

    /// A topic by name, from the view, tombstones included: to be looked at.
    ///
    /// # Errors
    /// `INVALID_TOPIC_NAME`, `UNKNOWN_TOPIC`.
    pub(crate) fn any_topic(&self, name: &str) -> Result<Topic, Fault> {
        let valid = topic_name(name)?;
        let table = self.mirror.table();
        table.topic_by_name(&valid).map(|t| Topic::of(t, self)).ok_or_else(|| Fault::unknown_topic(name))
    }

    /// A topic that clients may write to: not one of the system's.
    ///
    /// # Errors
    /// As [`Self::topic`]; `INVALID_TOPIC_NAME` for an internal topic.
    pub(crate) fn client_topic(&self, name: &str) -> Result<Topic, Fault> {
        not_internal(&topic_name(name)?)?;
        self.topic(name)
    }

    /// The log of a partition that this broker holds, in whatever state. `known`: the epoch that the client knows, 0 = none.
    ///
    /// # Errors
    /// `NOT_OWNER` with the owner, `NO_OWNER`. Both mean that nothing was written.
    pub(crate) fn log(&self, topic: &Topic, id: PartitionId, known: u64) -> Result<Arc<PartitionLog>, Fault> {
        match self.owned.get(id) {
            // Every request carries the epoch that the client knows; a broker with a lower one is not the owner (metadata,
            // Sessions). An older one is no fault: the answer tells the new one.
            Some(Held::Log(log)) if matches!(log.state(), LogState::Recovering | LogState::Serving) => {
                if Epoch(known) <= log.epoch() {
                    Ok(log)
                } else {
                    Err(self.behind(topic, id, log.epoch()))
                }
            }
            Some(Held::Log(_)) => Err(self.not_here(topic, id)),
            Some(Held::Opening(epoch)) if Epoch(known) > epoch => Err(self.behind(topic, id, epoch)),
            Some(Held::Opening(_)) => {
                self.owned.want(id);
                self.metrics.no_owner.inc();
                Err(Fault::opening(&name_of(topic, id)))
            }
            _ => Err(self.not_here(topic, id)),
        }
    }

    /// As [`Self::log`], but waits for a take-over by this broker, at most until `deadline`.
    ///
    /// # Errors
    /// As [`Self::log`]; `NO_OWNER` when the wait ends.
    pub(crate) async fn ready_log(
        &self,
        topic: &Topic,
        id: PartitionId,
        known: u64,
        deadline: Deadline,
    ) -> Result<Arc<PartitionLog>, Fault> {
        let mut changed = self.owned.subscribe();
        loop {
            changed.mark_unchanged();
            match self.log(topic, id, known) {
                Ok(log) if log.state() == LogState::Recovering => {
                    if deadline.bound(log.ready()).await.is_err() {
                        return Err(Fault::opening(&name_of(topic, id)));
                    }
                }
                Err(f) if f.code() == ErrorCode::NoOwner && self.is_mine(id) => {
                    if !matches!(deadline.bound(changed.changed()).await, Ok(Ok(()))) {
                        return Err(f);
                    }
                }
                done => return done,
            }
        }
    }

    /// The planner wants this broker to own it.
    fn is_mine(&self, id: PartitionId) -> bool {
        self.mirror.table().partition(id).is_some_and(|p| p.assigned == Some(self.member))
    }

    /// The client knows a newer epoch than the one that this broker holds: somebody else owns it by now, known here or not.
    fn behind(&self, topic: &Topic, id: PartitionId, held: Epoch) -> Fault {
        let fault = self.not_here(topic, id);
        if fault.code() == ErrorCode::NotOwner {
            return fault;
        }
        self.metrics.not_owner.inc();
        Fault::not_owner(&name_of(topic, id), None, held)
    }

    /// Who owns it, if not this broker.
    pub(crate) fn not_here(&self, topic: &Topic, id: PartitionId) -> Fault {
        let table = self.mirror.table();
        let fault = not_here(&table, topic, id, self);
        drop(table);
        match fault.code() {
            ErrorCode::NotOwner => self.metrics.not_owner.inc(),
            _ => self.metrics.no_owner.inc(),
        };
        fault
    }
}

fn not_here(table: &MetaTable, topic: &Topic, id: PartitionId, core: &Core) -> Fault {
    let name = name_of(topic, id);
    let Some(p) = table.partition(id) else { return Fault::no_owner(&name) };
    match live_owner(p, table) {
        Some(m) if m.id != core.member => Fault::not_owner(&name, Some(&m.endpoint), p.epoch),
        _ => {
            if p.assigned == Some(core.member) {
                core.owned.want(id);
            }
            Fault::no_owner(&name)
        }
    }
}

/// `topic/index`, for messages.
pub(crate) fn name_of(topic: &Topic, id: PartitionId) -> String {
    format!("{}/{}", topic.name, id.index)
}
