//! Finding the owner, and waiting between tries.

use std::sync::Arc;

use tidemill_types::ErrorCode;
use tokio::time::Instant;

use super::{Driver, Found, Timer};
use crate::{ClientError, topology::TopicFacts};

impl Driver {
    /// What the topology knows now.
    pub(super) fn generation_of(&self, lane: usize) -> Option<u64> {
        let p = &self.seats[lane].partition;
        self.client.inner.topology.route(&p.topic, p.index).map(|(_, generation)| generation)
    }

    /// Sends again after a wait, or at once when the first failure named the owner.
    pub(super) fn again(&mut self, lane: usize) {
        let backoff = self.client.backoff();
        let seat = &mut self.seats[lane];
        if seat.not_before.is_some() {
            return;
        }
        let last = seat.lane.last();
        let asked = last.and_then(|e| e.retry_after);
        let hinted = last.is_some_and(|e| e.owner.is_some()) && asked.is_none();
        let attempt = seat.lane.attempt;
        seat.lane.attempt = attempt.saturating_add(1);
        if hinted && attempt == 0 {
            self.offer(lane);
            return;
        }
        let pause = backoff.wait(attempt).max(asked.unwrap_or_default());
        let when = Instant::now() + pause;
        seat.not_before = Some(when);
        self.timers.at(when, Timer::Retry(lane));
    }

    pub(super) fn retry(&mut self, lane: usize, now: Instant) {
        let seat = &mut self.seats[lane];
        if seat.not_before.is_some_and(|t| t <= now) {
            seat.not_before = None;
        }
        self.offer(lane);
    }

    /// Takes the owner from the topology, or asks.
    pub(super) fn find_route(&mut self, lane: usize) {
        let seat = &mut self.seats[lane];
        let (topic, index) = (seat.partition.topic.clone(), seat.partition.index);
        let known = self.client.inner.topology.route(&topic, index);
        let fresh = known.filter(|(_, generation)| seat.stale.is_none_or(|stale| *generation > stale));
        if let Some((route, generation)) = fresh {
            if let Some(owner) = route.owner {
                let link = self.link_to(&owner);
                let seat = &mut self.seats[lane];
                seat.route = Some((link, route.epoch));
                seat.stale = None;
                self.offer(lane);
                return;
            }
            let what = format!("partition {topic}/{index}");
            seat.lane.no_route(ClientError::new(ErrorCode::NoOwner, format!("{what}: nobody owns it")));
            // Nobody owns it as of now: ask again, but not at once.
            if seat.stale.replace(generation).is_some() {
                self.again(lane);
                return;
            }
        }
        seat.asking = true;
        if self.asked_topics.insert(topic.clone()) {
            let client = self.client.clone();
            let seen = seat.stale.unwrap_or(0);
            self.questions.spawn(async move {
                let facts = client.inner.topology.refresh(&client, &topic, seen).await;
                Found::Topic(topic, facts)
            });
        }
    }

    pub(super) fn topic_found(&mut self, topic: &Arc<str>, result: &Result<TopicFacts, ClientError>) {
        self.asked_topics.remove(topic);
        let lanes: Vec<usize> = self
            .seats
            .iter()
            .enumerate()
            .filter(|(_, s)| s.asking && s.partition.topic == *topic)
            .map(|(lane, _)| lane)
            .collect();
        if let Ok(facts) = result {
            // More partitions than before: later records use them.
            self.shared.topic(topic, *facts);
        }
        for lane in lanes {
            let seat = &mut self.seats[lane];
            seat.asking = false;
            match result {
                Ok(_) => self.offer(lane),
                Err(e) if e.retryable => {
                    seat.lane.no_route(e.clone());
                    self.again(lane);
                }
                Err(e) => {
                    let todo = seat.lane.give_up(e);
                    self.act(lane, &todo);
                }
            }
        }
    }
}
