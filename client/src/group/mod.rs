//! Consumer groups: a consumer whose partitions a coordinator assigns, and whose positions are committed.
//!
//! A task keeps the member alive over one stream (`member`); [`GroupConsumer::poll`] makes what is read follow what is
//! assigned, so that everything which concerns records happens in the caller's own time. What a poll gave counts as
//! processed when the next poll, or `close`, is called.

mod admin;
mod config;
mod coordinator;
mod follow;
mod member;
mod offsets;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tidemill_types::ErrorCode;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::member::Member;
use crate::{Client, ClientError, Consumer, Event, OffsetResult, Start, TopicPartition};

pub use admin::{Groups, ResetTo};
pub use config::{CommitMode, GroupConsumerConfig};
pub(crate) use coordinator::Coordinators;
pub use offsets::CommittedPosition;

/// What a poll of a group's consumer gives.
#[derive(Clone, Debug)]
pub enum GroupEvent {
    /// Records, gaps, trouble of an assigned partition.
    Read(Event),
    /// These partitions are read from now on.
    Assigned(Vec<TopicPartition>),
    /// These partitions are read no further. Finish what is under way and, with manual commits, commit it: the next poll
    /// gives them up.
    Revoking(Vec<TopicPartition>),
    /// These partitions belong to somebody else already, because this member was not heard or did not poll in time. What was
    /// not committed is read again there; commits of it are refused.
    Lost(Vec<TopicPartition>),
}

/// A partition that this member has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    topic_id: u64,
    /// Its start was found and it is being read.
    reading: bool,
}

/// Reads the partitions that its group's coordinator assigns to it. Dropping it leaves the group without a commit.
#[derive(Debug)]
pub struct GroupConsumer {
    client: Client,
    config: GroupConsumerConfig,
    consumer: Consumer,
    member: Arc<Member>,
    /// Which life of the member the fields below belong to.
    life: u64,
    held: BTreeMap<TopicPartition, Held>,
    /// Announced, to be given up by the next poll.
    leaving: BTreeSet<TopicPartition>,
    starts: JoinSet<follow::Found>,
    committed: BTreeMap<TopicPartition, i64>,
    commit_at: Instant,
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        self.member.stop();
    }
}

impl Client {
    /// A consumer in a group; returns when it has joined.
    ///
    /// # Errors
    /// A configuration outside its limits, `INSTANCE_IN_USE`, `MEMBER_IN_USE`, `UNSUPPORTED` (a group of another mode), or no
    /// answer within the deadline.
    pub async fn group_consumer(&self, config: GroupConsumerConfig) -> Result<GroupConsumer, ClientError> {
        config.check()?;
        let member = Member::start(self.clone(), config.clone());
        let consumer = self.consumer(config.fetch.clone());
        let group = GroupConsumer {
            client: self.clone(),
            consumer,
            member,
            life: 0,
            held: BTreeMap::new(),
            leaving: BTreeSet::new(),
            starts: JoinSet::new(),
            committed: BTreeMap::new(),
            commit_at: Instant::now(),
            config,
        };
        group.member.joined(self.deadline()).await?;
        Ok(group)
    }

    /// Groups as an operator sees them, and their committed offsets.
    #[must_use]
    pub fn groups(&self) -> Groups {
        Groups::new(self.clone())
    }
}

impl GroupConsumer {
    /// What has come, waiting at most `timeout` for the first event; empty after it. Everything that earlier polls gave
    /// counts as processed by this call: with [`CommitMode::Auto`] it is committed when due, and before a partition is
    /// given up.
    ///
    /// It has to be called at least every [`GroupConsumerConfig::max_poll_interval`], else the member leaves the group and
    /// its partitions go to others ([`GroupEvent::Lost`]).
    ///
    /// # Errors
    /// What ends the membership for good, such as `INSTANCE_IN_USE` or `UNSUPPORTED`.
    pub async fn poll(&mut self, timeout: Duration) -> Result<Vec<GroupEvent>, ClientError> {
        let until = Instant::now() + timeout;
        self.member.polled();
        self.give_up().await;
        loop {
            let member = self.member.clone();
            let news = member.news();
            tokio::pin!(news);
            // Registered before the look: what comes in between is not missed.
            news.as_mut().enable();
            let events = self.follow()?;
            if !events.is_empty() {
                return Ok(events);
            }
            self.commit_when_due().await;
            let reading = self.held.values().any(|h| h.reading);
            let left = until.saturating_duration_since(Instant::now());
            tokio::select! {
                () = &mut news => {}
                Some(found) = self.starts.join_next(), if !self.starts.is_empty() => {
                    if let Ok(found) = found {
                        let events = self.started(found);
                        if !events.is_empty() {
                            return Ok(events);
                        }
                    }
                }
                events = self.consumer.poll(left), if reading => {
                    let events = events?;
                    if !events.is_empty() || Instant::now() >= until {
                        return Ok(events.into_iter().map(GroupEvent::Read).collect());
                    }
                }
                () = sleep_until(until), if !reading => return Ok(Vec::new()),
            }
        }
    }

    /// The partitions that this member has, in order.
    #[must_use]
    pub fn assignment(&self) -> Vec<TopicPartition> {
        self.held.keys().filter(|p| !self.leaving.contains(*p)).cloned().collect()
    }

    /// The member's id.
    #[must_use]
    pub fn member_id(&self) -> &str {
        self.member.id()
    }

