//! `CreateTopic`, `AlterTopic`, `DeleteTopic`.

use tidemill_types::meta::{Change, Rejection, Reply};
use tidemill_types::{
    Cleanup, Epoch, Offset, PartitionId, PartitionRecord, TopicConfig, TopicId, TopicName, TopicRecord,
    Version,
};

use crate::State;
use crate::limits::{MAX_MESSAGE_BYTES, MAX_PARTITIONS, MAX_PARTITIONS_IN_ALL, MAX_TOPICS};
use crate::reject::{conflict, invalid, not_found};

/// Longest delete horizon: 10 years, ms.
const MAX_HORIZON_MS: u64 = 10 * 366 * 24 * 3_600 * 1_000;

pub(crate) fn check_config(c: &TopicConfig) -> Result<(), Rejection> {
    if c.cleanup.min_dirty_permille.is_some_and(|v| v > 1_000) {
        return Err(invalid("min_dirty_permille", "0 to 1000"));
    }
    if c.cleanup.delete_horizon_ms.is_some_and(|v| v > MAX_HORIZON_MS) {
        return Err(invalid("delete_horizon_ms", format_args!("at most {MAX_HORIZON_MS}")));
    }
    if !c.replication.is_valid() {
        return Err(invalid("replication", "1 <= ack quorum <= copies <= 7"));
    }
    for (field, ms) in [("retention_ms", c.retention_ms), ("roll_ms", c.roll_ms)] {
        if ms.is_some_and(|v| v <= 0) {
            return Err(invalid(field, "above 0"));
        }
    }
    for (field, bytes) in [("retention_bytes", c.retention_bytes), ("roll_bytes", c.roll_bytes)] {
        if bytes == Some(0) {
            return Err(invalid(field, "above 0"));
        }
    }
    if c.max_message_bytes.is_some_and(|v| !(1..=MAX_MESSAGE_BYTES).contains(&v)) {
        return Err(invalid("max_message_bytes", format_args!("1 to {MAX_MESSAGE_BYTES}")));
    }
    Ok(())
}

impl State {
    fn check_room(&self, more: u32) -> Result<(), Rejection> {
        if self.partitions.len() + more as usize > MAX_PARTITIONS_IN_ALL {
            return Err(conflict(format_args!("at most {MAX_PARTITIONS_IN_ALL} partitions in all")));
        }
        Ok(())
    }

    fn add_partitions(&mut self, topic: TopicId, indexes: std::ops::Range<u32>, out: &mut Vec<Change>) {
        for index in indexes {
            let partition = PartitionRecord {
                id: PartitionId { topic, index },
                version: Version(1),
                owner: None,
                epoch: Epoch(0),
                assigned: None,
                chain: Vec::new(),
                log_start: Offset(0),
            };
            self.put_partition(partition, out);
        }
    }

    pub(crate) fn create_topic(
        &mut self,
        name: &TopicName,
        partitions: u32,
        config: &TopicConfig,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        self.new_topic(name, partitions, config, out).map(Reply::Topic)
    }

    pub(crate) fn new_topic(
        &mut self,
        name: &TopicName,
        partitions: u32,
        config: &TopicConfig,
        out: &mut Vec<Change>,
    ) -> Result<TopicRecord, Rejection> {
        if !(1..=MAX_PARTITIONS).contains(&partitions) {
            return Err(invalid("partitions", format_args!("1 to {MAX_PARTITIONS}")));
        }
        check_config(config)?;
        self.check_level(config)?;
        if let Some(there) = self.names.get(name) {
            self.check_no_tombstone(*there)?;
            return Err(Rejection::Exists { what: format!("topic {name}") });
        }
        if self.topics.len() >= MAX_TOPICS {
            return Err(conflict(format_args!("at most {MAX_TOPICS} topics")));
        }
        self.check_room(partitions)?;
        let topic = TopicRecord {
            id: TopicId(self.counters.next_topic),
            version: Version(1),
            name: name.clone(),
            partitions,
            config: config.clone(),
            created_ms: self.counters.wall_ms,
            deleting: false,
        };
        self.counters.next_topic += 1;
        self.put_topic(topic.clone(), out);
        self.add_partitions(topic.id, 0..partitions, out);
        Ok(topic)
    }

