//! Clocks as values: production reads the kernel's, tests and simulation turn them by hand.

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// A monotonic clock and a wall clock.
pub trait Clock: Send + Sync + Debug + 'static {
    /// Time since boot, suspended time included (CLOCK_BOOTTIME); never goes back.
    fn boottime(&self) -> Duration;
    /// Wall time, ms since the Unix epoch (CLOCK_REALTIME); may jump.
    fn realtime_ms(&self) -> i64;
}

/// The kernel's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn boottime(&self) -> Duration {
        let t = clock_gettime(ClockId::Boottime);
        Duration::new(u64::try_from(t.tv_sec).unwrap_or(0), u32::try_from(t.tv_nsec).unwrap_or(0))
    }

    fn realtime_ms(&self) -> i64 {
        let t = clock_gettime(ClockId::Realtime);
        t.tv_sec.saturating_mul(1000).saturating_add(t.tv_nsec / 1_000_000)
    }
}

/// Clocks that stand still until they are moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    boot_ns: AtomicU64,
    real_ms: AtomicI64,
}

impl ManualClock {
    /// Starts at boot time 0 and this wall time.
    #[must_use]
    pub fn new(real_ms: i64) -> Arc<Self> {
        Arc::new(Self { boot_ns: AtomicU64::new(0), real_ms: AtomicI64::new(real_ms) })
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        self.boot_ns.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
        self.real_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Moves the wall clock alone, back as well.
    pub fn jump_wall(&self, by_ms: i64) {
        self.real_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn boottime(&self) -> Duration {
        Duration::from_nanos(self.boot_ns.load(Ordering::SeqCst))
    }

    fn realtime_ms(&self) -> i64 {
        self.real_ms.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_moves_forward_and_manual_only_by_hand() {
        let a = SystemClock.boottime();
        assert!(SystemClock.boottime() >= a);
        assert!(SystemClock.realtime_ms() > 1_700_000_000_000);
        let m = ManualClock::new(5);
        m.advance(Duration::from_millis(7));
        m.jump_wall(-3);
        assert_eq!((m.boottime(), m.realtime_ms()), (Duration::from_millis(7), 9));
    }
}
