//! The mirror's table. Pure.

use std::{collections::BTreeMap, sync::Arc};

use tidemill_types::{
    ClusterId, GroupName, GroupRecord, Member, MemberId, MemberRole, PartitionId, PartitionRecord, Revision,
    TopicControl, TopicId, TopicName, TopicRecord,
    meta::{Change, MetaView, Watched},
};

/// Members, topics and partitions as of one revision.
#[derive(Clone, Debug, Default)]
pub struct MetaTable {
    revision: Revision,
    cluster: Option<ClusterId>,
    wall_ms: i64,
    members: BTreeMap<MemberId, Arc<Member>>,
    topics: BTreeMap<TopicId, Arc<TopicRecord>>,
    names: BTreeMap<TopicName, TopicId>,
    partitions: BTreeMap<PartitionId, Arc<PartitionRecord>>,
    groups: BTreeMap<GroupName, Arc<GroupRecord>>,
    controls: BTreeMap<TopicId, Arc<TopicControl>>,
}

impl MetaTable {
    /// As of this revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The cluster, when it has an id.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// Last tick, ms since the Unix epoch; 0 before the first.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        self.wall_ms
    }

    /// A member.
    #[must_use]
    pub fn member(&self, id: MemberId) -> Option<&Arc<Member>> {
        self.members.get(&id)
    }

    /// All members in order of id.
    pub fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.members.values()
    }

    /// The members of one role.
    pub fn members_of(&self, role: MemberRole) -> impl Iterator<Item = &Arc<Member>> {
        self.members.values().filter(move |m| m.role == role)
    }

    /// A topic by id.
    #[must_use]
    pub fn topic(&self, id: TopicId) -> Option<&Arc<TopicRecord>> {
        self.topics.get(&id)
    }

    /// Claim and tombstone of a topic; `None` when it never had one.
    #[must_use]
    pub fn topic_control(&self, id: TopicId) -> Option<&Arc<TopicControl>> {
        self.controls.get(&id)
    }

    /// Whether the topic is a tombstone: deleted, its data still there.
    #[must_use]
    pub fn is_tombstone(&self, id: TopicId) -> bool {
        self.controls.get(&id).is_some_and(|c| c.tombstone.is_some())
    }

    /// A topic by name, tombstones included.
    #[must_use]
    pub fn topic_by_name(&self, name: &TopicName) -> Option<&Arc<TopicRecord>> {
        self.names.get(name).and_then(|id| self.topics.get(id))
    }

    /// All topics in order of id, those that are being deleted included.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicRecord>> {
        self.topics.values()
    }

    /// A partition.
    #[must_use]
    pub fn partition(&self, id: PartitionId) -> Option<&Arc<PartitionRecord>> {
        self.partitions.get(&id)
    }

    /// The partitions of a topic in order of index.
    pub fn partitions_of(&self, topic: TopicId) -> impl Iterator<Item = &Arc<PartitionRecord>> {
        let first = PartitionId { topic, index: 0 };
        let last = PartitionId { topic, index: u32::MAX };
        self.partitions.range(first..=last).map(|(_, p)| p)
    }

    /// All partitions in order of id.
    pub fn partitions(&self) -> impl Iterator<Item = &Arc<PartitionRecord>> {
        self.partitions.values()
    }

    /// The configuration of a consumer group.
    #[must_use]
    pub fn group(&self, name: &GroupName) -> Option<&Arc<GroupRecord>> {
        self.groups.get(name)
    }

    /// All configured consumer groups in order of name.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<GroupRecord>> {
        self.groups.values()
    }

    /// Builds a table from the pieces of a view.
    pub(super) fn from_view(pieces: Vec<MetaView>, controls: Vec<TopicControl>) -> Self {
        let controls = controls.into_iter().map(|c| (c.topic, Arc::new(c))).collect();
        let mut t = Self { controls, ..Self::default() };
        for piece in pieces {
            t.revision = t.revision.max(piece.revision);
            t.cluster = t.cluster.or(piece.cluster);
            t.wall_ms = t.wall_ms.max(piece.wall_ms);
            for m in piece.members {
                t.members.insert(m.id, Arc::new(m));
            }
            for topic in piece.topics {
                t.put_topic(topic);
            }
            for p in piece.partitions {
                t.partitions.insert(p.id, Arc::new(p));
            }
            for g in piece.groups {
                t.groups.insert(g.name.clone(), Arc::new(g));
            }
        }
        t
    }

    /// Applies one event; false when the table has it already.
    pub(super) fn apply(&mut self, event: &Watched) -> bool {
        if event.revision <= self.revision {
            return false;
        }
        self.revision = event.revision;
        for change in &event.changes {
            match change {
                Change::Topic(t) => self.put_topic(t.clone()),
                Change::TopicRemoved(id) => self.remove_topic(*id),
                Change::Partition(p) => {
                    self.partitions.insert(p.id, Arc::new(p.clone()));
                }
                Change::PartitionRemoved(id) => {
                    self.partitions.remove(id);
                }
                Change::Member(m) => {
                    self.members.insert(m.id, Arc::new(m.clone()));
                }
                Change::MemberRemoved(id) => {
                    self.members.remove(id);
                }
                Change::TopicControl(c) => {
                    self.controls.insert(c.topic, Arc::new(c.clone()));
                }
                Change::Time(ms) => self.wall_ms = self.wall_ms.max(*ms),
                Change::Group(g) => {
                    self.groups.insert(g.name.clone(), Arc::new(g.clone()));
                }
                Change::GroupRemoved(name) => {
                    self.groups.remove(name);
                }
            }
        }
        true
    }

    /// Nothing that is followed changed up to this revision.
    pub(super) fn advance(&mut self, revision: Revision) -> bool {
        let news = revision > self.revision;
        self.revision = self.revision.max(revision);
        news
    }

    fn put_topic(&mut self, topic: TopicRecord) {
        // The name of a topic that is being deleted is free at once, and may belong to a new topic already.
        if topic.deleting {
            if self.names.get(&topic.name) == Some(&topic.id) {
                self.names.remove(&topic.name);
            }
        } else {
            self.names.insert(topic.name.clone(), topic.id);
        }
        self.topics.insert(topic.id, Arc::new(topic));
    }

    fn remove_topic(&mut self, id: TopicId) {
        self.controls.remove(&id);
        if let Some(old) = self.topics.remove(&id)
            && self.names.get(&old.name) == Some(&id)
        {
            self.names.remove(&old.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{TopicConfig, Version};

    use super::*;

    fn topic(id: u64, name: &str, deleting: bool) -> TopicRecord {
        TopicRecord {
            id: TopicId(id),
            version: Version(1),
            name: TopicName::new(name).unwrap(),
            partitions: 1,
            config: TopicConfig::default(),
            created_ms: 0,
            deleting,
        }
    }

    fn event(revision: u64, changes: Vec<Change>) -> Watched {
        Watched { revision: Revision(revision), changes }
    }

    #[test]
    fn a_name_goes_to_the_topic_that_lives() {
        let mut t = MetaTable::from_view(
            vec![
                MetaView { revision: Revision(5), topics: vec![topic(1, "a", false)], ..Default::default() },
                MetaView { revision: Revision(5), topics: vec![topic(2, "b", false)], ..Default::default() },
            ],
            vec![],
        );
        let a = TopicName::new("a").unwrap();
        assert!(!t.apply(&event(5, vec![Change::TopicRemoved(TopicId(1))])), "an event that it has already");
        assert!(t.apply(&event(6, vec![Change::Topic(topic(1, "a", true))])));
        assert!(t.topic_by_name(&a).is_none());
        assert!(t.apply(&event(7, vec![Change::Topic(topic(3, "a", false))])));
        assert!(t.apply(&event(8, vec![Change::TopicRemoved(TopicId(1))])));
        assert_eq!(t.topic_by_name(&a).map(|t| t.id), Some(TopicId(3)));
        assert!(t.advance(Revision(11)));
        assert!(!t.advance(Revision(10)));
        assert_eq!(t.revision(), Revision(11));
    }
}
