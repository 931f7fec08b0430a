//! What a status says of a group, and how seldom: nothing in it moves with every record or every rebalance (rule 3).

use super::{AssignmentStatus, ConsumerGroupStatus, LastReset};
use crate::plan::GroupSeen;

/// A value is shown anew when it has been another one for so long, ms.
pub const STEADY_MS: u64 = 60_000;
/// Members and what they read are written at most so often, ms.
pub const REPORT_MS: u64 = 30_000;
/// Members whose partitions a status lists.
const MAX_MEMBERS: usize = 100;
/// Partitions that it lists in all.
const MAX_PARTITIONS: usize = 1_000;

/// How far behind a group is, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LagBucket {
    /// Nothing.
    Zero,
    /// Below a thousand records.
    Thousand,
    /// Below a hundred thousand.
    HundredThousand,
    /// More.
    More,
}

impl LagBucket {
    /// Of so many records.
    #[must_use]
    pub fn of(lag: u64) -> Self {
        match lag {
            0 => Self::Zero,
            1..1_000 => Self::Thousand,
            1_000..100_000 => Self::HundredThousand,
            _ => Self::More,
        }
    }

    /// As in a status.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Zero => "0",
            Self::Thousand => "<1k",
            Self::HundredThousand => "<100k",
            Self::More => ">=100k",
        }
    }

    /// From a status.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Zero, Self::Thousand, Self::HundredThousand, Self::More].into_iter().find(|b| b.text() == text)
    }
}

/// A value with hysteresis: a new one is shown only after it was seen, and no other, for [`STEADY_MS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steady<T> {
    shown: Option<T>,
    candidate: Option<(T, u64)>,
}

impl<T: Copy + PartialEq> Steady<T> {
    /// Beginning with what was shown last, if anything was.
    #[must_use]
    pub fn new(shown: Option<T>) -> Self {
        Self { shown, candidate: None }
    }

    /// What is to be shown at this time, having seen `fresh`; not known (`None`) changes nothing.
    pub fn step(&mut self, now_ms: u64, fresh: Option<T>) -> Option<T> {
        match (fresh, self.shown, self.candidate) {
            (None, ..) => {}
            (Some(f), None, _) => (self.shown, self.candidate) = (Some(f), None),
            (Some(f), Some(shown), _) if f == shown => self.candidate = None,
            (Some(f), _, Some((c, since))) if c == f => {
                if now_ms.saturating_sub(since) >= STEADY_MS {
                    (self.shown, self.candidate) = (Some(f), None);
                }
            }
            (Some(f), ..) => self.candidate = Some((f, now_ms)),
        }
        self.shown
    }
}

/// What is remembered of one object between two looks. After a restart it begins with what stands in the status.
#[derive(Clone, Debug)]
pub struct GroupMemory {
    bucket: Steady<LagBucket>,
    /// The limit, and whether the lag is above it.
    limit: Option<(i64, Steady<bool>)>,
    told_ms: Option<u64>,
}

impl GroupMemory {
    /// From the status that was written last.
    #[must_use]
    pub fn new(status: &ConsumerGroupStatus) -> Self {
        let bucket = Steady::new(status.lag_bucket.as_deref().and_then(LagBucket::parse));
        Self { bucket, limit: None, told_ms: None }
    }

    /// Takes a look at the lag: whether the group is steadily behind `max`, if there is such a limit.
    pub fn look(&mut self, now_ms: u64, lag: Option<u64>, max: Option<i64>) -> Option<bool> {
        self.bucket.step(now_ms, lag.map(LagBucket::of));
        let Some(max) = max else {
            self.limit = None;
            return None;
        };
        // Another limit is another question.
        if self.limit.as_ref().is_none_or(|(old, _)| *old != max) {
            self.limit = Some((max, Steady::new(None)));
        }
        let behind = lag.map(|lag| i64::try_from(lag).unwrap_or(i64::MAX) > max);
        self.limit.as_mut().and_then(|(_, s)| s.step(now_ms, behind))
    }

