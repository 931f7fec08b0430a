//! Deadlines of sessions on the leader's monotonic clock. Pure: times come in as values.
//!
//! Being late is always safe here: a session that expires late only delays a failover. Being early is not.

use std::{collections::BTreeMap, time::Duration};

use tidemill_types::{MemberId, SessionId};

/// An expiry is proposed again when it did not happen within this time.
const PROPOSE_AGAIN: Duration = Duration::from_secs(1);

/// What became of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The full TTL begins anew.
    Renewed(Duration),
    /// Its expiry was proposed: whether it is live, only the log will tell (M26).
    Expiring,
    /// Not for this term: another check is needed.
    OtherTerm,
    /// The state does not have it: it ended.
    Gone,
}

/// The keeper.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    ttl: Duration,
    /// The term that it counts for: the last one in which this member led. What it knows of a term that is over harms
    /// nobody: no check of leadership proves that term any more, and nothing is proposed in it.
    term: Option<u64>,
    sessions: BTreeMap<SessionId, Kept>,
    polled: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    member: MemberId,
    deadline: Duration,
    /// When its expiry was proposed last.
    proposed: Option<Duration>,
}

impl Keeper {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self { ttl, term: None, sessions: BTreeMap::new(), polled: Duration::ZERO }
    }

    /// Begins a term, unless it has begun: all sessions get a full TTL. The caller has applied all entries up to the first
    /// of this term. False for a term that is over.
    pub(crate) fn lead(
        &mut self,
        term: u64,
        live: impl IntoIterator<Item = (SessionId, MemberId)>,
        now: Duration,
    ) -> bool {
        if self.term == Some(term) {
            return true;
        }
        if self.term.is_some_and(|begun| term < begun) {
            return false;
        }
        self.term = Some(term);
        self.polled = now;
        self.sessions.clear();
        self.adopt(live, now);
        true
    }

    /// A live session asks for a new TTL. The caller has proved its leadership of `term` after the request came.
    pub(crate) fn renew(
        &mut self,
        term: u64,
        session: SessionId,
        member: MemberId,
        now: Duration,
    ) -> Renewal {
        if self.term != Some(term) {
            return Renewal::OtherTerm;
        }
        let deadline = now + self.ttl;
        let kept = self.sessions.entry(session).or_insert(Kept { member, deadline, proposed: None });
        if kept.proposed.is_some() {
            return Renewal::Expiring;
        }
        kept.deadline = kept.deadline.max(deadline);
        Renewal::Renewed(self.ttl)
    }

    /// The sessions whose expiry is to be proposed now; from here on they are renewed no more. `live` is what the state has.
    pub(crate) fn poll(
        &mut self,
        live: impl IntoIterator<Item = (SessionId, MemberId)>,
        now: Duration,
    ) -> Vec<(SessionId, MemberId)> {
        if self.term.is_none() {
            return Vec::new();
        }
        // A pause of this process is nobody's silence: renewals may lie unread.
        let gap = now.saturating_sub(self.polled);
        self.polled = now;
        if gap > self.ttl / 4 {
            for kept in self.sessions.values_mut() {
                kept.deadline += gap;
            }
        }
        self.adopt(live, now);
        let mut due = Vec::new();
        for (session, kept) in &mut self.sessions {
            let again = kept.proposed.is_none_or(|at| now.saturating_sub(at) >= PROPOSE_AGAIN);
            if kept.deadline <= now && again {
                kept.proposed = Some(now);
                due.push((*session, kept.member));
            }
        }
        due
    }

    /// Number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Follows the state: new sessions get a full TTL, ended ones go.
    fn adopt(&mut self, live: impl IntoIterator<Item = (SessionId, MemberId)>, now: Duration) {
        let mut old = std::mem::take(&mut self.sessions);
        for (session, member) in live {
            let kept =
                old.remove(&session).unwrap_or(Kept { member, deadline: now + self.ttl, proposed: None });
            self.sessions.insert(session, kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(3);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn live(n: u64) -> Vec<(SessionId, MemberId)> {
        (1..=n).map(|i| (SessionId(i), MemberId(uuid::Uuid::from_u128(u128::from(i))))).collect()
    }

    fn member(i: u64) -> MemberId {
        MemberId(uuid::Uuid::from_u128(u128::from(i)))
    }

    /// Polls every 100 ms up to `to` and returns when which session was due.
    fn poll_until(k: &mut Keeper, from: u64, to: u64, n: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        for t in (from..=to).step_by(100) {
            out.extend(k.poll(live(n), ms(t)).into_iter().map(|(s, _)| (t, s.0)));
        }
        out
    }

    #[test]
    fn expires_after_the_ttl_and_not_before() {
        let mut k = Keeper::new(TTL);
        assert!(k.lead(5, live(2), ms(0)));
        assert_eq!(poll_until(&mut k, 0, 1_000, 2), []);
        assert_eq!(k.renew(5, SessionId(1), member(1), ms(1_000)), Renewal::Renewed(TTL));
        assert_eq!(poll_until(&mut k, 1_100, 3_900, 2), [(3_000, 2)]);
        assert_eq!(
            poll_until(&mut k, 4_000, 4_000, 2),
            [(4_000, 1), (4_000, 2)],
            "2 once more, after a second"
        );
    }

    #[test]
    fn a_proposed_expiry_is_answered_no_more_and_a_new_term_starts_anew() {
        let mut k = Keeper::new(TTL);
        k.lead(5, live(1), ms(0));
        assert_eq!(poll_until(&mut k, 0, 3_000, 1), [(3_000, 1)]);
        assert_eq!(k.renew(5, SessionId(1), member(1), ms(3_001)), Renewal::Expiring);
        assert_eq!(k.renew(4, SessionId(1), member(1), ms(3_001)), Renewal::OtherTerm);
        assert!(k.lead(5, live(1), ms(3_050)), "it has begun");
        assert_eq!(k.renew(5, SessionId(1), member(1), ms(3_060)), Renewal::Expiring, "and forgets nothing");
        assert!(k.lead(7, live(1), ms(3_100)));
        assert!(!k.lead(5, live(1), ms(3_100)), "a term that is over does not begin again");
        assert_eq!(k.renew(7, SessionId(1), member(1), ms(3_200)), Renewal::Renewed(TTL));
        assert_eq!(poll_until(&mut k, 3_200, 6_100, 1), []);
    }

    #[test]
    fn a_pause_of_the_leader_expires_nobody() {
        let mut k = Keeper::new(TTL);
        k.lead(1, live(1), ms(0));
        assert_eq!(k.poll(live(1), ms(100)), []);
        assert_eq!(k.poll(live(1), ms(60_000)), []);
        assert_eq!(k.renew(1, SessionId(1), member(1), ms(60_010)), Renewal::Renewed(TTL));
        assert_eq!(k.poll(live(1), ms(60_100)), []);
        assert_eq!(poll_until(&mut k, 60_200, 64_000, 0), [], "what the state no longer has is forgotten");
        assert_eq!(k.len(), 0);
    }
}
