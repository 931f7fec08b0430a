//! `SetMemberState`: the table of members.

use tidemill_types::meta::{Change, Rejection, Reply};
use tidemill_types::{BookieState, LedgerState, Member, MemberId, MemberRole, SessionId};

use crate::State;
use crate::reject::{conflict, invalid, not_found};

impl State {
    pub(crate) fn set_member_state(
        &mut self,
        sender: SessionId,
        member: MemberId,
        state: BookieState,
        restarting: bool,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let m = self.member(member).ok_or_else(|| not_found("member", member))?;
        if m.state != state {
            match m.role {
                MemberRole::Bookie => self.check_bookie_state(sender, m, state)?,
                MemberRole::Broker if matches!(state, BookieState::Rw | BookieState::Draining) => {}
                MemberRole::Broker | MemberRole::Meta => {
                    return Err(invalid("state", format_args!("a {:?} is never {state:?}", m.role)));
                }
            }
        }
        let mut new = Member { state, restarting, ..m.clone() };
        if state == BookieState::Lost {
            // A boot that was under way does not know of its duties after a loss: it starts again.
            new.pending_incarnation = None;
        }
        let ended = new.session.filter(|_| state == BookieState::Retired);
        if new != *m {
            self.put_member(new, out);
        }
        if let Some(session) = ended {
            self.end_session(session, out);
        }
        Ok(Reply::Done)
    }

    fn check_bookie_state(&self, sender: SessionId, m: &Member, to: BookieState) -> Result<(), Rejection> {
        use BookieState::{Draining, Limbo, Lost, Retired, Ro, Rw};
        match (m.state, to) {
            // A bookie says how full its disks are; it does not undo what others wish.
            (Draining, Rw) if m.session == Some(sender) => {
                Err(conflict("a bookie does not end its own draining"))
            }
            (Rw, Ro) | (Ro | Draining, Rw) | (Ro, Draining) => Ok(()),
            (Rw, Draining) => self.check_enough_writable_without(m),
            (Limbo, Rw) => self.check_out_of_limbo(sender, m),
            (Rw | Ro | Limbo | Draining, Lost) => match m.session {
                Some(_) => Err(conflict("a bookie with a live session is not lost")),
                None => Ok(()),
            },
            (Draining | Lost, Retired) => match self.named_count(m.id) {
                0 => Ok(()),
                n => Err(conflict(format_args!("{n} fragments and repairs name the bookie"))),
            },
            (from, to) => Err(conflict(format_args!("a bookie does not go from {from:?} to {to:?}"))),
        }
    }

    /// Draining is refused when fewer `rw` bookies than the largest `copies` would stay.
    fn check_enough_writable_without(&self, leaving: &Member) -> Result<(), Rejection> {
        let copies = self.topics().map(|t| usize::from(t.config.replication.copies)).max().unwrap_or(0);
        let stay = self.members().filter(|m| m.is_writable_bookie() && m.id != leaving.id).count();
        if stay < copies {
            return Err(conflict(format_args!(
                "{stay} writable bookies would stay, a topic wants {copies} copies"
            )));
        }
        Ok(())
    }

    /// What the quorum knows of R15's conditions; that the entries are back and the fences set is what the bookie, or
    /// the auditor that asked it, says by sending this.
    fn check_out_of_limbo(&self, sender: SessionId, m: &Member) -> Result<(), Rejection> {
        if m.session.is_none() || (sender != SessionId::NONE && m.session != Some(sender)) {
            return Err(conflict("only the bookie itself, in a live session, or the auditor ends limbo"));
        }
        let open = self.ledgers_naming(m.id, None).find(|l| {
            l.state != LedgerState::Closed && l.last_fragment().is_some_and(|f| f.ensemble.contains(&m.id))
        });
        match open {
            Some(l) => Err(conflict(format_args!("ledger {} is not closed and names the bookie last", l.id))),
            None => Ok(()),
        }
    }
}
