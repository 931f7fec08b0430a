//! `OpenSession`, `CloseSession`, `ExpireSession`, `EndSession`.

use std::sync::Arc;

use tidemill_types::meta::{Change, MemberSpec, Rejection, Reply};
use tidemill_types::{
    BookieState, ClusterId, Incarnation, LedgerId, Member, MemberId, MemberRole, SessionId,
};

use super::boot::NEVER;
use crate::State;
use crate::limits::{MAX_MEMBERS, MAX_NAME_LEN, MAX_SESSIONS};
use crate::reject::{conflict, invalid, not_found};
use crate::state::Session;

fn check_spec(cluster: ClusterId, spec: &MemberSpec) -> Result<(), Rejection> {
    match spec.cluster {
        Some(named) if named != cluster => return Err(Rejection::WrongCluster { have: cluster, named }),
        None if spec.role == MemberRole::Bookie => {
            return Err(invalid("cluster", "a bookie names the cluster of its cookies"));
        }
        _ => {}
    }
    if spec.incarnation == NEVER {
        return Err(invalid("incarnation", "zero stands for none"));
    }
    for (field, value) in [("name", &spec.name), ("host", &spec.endpoint.host), ("zone", &spec.zone)] {
        if value.len() > MAX_NAME_LEN {
            return Err(invalid(field, format_args!("at most {MAX_NAME_LEN} bytes")));
        }
    }
    if spec.endpoint.host.is_empty() {
        return Err(invalid("host", "not empty"));
    }
    Ok(())
}

/// The state with which a bookie serves after its boot.
fn bookie_state(m: &Member, spec: &MemberSpec) -> BookieState {
    // Only `OpenSession` sets an endpoint: this is the end of the uuid's first boot.
    let first = m.endpoint.host.is_empty();
    match m.state {
        BookieState::Rw | BookieState::Lost if spec.read_only => BookieState::Ro,
        // Out of lost its boot found nothing missing, else it would be in limbo by now.
        BookieState::Lost => BookieState::Rw,
        BookieState::Ro if first && !spec.read_only => BookieState::Rw,
        state => state,
    }
}

impl State {
    pub(crate) fn open_session(
        &mut self,
        cluster: ClusterId,
        spec: &MemberSpec,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        check_spec(cluster, spec)?;
        let known = self.member(spec.id);
        if let Some(m) = known {
            if m.role != spec.role {
                return Err(conflict(format_args!("{} is a {:?}", spec.id, m.role)));
            }
            if let Some(session) = m.session {
                if m.incarnation == spec.incarnation {
                    return Ok(self.session_reply(cluster, session, m.state));
                }
                return Err(conflict("another process of this member has a live session"));
            }
        } else if self.members.len() >= MAX_MEMBERS {
            return Err(conflict(format_args!("there are {MAX_MEMBERS} members")));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(conflict(format_args!("there are {MAX_SESSIONS} live sessions")));
        }
        let state = match (spec.role, known) {
            (MemberRole::Bookie, None) => return Err(not_found("bookie", spec.id)),
            (MemberRole::Bookie, Some(m)) => {
                if m.state == BookieState::Retired {
                    return Err(Rejection::BookieNotEligible { bookie: spec.id, why: "retired".into() });
                }
                // The boot that the quorum knows of, or the same process after its session ran out.
                let booted = match m.pending_incarnation {
                    Some(pending) => pending == spec.incarnation,
                    None => m.incarnation == spec.incarnation && m.state != BookieState::Lost,
                };
                if !booted {
                    return Err(conflict("a bookie boots before it opens a session (R16)"));
                }
                bookie_state(m, spec)
            }
            (_, m) => m.map_or(BookieState::Rw, |m| m.state),
        };
        let session = SessionId(self.counters.next_session);
        let member = Member {
            id: spec.id,
            role: spec.role,
            name: spec.name.clone(),
            incarnation: spec.incarnation,
            pending_incarnation: None,
            endpoint: spec.endpoint.clone(),
            zone: spec.zone.clone(),
            state,
            limbo_count: known.map_or(0, |m| m.limbo_count),
            session: Some(session),
            lanes: known.map_or_else(Vec::new, |m| m.lanes.clone()),
            free_bytes: spec.free_bytes,
            restarting: false,
        };
        self.counters.next_session += 1;
        self.sessions.insert(session, Arc::new(Session::new(spec.id, spec.role)));
        self.put_member(member, out);
        Ok(self.session_reply(cluster, session, state))
    }

    fn session_reply(&self, cluster: ClusterId, session: SessionId, state: BookieState) -> Reply {
        Reply::Session { session, cluster, next_ledger: LedgerId(self.counters.next_ledger), state }
    }

    /// The owner of a partition is a session: with it go all its partitions, without a change of their records.
    pub(crate) fn close_session(
        &mut self,
        session: SessionId,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        self.end_session(session, out);
        Ok(Reply::Done)
    }

    /// A no-op unless it is still that session of that member.
    pub(crate) fn expire_session(
        &mut self,
        session: SessionId,
        member: MemberId,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        if self.sessions.get(&session).is_some_and(|s| s.member == member) {
            self.end_session(session, out);
        }
        Ok(Reply::Done)
    }

    /// A no-op unless it is still that session of that member in that incarnation. Safe as an expiry is: ledgers are fenced
    /// and answers wait for barriers whatever the reason of a session's end. The proof is the sender's.
    pub(crate) fn end_session_of(
        &mut self,
        session: SessionId,
        member: MemberId,
        incarnation: Incarnation,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        if self.member(member).is_some_and(|m| m.session == Some(session) && m.incarnation == incarnation) {
            self.end_session(session, out);
        }
        Ok(Reply::Done)
    }

    pub(crate) fn end_session(&mut self, session: SessionId, out: &mut Vec<Change>) {
        let Some(ended) = self.sessions.remove(&session) else { return };
        if let Some(m) = self.member(ended.member) {
            let member = Member { session: None, ..m.clone() };
            self.put_member(member, out);
        }
    }
}