    /// Offset of the next record that a poll will give; `None` while the start is not found, or not assigned.
    #[must_use]
    pub fn position(&self, topic: &str, partition: u32) -> Option<i64> {
        self.consumer.position(topic, partition)
    }

    /// Goes on elsewhere; the committed offset follows with the next commit.
    ///
    /// # Errors
    /// The partition is not read by this member, or a negative offset.
    pub fn seek(&mut self, topic: &str, partition: u32, to: Start) -> Result<(), ClientError> {
        self.consumer.seek(topic, partition, to)
    }

    /// Gives nothing of the partition until [`Self::resume`], or until it is assigned anew; its position stays.
    ///
    /// # Errors
    /// The partition is not read by this member.
    pub fn pause(&mut self, topic: &str, partition: u32) -> Result<(), ClientError> {
        self.consumer.pause(topic, partition)
    }

    /// Ends [`Self::pause`].
    ///
    /// # Errors
    /// The partition is not read by this member.
    pub fn resume(&mut self, topic: &str, partition: u32) -> Result<(), ClientError> {
        self.consumer.resume(topic, partition)
    }

    /// Where each partition that is read ends now.
    ///
    /// # Errors
    /// A partition that does not answer within the client's deadline.
    pub async fn end_offsets(&self) -> Result<Vec<OffsetResult>, ClientError> {
        self.consumer.end_offsets().await
    }

    /// Commits everything that polls gave so far, and waits until that is durable.
    ///
    /// # Errors
    /// The first partition that could not be committed: `FENCED_MEMBER` or `UNKNOWN_MEMBER` when it is somebody else's by
    /// now, or no answer within the deadline.
    pub async fn commit(&mut self) -> Result<(), ClientError> {
        let all = self.positions(self.held.keys());
        self.commit_positions(all).await
    }

    /// Commits these positions (each the next record to be read) of partitions that this member has.
    ///
    /// # Errors
    /// As [`Self::commit`]; `OFFSET_OUT_OF_RANGE` beyond the end of a partition.
    pub async fn commit_offsets(
        &mut self,
        offsets: impl IntoIterator<Item = (TopicPartition, i64)>,
    ) -> Result<(), ClientError> {
        self.commit_positions(offsets.into_iter().collect()).await
    }

    /// What the group has committed, of the partitions that this member has.
    ///
    /// # Errors
    /// `UNKNOWN_MEMBER`, `FENCED_MEMBER`, or no answer within the deadline.
    pub async fn committed(&self) -> Result<Vec<CommittedPosition>, ClientError> {
        let (member, epoch) = self.identity()?;
        let parts: Vec<(TopicPartition, u64)> =
            self.held.iter().map(|(p, h)| (p.clone(), h.topic_id)).collect();
        offsets::fetch(&self.client, &self.config.group, Some((&member, epoch)), &parts).await
    }

    /// Commits what was processed (not with [`CommitMode::Manual`]) and leaves the group, so that others take over at once.
    ///
    /// # Errors
    /// Of the commit; the group is left in any case.
    pub async fn close(mut self) -> Result<(), ClientError> {
        let done = match self.config.commit {
            CommitMode::Auto { .. } => self.commit().await,
            CommitMode::Manual => Ok(()),
        };
        self.leave().await;
        done
    }

    /// Leaves the group without a commit.
    pub async fn leave(self) {
        self.member.leave(self.client.deadline()).await;
    }

    fn identity(&self) -> Result<(String, u64), ClientError> {
        match self.member.epoch() {
            Some((life, epoch)) if life == self.life => Ok((self.member.id().to_owned(), epoch)),
            _ => Err(ClientError::new(
                ErrorCode::UnknownMember,
                format!("group {}: this member is not in the group now", self.config.group),
            )),
        }
    }

    fn positions<'a>(&self, of: impl Iterator<Item = &'a TopicPartition>) -> Vec<(TopicPartition, i64)> {
        of.filter_map(|p| Some((p.clone(), self.consumer.position(&p.topic, p.partition)?))).collect()
    }

    async fn commit_positions(&mut self, all: Vec<(TopicPartition, i64)>) -> Result<(), ClientError> {
        let news: Vec<(TopicPartition, i64, u64)> = all
            .into_iter()
            .filter(|(p, at)| self.committed.get(p) != Some(at))
            .map(|(p, at)| {
                let id = self.held.get(&p).map_or(0, |h| h.topic_id);
                (p, at, id)
            })
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        let (member, epoch) = self.identity()?;
        let done = offsets::commit(&self.client, &self.config.group, Some((&member, epoch)), &news).await;
        let mut first = Ok(());
        match done {
            Err(e) => first = Err(e),
            Ok(each) => {
                for ((p, at, _), verdict) in news.into_iter().zip(each) {
                    match verdict {
                        Ok(()) => {
                            self.committed.insert(p, at);
                        }
                        Err(e) if first.is_ok() => first = Err(e),
                        Err(_) => {}
                    }
                }
            }
        }
        first
    }

    async fn commit_when_due(&mut self) {
        let CommitMode::Auto { every } = self.config.commit else { return };
        if Instant::now() < self.commit_at {
            return;
        }
        self.commit_at = Instant::now() + every;
        let all = self.positions(self.held.keys());
        // One that fails is tried again with the next; what it costs is that records are read twice.
        if let Err(error) = self.commit_positions(all).await {
            tracing::debug!(group = self.config.group, %error, "offsets are committed later");
        }
    }
}
