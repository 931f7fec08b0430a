//! Quorum time that has surely passed: what may delete something by time waits for it (metadata, Time). Pure.
//!
//! A time is confirmed by two ticks at or past it, [`ConfirmedTime::settle`] apart, with no jump between. So one wrong clock,
//! or a cluster that was switched off for days, deletes nothing before a person could see it.

use std::{collections::VecDeque, time::Duration};

/// Ticks that are remembered: one in each so many parts of the time to settle.
const PARTS: u32 = 32;

/// What is known of quorum time since its last jump.
#[derive(Clone, Debug)]
pub struct ConfirmedTime {
    settle: Duration,
    /// Quorum time of the last jump.
    jumped_ms: Option<i64>,
    /// Quorum time and own boot time when it was heard first, oldest first.
    ticks: VecDeque<(i64, Duration)>,
    confirmed_ms: Option<i64>,
}

impl ConfirmedTime {
    /// `settle`: how far two ticks must be apart.
    #[must_use]
    pub fn new(settle: Duration) -> Self {
        Self { settle, jumped_ms: None, ticks: VecDeque::new(), confirmed_ms: None }
    }

    /// How far two ticks must be apart.
    #[must_use]
    pub fn settle(&self) -> Duration {
        self.settle
    }

    /// The last tick and the last jump, as heard now.
    pub fn heard(&mut self, wall_ms: i64, jumped_ms: i64, now: Duration) {
        if self.jumped_ms != Some(jumped_ms) || self.ticks.back().is_some_and(|t| t.0 > wall_ms) {
            self.jumped_ms = Some(jumped_ms);
            self.ticks.clear();
        }
        // Time that does not pass confirms nothing: it stands still while the clocks are behind it.
        let half = i64::try_from(self.settle.as_millis() / 2).unwrap_or(i64::MAX);
        while let Some((wall, at)) = self.ticks.front().copied() {
            if now.saturating_sub(at) < self.settle || wall_ms.saturating_sub(wall) < half.max(1) {
                break;
            }
            self.confirmed_ms = Some(self.confirmed_ms.map_or(wall, |c| c.max(wall)));
            self.ticks.pop_front();
        }
        let due = self.ticks.back().is_none_or(|t| now.saturating_sub(t.1) >= self.settle / PARTS);
        if due && self.ticks.back().is_none_or(|t| t.0 < wall_ms) {
            self.ticks.push_back((wall_ms, now));
        }
    }

    /// The newest time that has surely passed, ms since the Unix epoch.
    #[must_use]
    pub fn time_ms(&self) -> Option<i64> {
        self.confirmed_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLE: Duration = Duration::from_mins(10);

    fn at(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    /// A tick each ten seconds, from `from` up to `to` seconds, `ahead` ms before the true time.
    fn run(c: &mut ConfirmedTime, from: u64, to: u64, ahead: i64, jumped: i64) {
        for s in (from..=to).step_by(10) {
            c.heard(i64::try_from(s).unwrap() * 1_000 + ahead, jumped, at(s));
        }
    }

    #[test]
    fn a_time_is_confirmed_by_a_second_tick_ten_minutes_later() {
        let mut c = ConfirmedTime::new(SETTLE);
        run(&mut c, 0, 590, 0, 0);
        assert_eq!(c.time_ms(), None);
        run(&mut c, 600, 600, 0, 0);
        assert_eq!(c.time_ms(), Some(0));
        run(&mut c, 610, 3_600, 0, 0);
        let confirmed = c.time_ms().unwrap();
        assert!((2_970_000..=3_000_000).contains(&confirmed), "ten minutes behind, in steps: {confirmed}");
    }

    #[test]
    fn a_jump_begins_anew_and_takes_nothing_back() {
        let mut c = ConfirmedTime::new(SETTLE);
        run(&mut c, 0, 1_200, 0, 0);
        let before = c.time_ms().unwrap();
        // One wrong clock, a year ahead, for five minutes; then the right time again.
        let year = 365 * 86_400_000;
        run(&mut c, 1_210, 1_500, year, 1_210_000 + year);
        assert_eq!(c.time_ms(), Some(before));
        // The state's time never goes back, so it stands still for a year: nothing is confirmed by that.
        for s in (1_510..9_000).step_by(10) {
            c.heard(1_500_000 + year, 1_500_000 + year, at(s));
        }
        assert_eq!(c.time_ms(), Some(before));
    }

    #[test]
    fn memory_is_bounded() {
        let mut c = ConfirmedTime::new(SETTLE);
        for ms in 0..2_000_000u64 {
            c.heard(i64::try_from(ms).unwrap(), 0, Duration::from_millis(ms));
        }
        assert!(c.ticks.len() <= PARTS as usize + 2, "{}", c.ticks.len());
    }
}