    /// Brings a status to what was seen. State, members and their partitions change at most once in [`REPORT_MS`]; true when
    /// some of that has to wait.
    pub fn report(&mut self, now_ms: u64, seen: &GroupSeen, status: &mut ConsumerGroupStatus) -> bool {
        status.lag_bucket = self.bucket.shown.map(|b| b.text().to_owned());
        status.last_reset = seen.resets.last().map(|(id, to)| LastReset { id: id.clone(), to: to.clone() });
        let fresh = (
            Some(shown_state(&seen.state).to_owned()),
            Some(i32::try_from(seen.members).unwrap_or(i32::MAX)),
            assignments(seen),
        );
        let told = (status.state.clone(), status.members, status.assignments.clone());
        if fresh == told {
            return false;
        }
        if self.told_ms.is_some_and(|at| now_ms.saturating_sub(at) < REPORT_MS) {
            return true;
        }
        self.told_ms = Some(now_ms);
        (status.state, status.members, status.assignments) = fresh;
        false
    }
}

fn shown_state(state: &str) -> &str {
    match state {
        "stable" => "Stable",
        "rebalancing" => "Rebalancing",
        _ => "Empty",
    }
}

fn assignments(seen: &GroupSeen) -> Vec<AssignmentStatus> {
    let mut room = MAX_PARTITIONS;
    let of = |(member, parts): (&String, &std::collections::BTreeSet<(String, u32)>)| {
        let partitions: Vec<String> = parts.iter().take(room).map(|(t, p)| format!("{t}/{p}")).collect();
        room -= partitions.len();
        AssignmentStatus { member: member.clone(), partitions }
    };
    seen.assignments.iter().take(MAX_MEMBERS).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets() {
        for (lag, text) in
            [(0, "0"), (1, "<1k"), (999, "<1k"), (1_000, "<100k"), (99_999, "<100k"), (100_000, ">=100k")]
        {
            assert_eq!(LagBucket::of(lag).text(), text);
            assert_eq!(LagBucket::parse(text), Some(LagBucket::of(lag)));
        }
        assert_eq!(LagBucket::parse("5"), None);
    }

    #[test]
    fn a_value_is_shown_when_it_stays() {
        let mut s = Steady::new(None);
        assert_eq!(s.step(0, Some(1)), Some(1), "the first at once");
        assert_eq!(s.step(1_000, Some(2)), Some(1));
        assert_eq!(s.step(60_999, Some(2)), Some(1));
        assert_eq!(s.step(61_000, Some(2)), Some(2));
        // To and fro: never.
        for t in 0..1_000 {
            assert_eq!(s.step(70_000 + t * 30_000, Some(if t % 2 == 0 { 3 } else { 2 })), Some(2));
        }
        assert_eq!(s.step(90_000_000, None), Some(2), "not known is no news");
    }

    #[test]
    fn rule_3_members_that_come_and_go_are_told_seldom() {
        let mut status = ConsumerGroupStatus::default();
        let mut memory = GroupMemory::new(&status);
        let seen = |members| GroupSeen { members, state: "stable".into(), ..GroupSeen::default() };
        let mut writes = 0;
        for second in 0..600u64 {
            let before = status.clone();
            memory.look(second * 1_000, Some(second % 2 * 5_000), None);
            memory.report(second * 1_000, &seen(u32::try_from(second % 7).unwrap()), &mut status);
            writes += u32::from(before != status);
        }
        assert!((2..=21).contains(&writes), "{writes} writes in 10 minutes");
        assert!(memory.report(600_000 - 1, &seen(99), &mut status), "it waits");
    }

    #[test]
    fn a_restart_goes_on_with_what_was_shown() {
        let status = ConsumerGroupStatus { lag_bucket: Some("<1k".into()), ..ConsumerGroupStatus::default() };
        let mut memory = GroupMemory::new(&status);
        let mut new = status.clone();
        memory.look(5, Some(0), None);
        memory.report(5, &GroupSeen::default(), &mut new);
        assert_eq!(new.lag_bucket, status.lag_bucket);
        // A limit that was changed is judged anew.
        assert_eq!(memory.look(6, Some(50), Some(10)), Some(true));
        assert_eq!(memory.look(7, Some(5), Some(10)), Some(true));
        assert_eq!(memory.look(8, Some(5), Some(9)), Some(false));
    }

    #[test]
    fn a_status_stays_small() {
        let mut seen = GroupSeen::default();
        for m in 0..500u32 {
            let parts = (0..100).map(|p| ("t".to_owned(), p)).collect();
            seen.assignments.insert(format!("m{m:03}"), parts);
        }
        let list = assignments(&seen);
        assert_eq!(list.len(), MAX_MEMBERS);
        assert_eq!(list.iter().map(|a| a.partitions.len()).sum::<usize>(), MAX_PARTITIONS);
    }
}
