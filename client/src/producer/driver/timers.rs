//! All timers of a driver in one heap. A timer that is no longer wanted fires and does nothing.

use std::{cmp::Reverse, collections::BinaryHeap};

use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The open batch of a lane has waited long enough.
    Linger(usize),
    /// The first batch of a lane is out of time.
    Deadline(usize),
    /// A lane tries again.
    Retry(usize),
    /// A lane asks for a producer id again.
    Identity(usize),
    /// The oldest frame of a link has no answer.
    Stall(usize),
}

#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, Timer)>>);

impl Timers {
    pub(super) fn at(&mut self, when: Instant, timer: Timer) {
        self.0.push(Reverse((when, timer)));
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((when, _))| *when)
    }

    /// A timer that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, timer))| timer)
    }
}
