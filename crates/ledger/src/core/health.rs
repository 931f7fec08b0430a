//! R28: the health of one bookie, judged once per (broker, bookie) and shared by all ledgers.
//!
//! `now` is the time since the client's start on a clock that never goes back.

use std::time::Duration;

use tidemill_types::{BookieState, Incarnation};

/// What the limits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// Away longer than this: change.
    pub change_delay: Duration,
    /// The same after an announced restart.
    pub restart_delay: Duration,
    /// Unacknowledged bytes.
    pub unacked_cap: u64,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self {
            change_delay: Duration::from_secs(5),
            restart_delay: Duration::from_mins(1),
            unacked_cap: 64 << 20,
        }
    }
}

/// What is heard of the bookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A stream was opened and the bookie named itself (R26).
    Connected(Incarnation),
    /// The connection is gone or could not be made.
    Disconnected,
    /// Another uuid or cluster answers at its address.
    WrongIdentity,
    /// `Overloaded`, with the delay that it asked for. Not a reason to change anything.
    Overloaded(Duration),
    /// It refused a plain add for want of room.
    ReadOnly,
    /// It took a plain add.
    Accepted,
    /// What the quorum says; `None`: it does not know the uuid any more.
    Member {
        /// State of the uuid.
        state: Option<BookieState>,
        /// A restart was announced.
        restarting: bool,
    },
    /// All bytes that it has not acknowledged, over all ledgers of this broker.
    Unacknowledged(u64),
}

/// Why its ledgers should change their ensembles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Declared lost.
    Lost,
    /// Retired, or unknown to the quorum.
    Retired,
    /// Takes no plain adds.
    ReadOnly,
    /// Being emptied: its open ledgers roll.
    Draining,
    /// Another bookie answers in its place.
    OtherIdentity,
    /// Away longer than the delay.
    Away,
    /// Its unacknowledged bytes passed the cap.
    Backlog,
}

/// The judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Reachable.
    Healthy,
    /// Reachable; asked for patience until then.
    Overloaded(Duration),
    /// Not reachable since then, not long enough for a change.
    Away(Duration),
    /// Replace it.
    Change(Reason),
}

/// The health of one bookie.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    config: HealthConfig,
    connected: Option<Incarnation>,
    away_since: Option<Duration>,
    wrong_identity: bool,
    read_only: bool,
    overloaded_until: Option<Duration>,
    state: Option<BookieState>,
    restarting: bool,
    unacked: u64,
}

impl Health {
    /// A bookie that is not connected yet; it counts as away from now on.
    #[must_use]
    pub fn new(config: HealthConfig, now: Duration) -> Self {
        Self {
            config,
            connected: None,
            away_since: Some(now),
            wrong_identity: false,
            read_only: false,
            overloaded_until: None,
            state: Some(BookieState::Rw),
            restarting: false,
            unacked: 0,
        }
    }

    /// One step.
    pub fn step(&mut self, input: Input, now: Duration) {
        match input {
            Input::Connected(incarnation) => {
                self.connected = Some(incarnation);
                self.away_since = None;
                self.wrong_identity = false;
                self.read_only = false;
            }
            Input::Disconnected => {
                self.connected = None;
                self.away_since.get_or_insert(now);
            }
            Input::WrongIdentity => {
                self.connected = None;
                self.away_since.get_or_insert(now);
                self.wrong_identity = true;
            }
            Input::Overloaded(delay) => self.overloaded_until = Some(now + delay),
            Input::ReadOnly => self.read_only = true,
            Input::Accepted => self.read_only = false,
            Input::Member { state, restarting } => {
                if state == Some(BookieState::Rw) && self.state == Some(BookieState::Ro) {
                    self.read_only = false;
                }
                self.state = state;
                self.restarting = restarting;
            }
            Input::Unacknowledged(bytes) => self.unacked = bytes,
        }
    }

