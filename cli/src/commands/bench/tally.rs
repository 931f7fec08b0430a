//! Latencies of many records.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;
use tidemill_client::ErrorCode;

use crate::error::CliError;

/// Digits that a latency is kept with.
const DIGITS: u8 = 3;

/// Latencies in microseconds, and when the last one came.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    histogram: Histogram<u64>,
    pub(super) last: Option<Instant>,
    /// Why the first record that failed did.
    pub(super) first_failure: Option<String>,
}

impl Tally {
    pub(super) fn new() -> Result<Self, CliError> {
        let histogram = Histogram::new(DIGITS).map_err(|e| internal(&e.to_string()))?;
        Ok(Self { histogram, last: None, first_failure: None })
    }

    /// A record that was due at `due` is done at `now`.
    pub(super) fn record(&mut self, due: Instant, now: Instant) {
        let us = u64::try_from(now.saturating_duration_since(due).as_micros()).unwrap_or(u64::MAX);
        // The histogram grows by itself; what it cannot hold counts as its largest value.
        if self.histogram.record(us).is_err() {
            self.histogram.saturating_record(us);
        }
        self.last = Some(now);
    }

    pub(super) fn add(&mut self, other: Self) -> Result<(), CliError> {
        self.histogram.add(&other.histogram).map_err(|e| internal(&e.to_string()))?;
        self.last = self.last.max(other.last);
        self.first_failure = self.first_failure.take().or(other.first_failure);
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// `None` without records.
    pub(super) fn latency(&self) -> Option<Latency> {
        let at = |q| self.histogram.value_at_quantile(q);
        (!self.histogram.is_empty()).then(|| Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.histogram.max(),
        })
    }
}

/// Percentiles in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Latency {
    pub(super) p50: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    #[serde(rename = "p99.9")]
    pub(super) p999: u64,
    pub(super) max: u64,
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |us: u64| Duration::from_micros(us).as_secs_f64() * 1e3;
        write!(
            f,
            "p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms",
            ms(self.p50),
            ms(self.p90),
            ms(self.p99),
            ms(self.p999),
            ms(self.max)
        )
    }
}

fn internal(why: &str) -> CliError {
    CliError::new("histogram", why, ErrorCode::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_distribution() {
        let begin = Instant::now();
        let (mut a, mut b) = (Tally::new().unwrap(), Tally::new().unwrap());
        assert_eq!(a.latency(), None);
        for us in 1..=1_000u64 {
            let t = if us % 2 == 0 { &mut a } else { &mut b };
            t.record(begin, begin + Duration::from_micros(us));
        }
        a.add(b).unwrap();
        let want = Latency { p50: 500, p90: 900, p99: 990, p999: 999, max: 1_000 };
        assert_eq!((a.count(), a.latency()), (1_000, Some(want)));
        assert_eq!(a.last, Some(begin + Duration::from_micros(1_000)));
        assert_eq!(want.to_string(), "p50 0.50 ms, p90 0.90 ms, p99 0.99 ms, p99.9 1.00 ms, max 1.00 ms");
    }

    #[test]
    fn a_stall_shows_in_all_records_that_were_due_meanwhile() {
        // A record is due each ms; everything is answered at once after a stall of 100 ms.
        let begin = Instant::now();
        let mut t = Tally::new().unwrap();
        for ms in 0..100 {
            t.record(begin + Duration::from_millis(ms), begin + Duration::from_millis(100));
        }
        let p50 = t.latency().unwrap().p50;
        assert!((50_000..=51_200).contains(&p50), "{p50}");
    }
}
