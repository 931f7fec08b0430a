//! Latencies of many records.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;
use tidemill_client::ErrorCode;

use crate::error::CliError;

/// Digits that a latency is kept with.
const DIGITS: u8 = 3;

/// Length of a slot of the series.
pub(super) const SLOT: Duration = Duration::from_millis(100);
/// Most slots that are kept apart: what comes later counts in the last one.
const SLOTS: usize = 36_000;

/// Latencies in microseconds, and when they came.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    histogram: Histogram<u64>,
    begin: Instant,
    /// Records and longest latency by when they were done, [`SLOT`] after [`SLOT`] from the beginning.
    slots: Vec<Slot>,
    pub(super) last: Option<Instant>,
    /// Why the first record that failed did.
    pub(super) first_failure: Option<String>,
}

/// What was done within a [`SLOT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) records: u64,
    pub(super) longest_us: u64,
}

impl Tally {
    /// Of a run that begins at `begin`.
    pub(super) fn new(begin: Instant) -> Result<Self, CliError> {
        let histogram = Histogram::new(DIGITS).map_err(|e| internal(&e.to_string()))?;
        Ok(Self { histogram, begin, slots: Vec::new(), last: None, first_failure: None })
    }

    /// A record that was due at `due` is done at `now`.
    pub(super) fn record(&mut self, due: Instant, now: Instant) {
        let us = u64::try_from(now.saturating_duration_since(due).as_micros()).unwrap_or(u64::MAX);
        // The histogram grows by itself; what it cannot hold counts as its largest value.
        if self.histogram.record(us).is_err() {
            self.histogram.saturating_record(us);
        }
        self.last = Some(now);
        let slot = now.saturating_duration_since(self.begin).as_micros() / SLOT.as_micros();
        let slot = usize::try_from(slot).map_or(SLOTS - 1, |s| s.min(SLOTS - 1));
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Slot::default());
        }
        let slot = &mut self.slots[slot];
        slot.records += 1;
        slot.longest_us = slot.longest_us.max(us);
    }

    /// What was done when.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn add(&mut self, other: Self) -> Result<(), CliError> {
        self.histogram.add(&other.histogram).map_err(|e| internal(&e.to_string()))?;
        self.last = self.last.max(other.last);
        if self.slots.len() < other.slots.len() {
            self.slots.resize(other.slots.len(), Slot::default());
        }
        for (mine, theirs) in self.slots.iter_mut().zip(&other.slots) {
            mine.records += theirs.records;
            mine.longest_us = mine.longest_us.max(theirs.longest_us);
        }
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
        let (mut a, mut b) = (Tally::new(begin).unwrap(), Tally::new(begin).unwrap());
        assert_eq!(a.latency(), None);
        for us in 1..=1_000u64 {
            let t = if us % 2 == 0 { &mut a } else { &mut b };
            t.record(begin, begin + Duration::from_micros(us));
        }
        a.add(b).unwrap();
        let want = Latency { p50: 500, p90: 900, p99: 990, p999: 999, max: 1_000 };
        assert_eq!((a.count(), a.latency()), (1_000, Some(want)));
        assert_eq!(a.slots(), [Slot { records: 1_000, longest_us: 1_000 }]);
        assert_eq!(a.last, Some(begin + Duration::from_micros(1_000)));
        assert_eq!(want.to_string(), "p50 0.50 ms, p90 0.90 ms, p99 0.99 ms, p99.9 1.00 ms, max 1.00 ms");
    }

    #[test]
    fn a_stall_shows_in_all_records_that_were_due_meanwhile() {
        // A record is due each ms; everything is answered at once after a stall of 100 ms.
        let begin = Instant::now();
        let mut t = Tally::new(begin).unwrap();
        for ms in 0..100 {
            t.record(begin + Duration::from_millis(ms), begin + Duration::from_millis(100));
        }
        assert_eq!(t.slots(), [Slot::default(), Slot { records: 100, longest_us: 100_000 }]);
        let p50 = t.latency().unwrap().p50;
        assert!((50_000..=51_200).contains(&p50), "{p50}");
    }
}
