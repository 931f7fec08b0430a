//! Which bookies are given up (metadata, Members). Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tidemill_metadata::State;
use tidemill_types::{BookieId, BookieState, Member, MemberRole};

/// Since when bookies have no session, as this leader saw it in its term: later than in truth, which is safe.
#[derive(Debug, Default)]
pub(super) struct Away(BTreeMap<BookieId, Duration>);

impl Away {
    /// Notes who is away now.
    pub(super) fn see(&mut self, state: &State, now: Duration) {
        let away: BTreeSet<BookieId> = state.members().filter(|m| is_away(m)).map(|m| m.id).collect();
        self.0.retain(|b, _| away.contains(b));
        for b in away {
            self.0.entry(b).or_insert(now);
        }
    }

    /// Whether a bookie has been away for so long.
    pub(super) fn longer(&self, bookie: BookieId, than: Duration, now: Duration) -> bool {
        self.0.get(&bookie).is_some_and(|since| now.saturating_sub(*since) >= than)
    }

    /// Bookies to be declared lost: away for `after`, and nothing else is missing outside of one bookie or one zone. More
    /// than that looks like something that a person should judge: a cut network, a power failure.
    pub(super) fn lost(&self, state: &State, after: Duration, now: Duration) -> Vec<BookieId> {
        let missing: Vec<&Member> =
            state.members().filter(|m| is_away(m) || (is_lost(m) && state.named_count(m.id) > 0)).collect();
        let zones: BTreeSet<&str> = missing.iter().map(|m| m.zone.as_str()).collect();
        let one_zone = zones.len() == 1 && !zones.contains("");
        if missing.len() > 1 && !one_zone {
            return Vec::new();
        }
        missing.iter().filter(|m| is_away(m) && self.longer(m.id, after, now)).map(|m| m.id).collect()
    }
}

fn is_lost(m: &Member) -> bool {
    m.role == MemberRole::Bookie && m.state == BookieState::Lost
}

fn is_away(m: &Member) -> bool {
    m.role == MemberRole::Bookie
        && m.session.is_none()
        && !matches!(m.state, BookieState::Lost | BookieState::Retired)
}