    /// The judgement as of now.
    #[must_use]
    pub fn verdict(&self, now: Duration) -> Verdict {
        match self.state {
            Some(BookieState::Lost) => return Verdict::Change(Reason::Lost),
            Some(BookieState::Retired) | None => return Verdict::Change(Reason::Retired),
            Some(BookieState::Ro) => return Verdict::Change(Reason::ReadOnly),
            Some(BookieState::Draining) => return Verdict::Change(Reason::Draining),
            Some(BookieState::Rw | BookieState::Limbo) => {}
        }
        if self.unacked > self.config.unacked_cap {
            return Verdict::Change(Reason::Backlog);
        }
        if self.read_only {
            return Verdict::Change(Reason::ReadOnly);
        }
        if let Some(since) = self.away_since {
            let delay = if self.restarting { self.config.restart_delay } else { self.config.change_delay };
            if now.saturating_sub(since) >= delay {
                let other = self.wrong_identity;
                return Verdict::Change(if other { Reason::OtherIdentity } else { Reason::Away });
            }
            return Verdict::Away(since);
        }
        match self.overloaded_until {
            Some(until) if until > now => Verdict::Overloaded(until),
            _ => Verdict::Healthy,
        }
    }

    /// The process that the live connection reaches.
    #[must_use]
    pub fn connected(&self) -> Option<Incarnation> {
        self.connected
    }

    /// Unacknowledged bytes.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.unacked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn connected() -> Health {
        let mut h = Health::new(HealthConfig::default(), at(0));
        h.step(Input::Connected(Incarnation(1)), at(10));
        h
    }

    #[test]
    fn overload_is_never_a_reason() {
        let mut h = connected();
        for i in 0..10_000 {
            h.step(Input::Overloaded(at(100)), at(10 * i));
            assert!(!matches!(h.verdict(at(10 * i)), Verdict::Change(_)));
        }
    }

    #[test]
    fn away_counts_from_the_first_loss_and_a_restart_gets_longer() {
        let mut h = connected();
        h.step(Input::Disconnected, at(1_000));
        h.step(Input::Disconnected, at(4_000));
        assert_eq!(h.verdict(at(5_999)), Verdict::Away(at(1_000)));
        assert_eq!(h.verdict(at(6_000)), Verdict::Change(Reason::Away));
        h.step(Input::Member { state: Some(BookieState::Rw), restarting: true }, at(6_000));
        assert_eq!(h.verdict(at(60_999)), Verdict::Away(at(1_000)));
        assert_eq!(h.verdict(at(61_000)), Verdict::Change(Reason::Away));
        h.step(Input::Connected(Incarnation(2)), at(61_000));
        assert_eq!(h.verdict(at(61_000)), Verdict::Healthy);
    }

    #[test]
    fn a_silent_disk_changes_nothing_before_the_cap() {
        let mut h = connected();
        h.step(Input::Unacknowledged(64 << 20), at(2_000));
        assert_eq!(h.verdict(at(2_000)), Verdict::Healthy);
        h.step(Input::Unacknowledged((64 << 20) + 1), at(2_000));
        assert_eq!(h.verdict(at(2_000)), Verdict::Change(Reason::Backlog));
    }

    #[test]
    fn states_of_the_quorum_count_at_once() {
        for (state, reason) in [
            (Some(BookieState::Lost), Reason::Lost),
            (Some(BookieState::Retired), Reason::Retired),
            (None, Reason::Retired),
            (Some(BookieState::Ro), Reason::ReadOnly),
            (Some(BookieState::Draining), Reason::Draining),
        ] {
            let mut h = connected();
            h.step(Input::Member { state, restarting: false }, at(20));
            assert_eq!(h.verdict(at(20)), Verdict::Change(reason));
        }
    }

    #[test]
    fn another_uuid_at_the_address_is_a_reason_after_the_delay() {
        let mut h = connected();
        h.step(Input::WrongIdentity, at(100));
        assert_eq!(h.verdict(at(200)), Verdict::Away(at(100)));
        assert_eq!(h.verdict(at(5_100)), Verdict::Change(Reason::OtherIdentity));
    }
}
