//! Makes what is read follow what is assigned. Partitions that stay are not touched: nothing of them pauses.

use std::collections::BTreeMap;

use tidemill_proto::v1::{self, start_at::At};

use super::{CommitMode, GroupConsumer, GroupEvent, Held, offsets};
use crate::{Client, ClientError, Start, TopicPartition};

/// Committed offsets of partitions that were assigned, and to which life of the member the question belonged.
pub(super) struct Found {
    life: u64,
    parts: Vec<TopicPartition>,
    start: Start,
    offsets: Result<BTreeMap<TopicPartition, Option<i64>>, ClientError>,
}

impl GroupConsumer {
    /// Takes over what the coordinator said since the last look.
    pub(super) fn follow(&mut self) -> Result<Vec<GroupEvent>, ClientError> {
        let seen = self.member.seen()?;
        let mut events = Vec::new();
        if seen.life != self.life || seen.current.is_none() {
            let lost: Vec<TopicPartition> = std::mem::take(&mut self.held).into_keys().collect();
            for p in &lost {
                self.consumer.remove(p);
            }
            self.leaving.clear();
            self.starts.abort_all();
            self.committed.clear();
            self.life = seen.life;
            if !lost.is_empty() {
                events.push(GroupEvent::Lost(lost));
            }
        }
        let Some(a) = seen.current else { return Ok(events) };
        let wanted: BTreeMap<TopicPartition, u64> =
            a.assigned.iter().filter(|p| !p.topic.is_empty()).map(|p| (source(p), p.topic_id)).collect();
        // Announced first, given up by the next poll: the caller may have records of it in its hands.
        let going: Vec<TopicPartition> = self
            .held
            .iter()
            .filter(|(p, h)| wanted.get(*p) != Some(&h.topic_id) && !self.leaving.contains(*p))
            .map(|(p, _)| p.clone())
            .collect();
        if !going.is_empty() {
            for p in &going {
                self.consumer.stop_fetching(p);
            }
            self.leaving.extend(going.iter().cloned());
            events.push(GroupEvent::Revoking(going));
        }
        let new: Vec<(TopicPartition, u64)> =
            wanted.into_iter().filter(|(p, _)| !self.held.contains_key(p)).collect();
        for (p, topic_id) in &new {
            self.held.insert(p.clone(), Held { topic_id: *topic_id, reading: false });
        }
        if !new.is_empty() {
            self.find_starts(new, &a);
        }
        if self.leaving.is_empty() {
            self.confirm(a.revision);
        }
        Ok(events)
    }

    fn find_starts(&mut self, new: Vec<(TopicPartition, u64)>, a: &v1::GroupAssignment) {
        let start = a.start_at.as_ref().and_then(start).unwrap_or(self.config.start);
        let (client, group, life) = (self.client.clone(), self.config.group.clone(), self.life);
        let (member, epoch) = (self.member.id().to_owned(), a.epoch);
        self.starts.spawn(async move {
            let offsets = find(&client, &group, (&member, epoch), &new).await;
            if offsets.is_err() {
                // Asked again after a while.
                tokio::time::sleep(client.backoff().wait(4)).await;
            }
            let parts = new.into_iter().map(|(p, _)| p).collect();
            Found { life, parts, start, offsets }
        });
    }

    /// Begins to read.
    pub(super) fn started(&mut self, found: Found) -> Vec<GroupEvent> {
        if found.life != self.life {
            return Vec::new();
        }
        let mut all = match found.offsets {
            Ok(all) => all,
            Err(error) => {
                // Never "no offset": the coordinator is asked again, or the member is told that it is out.
                tracing::debug!(group = self.config.group, %error, "committed offsets are asked for again");
                for p in found.parts {
                    if !self.leaving.contains(&p) {
                        self.held.remove(&p);
                    }
                }
                return Vec::new();
            }
        };
        let mut begun = Vec::new();
        for p in found.parts {
            let Some(held) = self.held.get_mut(&p).filter(|h| !h.reading) else { continue };
            if self.leaving.contains(&p) {
                continue;
            }
            held.reading = true;
            let committed = all.remove(&p).flatten();
            if let Some(offset) = committed {
                self.committed.insert(p.clone(), offset);
            }
            self.consumer.add(&p, committed.map_or(found.start, Start::Offset));
            begun.push(p);
        }
        if begun.is_empty() { Vec::new() } else { vec![GroupEvent::Assigned(begun)] }
    }

    /// What was announced goes: committed first, then confirmed.
    pub(super) async fn give_up(&mut self) {
        if self.leaving.is_empty() {
            return;
        }
        if matches!(self.config.commit, CommitMode::Auto { .. }) {
            let all = self.positions(self.leaving.iter());
            if let Err(error) = self.commit_positions(all).await {
                tracing::warn!(group = self.config.group, %error, "partitions are given up without a commit");
            }
        }
        for p in std::mem::take(&mut self.leaving) {
            self.consumer.remove(&p);
            self.held.remove(&p);
            self.committed.remove(&p);
        }
        // The assignment may have moved on: `follow` confirms the newest one.
    }

    fn confirm(&self, revision: u64) {
        let owned = self.held.iter().map(|(p, h)| (p.clone(), h.topic_id)).collect();
        self.member.applied(self.life, revision, owned);
    }
}

async fn find(
    client: &Client,
    group: &str,
    member: (&str, u64),
    parts: &[(TopicPartition, u64)],
) -> Result<BTreeMap<TopicPartition, Option<i64>>, ClientError> {
    let found = offsets::fetch(client, group, Some(member), parts).await?;
    Ok(found.into_iter().map(|c| (c.source, c.offset)).collect())
}

fn source(p: &v1::AssignedPartition) -> TopicPartition {
    TopicPartition { topic: p.topic.as_str().into(), partition: p.partition }
}

fn start(s: &v1::StartAt) -> Option<Start> {
    Some(match s.at? {
        At::Earliest(_) => Start::Earliest,
        At::Latest(_) => Start::Latest,
        At::TimestampMs(ms) => Start::Timestamp(ms),
    })
}
