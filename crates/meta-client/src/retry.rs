//! Waiting between tries: doubling, capped, with full jitter so that many clients do not come back at once.

use std::time::Duration;

use rand::RngExt;
use tokio::time::Instant;

/// First pause.
const FIRST: Duration = Duration::from_millis(10);
/// Longest pause.
const LONGEST: Duration = Duration::from_millis(500);

/// The pauses of one call, and its deadline.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    deadline: Instant,
}

impl Backoff {
    pub(crate) fn new(give_up_after: Duration) -> Self {
        Self { next: FIRST, deadline: Instant::now() + give_up_after }
    }

    /// What is left of the call's time; `None` when it is over.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())
    }

    /// Sleeps; false when the time is over.
    pub(crate) async fn pause(&mut self) -> bool {
        self.pause_at_least(Duration::ZERO).await
    }

    /// Sleeps at least `floor` (a server's retry hint); false when the time is over.
    pub(crate) async fn pause_at_least(&mut self, floor: Duration) -> bool {
        let Some(left) = self.left() else { return false };
        let jitter = self.next.mul_f64(rand::rng().random_range(0.5..=1.0));
        self.next = (self.next * 2).min(LONGEST);
        tokio::time::sleep(jitter.max(floor).min(left)).await;
        self.left().is_some()
    }
}
