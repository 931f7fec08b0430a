//! The clocks of a simulated host: its own rate, its own wall time, and they can stand still.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_runtime::Clock;

/// Wall time at the start of every run, ms since the Unix epoch.
const BEGIN_MS: i64 = 1_800_000_000_000;
/// Boot time at the start of every run: every machine has run for a while.
const BOOTED: Duration = Duration::from_secs(1_000);

/// The clocks of one host. Clones share them; they survive crashes of processes.
#[derive(Clone, Debug, Default)]
pub struct HostClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Simulated time at the last change, and what the boot clock said then.
    since: Duration,
    base: Duration,
    /// Parts per million by which it runs too fast.
    ppm: i64,
    frozen: bool,
    /// Wall time is ahead by this, ms.
    ahead_ms: i64,
}

impl State {
    fn boottime(&self) -> Duration {
        if self.frozen {
            return self.base;
        }
        let passed = crate::now().saturating_sub(self.since);
        let ns = i128::try_from(passed.as_nanos()).unwrap_or(i128::MAX);
        let own = ns + ns * i128::from(self.ppm) / 1_000_000;
        self.base + Duration::from_nanos(u64::try_from(own).unwrap_or(0))
    }

    fn change(&mut self, f: impl FnOnce(&mut Self)) {
        self.base = self.boottime();
        self.since = crate::now();
        f(self);
    }
}

impl HostClock {
    /// From now on it runs by so many parts per million too fast.
    pub fn skew(&self, ppm: i64) {
        self.0.lock().change(|s| s.ppm = ppm);
    }

    /// Stands still from now on, as for a process that is paused, or runs again.
    pub fn freeze(&self, frozen: bool) {
        self.0.lock().change(|s| s.frozen = frozen);
    }

    /// Time that passed while it stood still is there at once, as when a paused process wakes up.
    pub fn thaw(&self, slept: Duration) {
        self.0.lock().change(|s| {
            s.frozen = false;
            s.base += slept;
        });
    }

    /// Sets the wall clock forward or back.
    pub fn jump(&self, by_ms: i64) {
        self.0.lock().ahead_ms += by_ms;
    }

    /// Right again.
    pub fn heal(&self) {
        self.0.lock().change(|s| {
            s.ppm = 0;
            s.frozen = false;
            s.ahead_ms = 0;
        });
    }
}

impl Clock for HostClock {
    fn boottime(&self) -> Duration {
        BOOTED + self.0.lock().boottime()
    }

    fn realtime_ms(&self) -> i64 {
        let s = self.0.lock();
        BEGIN_MS + i64::try_from(s.boottime().as_millis()).unwrap_or(0) + s.ahead_ms
    }
}
