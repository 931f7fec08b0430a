//! When a session counts as valid. Pure: times come in as values.

use std::time::Duration;

/// Validity after the last answered renewal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    /// CLOCK_BOOTTIME at the sending.
    sent_boot: Duration,
    /// CLOCK_REALTIME at the sending, ms.
    sent_real_ms: i64,
    ttl: Duration,
    revoked: bool,
}

impl Validity {
    /// Never renewed: not valid.
    pub(super) fn none() -> Self {
        Self { sent_boot: Duration::ZERO, sent_real_ms: 0, ttl: Duration::ZERO, revoked: false }
    }

    /// A renewal sent at these times was answered. An answer to an earlier sending changes nothing.
    pub(super) fn renewed(&mut self, sent_boot: Duration, sent_real_ms: i64, ttl: Duration) {
        if self.ttl.is_zero() || sent_boot >= self.sent_boot {
            *self = Self { sent_boot, sent_real_ms, ttl, revoked: self.revoked };
        }
    }

    /// Never valid again.
    pub(super) fn revoke(&mut self) {
        self.revoked = true;
    }

    /// What is left at this moment.
    pub(super) fn left(&self, boot: Duration, real_ms: i64) -> Option<Duration> {
        if self.revoked || self.ttl.is_zero() {
            return None;
        }
        // TTL − 20 %: clock rates differ and this process may pause between the check and the answer that rests on it.
        let validity = self.ttl * 4 / 5;
        let passed = boot.checked_sub(self.sent_boot)?;
        // A suspended virtual machine stops CLOCK_BOOTTIME; its wall clock is set forward when it wakes up.
        let real_passed = real_ms.saturating_sub(self.sent_real_ms);
        let boot_passed = i64::try_from(passed.as_millis()).ok()?;
        let allowed = i64::try_from(self.ttl.as_millis() / 10).ok()?;
        if real_passed.saturating_sub(boot_passed) > allowed {
            return None;
        }
        validity.checked_sub(passed).filter(|d| !d.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_millis(3_000);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn valid_for_eighty_per_cent_of_the_ttl_from_sending() {
        let mut v = Validity::none();
        assert_eq!(v.left(ms(0), 0), None);
        v.renewed(ms(1_000), 50_000, TTL);
        assert_eq!(v.left(ms(1_000), 50_000), Some(ms(2_400)));
        assert_eq!(v.left(ms(3_399), 52_399), Some(ms(1)));
        assert_eq!(v.left(ms(3_400), 52_400), None);
        v.renewed(ms(500), 49_500, TTL);
        assert_eq!(
            v.left(ms(3_399), 52_399),
            Some(ms(1)),
            "a late answer to an early renewal takes nothing away"
        );
    }

    #[test]
    fn invalid_when_the_wall_clock_ran_ahead_or_it_was_revoked() {
        let mut v = Validity::none();
        v.renewed(ms(1_000), 50_000, TTL);
        assert!(v.left(ms(1_100), 50_400).is_some(), "300 ms ahead are allowed");
        assert_eq!(v.left(ms(1_100), 50_401), None);
        assert!(v.left(ms(1_100), 40_000).is_some(), "a wall clock set back hides no pause");
        v.revoke();
        v.renewed(ms(1_100), 50_100, TTL);
        assert_eq!(v.left(ms(1_100), 50_100), None);
    }
}
