//! When each record of a given rate is due. What comes late does not move what is behind it: a stall shows in the
//! latencies of all records that were due meanwhile (no coordinated omission).

use std::{
    num::NonZeroU64,
    time::{Duration, Instant},
};

/// Intended send times of a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    begin: Instant,
    /// Records per second; `None`: each record is due when its turn comes.
    rate: Option<NonZeroU64>,
    /// The first record is number `first` of the whole, the next one `first + step`: senders share one rate.
    first: u64,
    step: u64,
}

impl Pace {
    /// A rate in records per second, 0 for as fast as possible.
    pub(crate) fn new(begin: Instant, rate: u64) -> Self {
        Self { begin, rate: NonZeroU64::new(rate), first: 0, step: 1 }
    }

    /// The part of one of `of` senders, interleaved with the others.
    pub(crate) fn share(self, sender: u64, of: u64) -> Self {
        Self { first: sender, step: of.max(1), ..self }
    }

    /// When record `n` of this sender is due, from the beginning on; `None` without a rate.
    pub(crate) fn due(&self, n: u64) -> Option<Duration> {
        let rate = self.rate?;
        let number = u128::from(self.first) + u128::from(n) * u128::from(self.step);
        let nanos = number * 1_000_000_000 / u128::from(rate.get());
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Waits until record `n` is due and gives its intended send time. Does not wait for what is late.
    pub(crate) async fn wait(&self, n: u64) -> Instant {
        let now = Instant::now();
        let Some(at) = self.due(n).and_then(|d| self.begin.checked_add(d)) else { return now };
        if at > now {
            tokio::time::sleep_until(at.into()).await;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_follow_the_rate_without_drift() {
        let pace = Pace::new(Instant::now(), 3);
        assert_eq!(pace.due(0), Some(Duration::ZERO));
        assert_eq!(pace.due(3_000_000), Some(Duration::from_secs(1_000_000)));
        assert_eq!(Pace::new(Instant::now(), 0).due(7), None);
    }

    #[test]
    fn senders_interleave() {
        let whole = Pace::new(Instant::now(), 1_000);
        let shares: Vec<_> = (0..4).map(|s| whole.share(s, 4)).collect();
        let due: Vec<_> = (0..3).flat_map(|n| shares.iter().map(move |s| s.due(n))).collect();
        assert_eq!(due, (0..12).map(|n| whole.due(n)).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_record_keeps_its_intended_time() {
        let begin = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let pace = Pace::new(begin, 10);
        assert_eq!(pace.wait(5).await, begin + Duration::from_millis(500));
    }
}
