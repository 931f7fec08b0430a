//! Streams and what goes out on them.

use std::sync::Arc;

use tidemill_proto::v1;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Driver, Timer,
    link::{self, Link, LinkState, MAX_FRAMES, Unanswered},
};
use crate::{ClientError, producer::counters::Counting};

impl Driver {
    /// A lane may have something to send: it gets in line at its link, or looks for its owner.
    pub(super) fn offer(&mut self, lane: usize) {
        let seat = &mut self.seats[lane];
        if seat.asking || seat.not_before.is_some() || seat.lane.peek().is_none() {
            return;
        }
        let Some((link, _)) = seat.route else {
            self.find_route(lane);
            return;
        };
        if seat.queued.replace(link) == Some(link) {
            return;
        }
        self.links[link].ready.push_back(lane);
        self.pump(link);
    }

    /// The link of an address.
    pub(super) fn link_to(&mut self, address: &Arc<str>) -> usize {
        if let Some(link) = self.by_address.get(address) {
            return *link;
        }
        self.links.push(Link::new(address.clone()));
        self.by_address.insert(address.clone(), self.links.len() - 1);
        self.links.len() - 1
    }

    /// Sends what the credit allows; opens the stream when there is none.
    pub(super) fn pump(&mut self, link: usize) {
        match &self.links[link].state {
            LinkState::Down => {
                if !self.links[link].ready.is_empty() {
                    self.open(link);
                }
                return;
            }
            LinkState::Opening(..) => return,
            LinkState::Up(..) => {}
        }
        while let Some(lane) = self.links[link].ready.pop_front() {
            if self.seats[lane].queued != Some(link) {
                continue;
            }
            if !self.drain_lane(link, lane) {
                // No credit on the stream: it goes on here after the next answer.
                self.links[link].ready.push_front(lane);
                break;
            }
            self.seats[lane].queued = None;
            if self.seats[lane].route.is_none_or(|(to, _)| to != link) {
                // The owner changed while it stood in line.
                self.offer(lane);
            }
        }
    }

    /// Sends batches of one lane. Says no when the stream has no room.
    fn drain_lane(&mut self, at: usize, lane: usize) -> bool {
        let link = &mut self.links[at];
        let LinkState::Up(_, frames) = &link.state else { return false };
        let frames = frames.clone();
        let seat = &mut self.seats[lane];
        let Some((_, epoch)) = seat.route.filter(|(l, _)| *l == at) else { return true };
        while let Some(len) = seat.lane.peek() {
            let len = len as u64;
            if !link.has_room(len) {
                return false;
            }
            if seat.lane.unanswered > 0 && seat.lane.unanswered_bytes + len > link.partition_credit {
                return true;
            }
            let Ok(permit) = frames.try_reserve() else {
                // Full: an answer makes room. Closed: the stream ends, which its own event tells.
                return false;
            };
            let Some(sending) = seat.lane.send() else { return true };
            if sending.again {
                Counting::add(&self.shared.counting.batch_retries, 1);
            }
            self.correlation += 1;
            let correlation = self.correlation;
            let now = Instant::now();
            link.unanswered.insert(correlation, Unanswered { lane, number: sending.number, bytes: len });
            link.unanswered_bytes += len;
            link.order.push_back((now, correlation));
            if !std::mem::replace(&mut link.watched, true) {
                self.timers.at(now + self.shared.config.request_timeout, Timer::Stall(at));
            }
            permit.send(v1::ProduceFrame {
                correlation,
                topic: seat.partition.topic.to_string(),
                partition: seat.partition.index,
                epoch,
                batches: sending.bytes,
            });
        }
        true
    }

    fn open(&mut self, at: usize) {
        let (tx, rx) = mpsc::channel(MAX_FRAMES);
        let link = &mut self.links[at];
        link.generation += 1;
        let task = tokio::spawn(link::run(
            self.client.clone(),
            link.address.clone(),
            at,
            link.generation,
            rx,
            self.events.clone(),
        ));
        link.state = LinkState::Opening(task.abort_handle(), tx);
    }

    pub(super) fn opened(&mut self, at: usize, generation: u64, stream: u64, partition: u64) {
        let link = &mut self.links[at];
        if link.generation != generation {
            return;
        }
        link.stream_credit = stream;
        link.partition_credit = partition;
        if let LinkState::Opening(task, tx) = std::mem::replace(&mut link.state, LinkState::Down) {
            link.state = LinkState::Up(task, tx);
        }
        self.pump(at);
    }

    pub(super) fn broken(&mut self, at: usize, generation: u64, error: &ClientError) {
        if self.links[at].generation == generation {
            self.cut(at, error);
        }
    }

    /// Without an answer for too long the stream is given up.
    pub(super) fn stalled(&mut self, at: usize, now: Instant) {
        let link = &mut self.links[at];
        link.watched = false;
        let Some((sent, _)) = link.order.front() else { return };
        let due = *sent + self.shared.config.request_timeout;
        if due > now {
            link.watched = true;
            self.timers.at(due, Timer::Stall(at));
            return;
        }
        let what = format!("produce stream to {}", link.address);
        self.cut(at, &ClientError::deadline(&what, None));
    }

    fn cut(&mut self, at: usize, error: &ClientError) {
        tracing::debug!(address = %self.links[at].address, %error, "produce stream ended");
        let (sent, waiting) = self.links[at].cut();
        let waiting = waiting.into_iter().filter(|lane| self.seats[*lane].queued == Some(at));
        let mut lanes: Vec<usize> = sent.into_iter().chain(waiting).collect();
        lanes.sort_unstable();
        lanes.dedup();
        for lane in lanes {
            let stale = self.generation_of(lane);
            let seat = &mut self.seats[lane];
            seat.queued = None;
            seat.route = None;
            // The owner may have gone with the stream.
            seat.stale = stale;
            let todo = self.seats[lane].lane.cut(error);
            self.act(lane, &todo);
        }
    }
}