    /// Older binaries do not know the fields of a cleanup.
    fn check_level(&self, config: &TopicConfig) -> Result<(), Rejection> {
        if config.cleanup == Cleanup::default() { Ok(()) } else { self.check_compaction_level() }
    }

    fn check_no_tombstone(&self, topic: TopicId) -> Result<(), Rejection> {
        let tombstone = self.topic_control(topic).and_then(|c| c.tombstone.as_ref());
        let Some(t) = tombstone else { return Ok(()) };
        let name = self.topic(topic).map_or("", |t| t.name.as_str());
        let by = t.former.as_ref().map_or("nobody", |f| f.owner.as_str());
        let why = format!("topic {name} was deleted by {by} and is not purged yet");
        Err(Rejection::Tombstoned { why })
    }

    pub(crate) fn alter_topic(
        &mut self,
        topic: TopicId,
        version: Option<Version>,
        partitions: Option<u32>,
        config: Option<&TopicConfig>,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let old = self.topic(topic).ok_or_else(|| not_found("topic", topic))?.clone();
        if version.is_some_and(|v| v != old.version) {
            return Err(Rejection::VersionMismatch { current: old.version });
        }
        self.check_no_tombstone(topic)?;
        self.changed_topic(&old, partitions, config, out).map(Reply::Topic)
    }

    /// The topic with another count or configuration; nothing is written when it is the same.
    pub(crate) fn changed_topic(
        &mut self,
        old: &TopicRecord,
        partitions: Option<u32>,
        config: Option<&TopicConfig>,
        out: &mut Vec<Change>,
    ) -> Result<TopicRecord, Rejection> {
        let mut new = old.clone();
        if let Some(count) = partitions {
            if count < old.partitions || count > MAX_PARTITIONS {
                return Err(invalid("partitions", format_args!("{} to {MAX_PARTITIONS}", old.partitions)));
            }
            if old.name.is_internal() && count != old.partitions {
                return Err(invalid("partitions", "fixed for an internal topic"));
            }
            self.check_room(count - old.partitions)?;
            new.partitions = count;
        }
        if let Some(config) = config {
            check_config(config)?;
            self.check_level(config)?;
            new.config = config.clone();
        }
        if new != *old {
            new.version.0 += 1;
            self.put_topic(new.clone(), out);
            self.add_partitions(old.id, old.partitions..new.partitions, out);
        }
        Ok(new)
    }

    /// A topic that somebody claims is deleted by its holder alone; a tombstone goes for good.
    pub(crate) fn delete_topic(&mut self, topic: TopicId, out: &mut Vec<Change>) -> Result<Reply, Rejection> {
        if let Some(holder) = self.topic_control(topic).and_then(|c| c.claim.clone()) {
            let name = self.topic(topic).map_or("", |t| t.name.as_str());
            let why = format!("topic {name} is claimed by {}", holder.owner);
            return Err(Rejection::Claimed { holder: Some(holder), why });
        }
        self.remove_topic(topic, out).map(|()| Reply::Done)
    }

    /// The records of all its ledgers go with it: for bookies they are gone for good, which R20(a) asks for.
    pub(crate) fn remove_topic(&mut self, topic: TopicId, out: &mut Vec<Change>) -> Result<(), Rejection> {
        let old = self.topic(topic).ok_or_else(|| not_found("topic", topic))?.clone();
        for index in 0..old.partitions {
            let id = PartitionId { topic, index };
            for ledger in self.ledgers_created_for(id) {
                self.drop_ledger(ledger);
            }
            self.partitions.remove(&id);
            out.push(Change::PartitionRemoved(id));
        }
        self.names.remove(&old.name);
        self.topics.remove(&topic);
        self.controls.remove(&topic);
        out.push(Change::TopicRemoved(topic));
        Ok(())
    }
}
