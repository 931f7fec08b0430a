//! How a member of a group reads and commits.

use std::time::Duration;

use tidemill_types::ErrorCode;

use crate::{ClientError, ConsumerConfig, Start};

/// When positions are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitMode {
    /// By `poll`, when so much time has passed: everything that earlier polls gave. Also before a partition is given up, and
    /// by `close`. So each record is processed at least once.
    Auto {
        /// Pause between commits.
        every: Duration,
    },
    /// By `commit` and `commit_offsets` alone.
    Manual,
}

/// Configuration of a [`crate::GroupConsumer`].
#[derive(Clone, Debug)]
pub struct GroupConsumerConfig {
    /// The group: 1 to 249 printable ASCII characters without a space.
    pub group: String,
    /// Topics by name; they need not exist yet.
    pub topics: Vec<String>,
    /// All topics whose whole name matches this regular expression.
    pub pattern: Option<String>,
    /// Static membership: a member that comes back under this name within its session time-out finds its partitions.
    pub instance: Option<String>,
    /// The member's id; absent: a random one.
    pub member: Option<String>,
    /// Name for people.
    pub client: String,
    /// Where to begin in a partition without a committed offset. The configuration of the group goes first.
    pub start: Start,
    /// When positions are committed.
    pub commit: CommitMode,
    /// The coordinator removes a member that it does not hear for so long; absent: the group's (45 s).
    pub session_timeout: Option<Duration>,
    /// The coordinator removes a member that does not give a partition up for so long; absent: the group's (60 s).
    pub rebalance_timeout: Option<Duration>,
    /// A member that does not poll for so long leaves by itself.
    pub max_poll_interval: Duration,
    /// How records are fetched.
    pub fetch: ConsumerConfig,
}

impl GroupConsumerConfig {
    /// The defaults for a group and its topics: from the earliest record, committed every 5 s.
    #[must_use]
    pub fn new(group: impl Into<String>, topics: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            group: group.into(),
            topics: topics.into_iter().map(Into::into).collect(),
            pattern: None,
            instance: None,
            member: None,
            client: String::new(),
            start: Start::Earliest,
            commit: CommitMode::Auto { every: Duration::from_secs(5) },
            session_timeout: None,
            rebalance_timeout: None,
            max_poll_interval: Duration::from_secs(300),
            fetch: ConsumerConfig::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ClientError> {
        let refuse = |what: &str, why: &str| {
            Err(ClientError::new(ErrorCode::InvalidArgument, format!("group {}: {what}: {why}", self.group)))
        };
        if self.topics.is_empty() && self.pattern.is_none() {
            return refuse("topics", "at least one topic or a pattern");
        }
        for (what, time) in
            [("session_timeout", self.session_timeout), ("rebalance_timeout", self.rebalance_timeout)]
        {
            if time.is_some_and(|t| !(100..=3_600_000).contains(&t.as_millis())) {
                return refuse(what, "100 ms to 1 h");
            }
        }
        if self.max_poll_interval < Duration::from_millis(100) {
            return refuse("max_poll_interval", "100 ms or more");
        }
        Ok(())
    }
}
