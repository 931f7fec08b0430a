//! Quorum time between ticks.

use std::time::Duration;

/// Quorum time as an answer to a renewal named it, and when it was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumTime {
    /// Quorum time when the answer was made, ms since the Unix epoch.
    pub wall_ms: i64,
    /// CLOCK_BOOTTIME when this value was heard first.
    pub heard_at: Duration,
}

impl QuorumTime {
    /// That plus the own time since (metadata, Time).
    #[must_use]
    pub fn at(&self, boottime: Duration) -> i64 {
        let passed = boottime.saturating_sub(self.heard_at).as_millis();
        self.wall_ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}
