//! How long reads take: an estimate of the 95th percentile, kept in one number.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Microseconds by which the estimate falls with a faster answer; it rises by 19 times as much with a slower one, so that it
/// rests where one answer in twenty is slower.
const STEP: u64 = 50;
/// Above this a reader does not wait for speculation in any case.
const MOST: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct ReadTimes {
    p95_us: AtomicU64,
}

impl ReadTimes {
    /// A first replica answered after so long, or had not yet.
    pub(crate) fn answered(&self, after: Duration) {
        let us = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        let now = self.p95_us.load(Ordering::Relaxed);
        let next = if us > now { (now + 19 * STEP).min(MOST) } else { now.saturating_sub(STEP) };
        // A lost update is one sample less.
        self.p95_us.store(next, Ordering::Relaxed);
    }

    /// When a second replica is asked: after the estimate, at least `least`.
    pub(crate) fn slow(&self, least: Duration) -> Duration {
        least.max(Duration::from_micros(self.p95_us.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_near_the_95th_percentile() {
        let t = ReadTimes::default();
        for n in 0..200_000u64 {
            // 1..=100 ms in a scattered order.
            t.answered(Duration::from_millis(n * 37 % 100 + 1));
        }
        let p = t.slow(Duration::ZERO).as_millis();
        assert!((90..=100).contains(&p), "{p} ms");
        assert_eq!(ReadTimes::default().slow(Duration::from_millis(10)), Duration::from_millis(10));
    }
}
