//! How much is to be done, and how long it will take. Pure.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tidemill_types::LedgerId;

/// The rate of this much time counts.
const WINDOW: Duration = Duration::from_secs(300);
/// What a ledger counts besides its bytes: calls and commands.
const PER_LEDGER: u64 = 64 << 10;

/// What the auditor saw in its last pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Ledgers with copies to be made or looked for.
    pub(crate) ledgers: u64,
    /// Quorum time at which the oldest of them was seen first, ms; 0 without any.
    pub(crate) oldest_ms: i64,
    /// Payload bytes of the copies, at most.
    pub(crate) bytes: u64,
    /// Repairs under way.
    pub(crate) in_progress: u32,
    /// Until all is done at the rate of the last minutes, ms; 0: nothing to do, -1: not known.
    pub(crate) eta_ms: i64,
    /// Ledgers that nobody can complete now.
    pub(crate) stuck: u64,
}

/// Kept from pass to pass.
#[derive(Debug, Default)]
pub(super) struct Progress {
    since: HashMap<LedgerId, i64>,
    /// Weight that was left at a time.
    left: VecDeque<(Duration, u64)>,
    next: HashMap<LedgerId, i64>,
    report: Report,
}

impl Progress {
    /// A ledger that needs something.
    pub(super) fn needs(&mut self, ledger: LedgerId, bytes: u64, wall_ms: i64) {
        let since = self.since.get(&ledger).copied().unwrap_or(wall_ms);
        self.next.insert(ledger, since);
        self.report.ledgers += 1;
        self.report.bytes += bytes;
        if self.report.oldest_ms == 0 || since < self.report.oldest_ms {
            self.report.oldest_ms = since;
        }
    }

    /// A repair under way.
    pub(super) fn repairing(&mut self) {
        self.report.in_progress += 1;
    }

    /// A ledger that nobody can complete now.
    pub(super) fn stuck(&mut self) {
        self.report.stuck += 1;
    }

    /// Ends a pass.
    pub(super) fn finish(&mut self, now: Duration) -> Report {
        self.since = std::mem::take(&mut self.next);
        let mut report = std::mem::take(&mut self.report);
        let weight = report.bytes + report.ledgers * PER_LEDGER;
        while self.left.front().is_some_and(|(at, _)| now.saturating_sub(*at) > WINDOW) {
            self.left.pop_front();
        }
        if weight == 0 {
            self.left.clear();
        } else {
            // One point a second is enough.
            if self.left.back().is_none_or(|(at, _)| now.saturating_sub(*at) >= Duration::from_secs(1)) {
                self.left.push_back((now, weight));
            }
            report.eta_ms = self.eta(weight, now);
        }
        report
    }

    fn eta(&self, weight: u64, now: Duration) -> i64 {
        // From the highest point on: what came later is new work, not slowness.
        let Some((at, most)) = self.left.iter().copied().max_by_key(|(at, w)| (*w, *at)) else { return -1 };
        let took = u64::try_from(now.saturating_sub(at).as_millis()).unwrap_or(u64::MAX);
        match most.saturating_sub(weight) {
            0 => -1,
            done => {
                let ms = u128::from(weight) * u128::from(took) / u128::from(done);
                i64::try_from(ms).unwrap_or(i64::MAX).max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(p: &mut Progress, ledgers: u64, now: u64) -> Report {
        for l in 0..ledgers {
            p.needs(LedgerId(l), 0, 1_000 + i64::try_from(now).unwrap());
        }
        p.finish(Duration::from_secs(now))
    }

    #[test]
    fn the_rate_of_the_last_minutes_says_how_long() {
        let mut p = Progress::default();
        assert_eq!(pass(&mut p, 10, 0).eta_ms, -1, "nothing is known yet");
        let r = pass(&mut p, 8, 10);
        assert_eq!((r.eta_ms, r.ledgers, r.oldest_ms), (40_000, 8, 1_000));
        assert_eq!(pass(&mut p, 20, 20).eta_ms, -1, "more work came");
        assert_eq!(pass(&mut p, 10, 30).eta_ms, 10_000);
        assert_eq!(pass(&mut p, 0, 40), Report::default());
    }
}
