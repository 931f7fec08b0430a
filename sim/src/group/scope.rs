//! How large a world is explored, and under which rules.

use std::sync::Arc;

use tidemill_group::{Rules, Settings, TopicEntry, Topics};
use tidemill_types::TopicId;

use super::world::topic;

/// What is explored.
#[derive(Clone, Debug)]
pub struct GroupScope {
    /// Partitions of the topic.
    pub partitions: u32,
    /// Joins in all.
    pub joins: u8,
    /// Heartbeats in all.
    pub beats: u8,
    /// Commits in all.
    pub commits: u8,
    /// Members that leave in all.
    pub leaves: u8,
    /// Sessions that end although their members live.
    pub expiries: u8,
    /// Coordinators that die.
    pub fail_overs: u8,
    /// Messages that are delivered twice.
    pub twice: u8,
    /// The coordinator's rules.
    pub rules: Rules,
    /// A new coordinator knows the members of the old one.
    pub members_are_in_the_log: bool,
}

impl GroupScope {
    /// Two members, one partition, enough of everything to go wrong.
    #[must_use]
    pub fn small() -> Self {
        Self {
            partitions: 1,
            joins: 2,
            beats: 2,
            commits: 0,
            leaves: 0,
            expiries: 0,
            fail_overs: 0,
            twice: 0,
            rules: Rules::default(),
            members_are_in_the_log: true,
        }
    }

    /// With changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn topics(&self) -> Arc<Topics> {
        Arc::new(Topics::new([(topic(), TopicEntry { id: TopicId(1), partitions: self.partitions })], []))
    }

    pub(super) fn settings(&self) -> Settings {
        Settings { rules: self.rules, ..Settings::default() }
    }
}
