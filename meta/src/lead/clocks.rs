//! Quorum time: the median of the members' clocks (metadata, Time). Pure.

use std::{collections::BTreeMap, time::Duration};

use tidemill_types::MemberId;

/// Clocks that were heard longer ago do not count.
const FRESH: Duration = Duration::from_secs(30);

/// Clocks as heard with renewals, and the last tick of this term.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    heard: BTreeMap<MemberId, (i64, Duration)>,
    last: Option<(i64, Duration)>,
}

/// A tick to be proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(crate) wall_ms: i64,
    pub(crate) jump: bool,
}

impl Clocks {
    /// A member's wall clock, heard at this moment of the own monotonic clock.
    pub(crate) fn heard(&mut self, member: MemberId, wall_ms: i64, now: Duration) {
        self.heard.insert(member, (wall_ms, now));
    }

    /// A new term: its first tick is a jump.
    pub(crate) fn restart(&mut self) {
        self.last = None;
    }

    /// The next tick. `own` is the own wall clock.
    pub(crate) fn tick(&mut self, own: i64, now: Duration) -> Tick {
        self.heard.retain(|_, (_, at)| now.saturating_sub(*at) <= FRESH);
        let mut clocks: Vec<i64> = self
            .heard
            .values()
            .map(|(wall, at)| wall.saturating_add(millis(now.saturating_sub(*at))))
            .chain([own])
            .collect();
        clocks.sort_unstable();
        // The lower of the two in the middle: one wrong clock of two must not pull time forward.
        let wall_ms = clocks.get((clocks.len() - 1) / 2).copied().unwrap_or(own).max(0);
        let jump = self.last.is_none_or(|(wall, at)| {
            wall_ms.saturating_sub(wall).saturating_abs() > 2 * millis(now.saturating_sub(at))
        });
        self.last = Some((wall_ms, now));
        Tick { wall_ms, jump }
    }
}

fn millis(d: Duration) -> i64 {
    i64::try_from(d.as_millis()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn member(i: u128) -> MemberId {
        MemberId(uuid::Uuid::from_u128(i))
    }

    #[test]
    fn one_wrong_clock_moves_nothing() {
        let mut c = Clocks::default();
        assert_eq!(
            c.tick(1_000, s(0)),
            Tick { wall_ms: 1_000, jump: true },
            "the first of a leader is a jump"
        );
        c.heard(member(1), 10_900, s(10));
        c.heard(member(2), 9_000_000_000, s(10));
        assert_eq!(c.tick(11_000, s(10)), Tick { wall_ms: 11_000, jump: false });
        c.heard(member(1), 9_000_000_000, s(20));
        assert_eq!(c.tick(21_000, s(20)), Tick { wall_ms: 9_000_000_000, jump: true });
        assert_eq!(c.tick(61_000, s(60)), Tick { wall_ms: 61_000, jump: true }, "old ones do not count");
        c.restart();
        assert!(c.tick(71_000, s(70)).jump);
    }
}
