//! Waiting between tries: exponential with jitter, so that many clients do not come back at once.

use std::time::Duration;

/// Bounds of the wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

impl Backoff {
    /// The wait before try `attempt` (the first retry is 0): between half and the whole of `min * 2^attempt`, at most
    /// `max`.
    pub(crate) fn wait(self, attempt: u32) -> Duration {
        let full = self.min.saturating_mul(1 << attempt.min(16)).min(self.max);
        full.mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_the_maximum_and_no_further() {
        let b = Backoff { min: Duration::from_millis(10), max: Duration::from_millis(100) };
        for attempt in 0..40 {
            let full = Duration::from_millis(10 << attempt.min(8)).min(b.max);
            let w = b.wait(attempt);
            assert!(w >= full / 2 && w <= full, "{attempt}: {w:?}");
        }
    }
}
