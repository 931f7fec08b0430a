//! The assigned partitions: positions, owners, what is buffered.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::time::Instant;

use super::{Event, Start, TopicPartition};

/// Fetches of one broker that may be on their way or buffered.
const PER_BROKER: usize = 2;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) partitions: HashMap<TopicPartition, Part>,
    /// Topics whose new partitions come in by themselves.
    pub(super) followed: Vec<Arc<str>>,
    /// Fetched and not yet polled.
    pub(super) ready: VecDeque<Ready>,
    /// Fetches buffered, by broker.
    pub(super) buffered: HashMap<Arc<str>, usize>,
    pub(super) next_generation: u64,
    /// Partitions take turns in fetches.
    pub(super) turn: u64,
}

/// Events of one fetch.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) broker: Option<Arc<str>>,
    pub(super) events: VecDeque<Staged>,
}

/// An event and what it moves.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) source: TopicPartition,
    /// Of the partition when it was fetched; a seek makes another one.
    pub(super) generation: u64,
    /// The position behind it; `None`: as before.
    pub(super) position: Option<i64>,
    /// `None`: only the position moves.
    pub(super) event: Option<Event>,
}

/// One assigned partition.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) generation: u64,
    /// Where to begin, until it is resolved to an offset.
    pub(super) start: Option<Start>,
    /// The next fetch begins here.
    pub(super) fetch_at: i64,
    /// The next record for the caller; `None` while `start` is open.
    pub(super) position: Option<i64>,
    pub(super) paused: bool,
    /// Waits for a seek.
    pub(super) stopped: bool,
    /// A fetch or a question about it is on its way.
    pub(super) busy: bool,
    pub(super) not_before: Option<Instant>,
    pub(super) attempt: u32,
    /// Since when it has failed.
    pub(super) failing_since: Option<Instant>,
    /// Knowledge of the owner up to this generation proved wrong.
    pub(super) stale: Option<u64>,
    pub(super) turn: u64,
}

impl Part {
    pub(super) fn new(generation: u64, start: Start) -> Self {
        let mut part = Self {
            generation,
            start: None,
            fetch_at: 0,
            position: None,
            paused: false,
            stopped: false,
            busy: false,
            not_before: None,
            attempt: 0,
            failing_since: None,
            stale: None,
            turn: 0,
        };
        part.begin(start);
        part
    }

    /// From here on.
    pub(super) fn begin(&mut self, start: Start) {
        if let Start::Offset(offset) = start {
            self.start = None;
            self.fetch_at = offset;
            self.position = Some(offset);
        } else {
            self.start = Some(start);
            self.position = None;
        }
        self.stopped = false;
        self.busy = false;
        self.not_before = None;
        self.attempt = 0;
        self.failing_since = None;
    }

    /// Whether it can be asked for now.
    pub(super) fn wants(&self, now: Instant) -> bool {
        !self.paused && !self.stopped && !self.busy && self.not_before.is_none_or(|t| t <= now)
    }
}

impl State {
    pub(super) fn generation(&mut self) -> u64 {
        self.next_generation += 1;
        self.next_generation
    }

    /// Whether another fetch of a broker fits the buffer.
    pub(super) fn has_room(&self, broker: &str) -> bool {
        self.buffered.get(broker).copied().unwrap_or(0) < PER_BROKER
    }

    /// The partition, if `generation` is still the one that was asked for.
    pub(super) fn current(&mut self, source: &TopicPartition, generation: u64) -> Option<&mut Part> {
        self.partitions.get_mut(source).filter(|p| p.generation == generation)
    }

    pub(super) fn stage(&mut self, ready: Ready) {
        if ready.events.is_empty() {
            return;
        }
        if let Some(b) = &ready.broker {
            *self.buffered.entry(b.clone()).or_default() += 1;
        }
        self.ready.push_back(ready);
    }

    /// Everything for the caller that is not paused; moves the positions.
    pub(super) fn take(&mut self) -> Vec<Event> {
        let mut out = Vec::new();
        let mut kept = VecDeque::new();
        for mut ready in std::mem::take(&mut self.ready) {
            let mut left = VecDeque::new();
            for staged in ready.events.drain(..) {
                let Some(part) = self.current(&staged.source, staged.generation) else { continue };
                if part.paused {
                    left.push_back(staged);
                    continue;
                }
                part.position = staged.position.or(part.position);
                out.extend(staged.event);
            }
            if left.is_empty() {
                if let Some(n) = ready.broker.as_ref().and_then(|b| self.buffered.get_mut(b)) {
                    *n = n.saturating_sub(1);
                }
            } else {
                // Of paused partitions: they no longer hold up the others of their broker.
                if let Some(n) = ready.broker.take().as_ref().and_then(|b| self.buffered.get_mut(b)) {
                    *n = n.saturating_sub(1);
                }
                ready.events = left;
                kept.push_back(ready);
            }
        }
        self.ready = kept;
        out
    }
}
