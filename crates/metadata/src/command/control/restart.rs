//! `AnnounceRestart` (R28).

use tidemill_types::meta::{Change, ControlReply, Rejection};
use tidemill_types::{Member, MemberId, MemberRole};

use crate::State;
use crate::reject::{conflict, not_found};

impl State {
    /// Unlike `SetMemberState` it names no state, so that it undoes no change of one that came in between.
    pub(crate) fn announce_restart(
        &mut self,
        member: MemberId,
        restarting: bool,
        out: &mut Vec<Change>,
    ) -> Result<ControlReply, Rejection> {
        let m = self.member(member).ok_or_else(|| not_found("member", member))?;
        if m.role != MemberRole::Bookie {
            return Err(conflict(format_args!(
                "{member} is a {:?}: only bookies announce a restart",
                m.role
            )));
        }
        if m.restarting != restarting {
            let new = Member { restarting, ..m.clone() };
            self.put_member(new, out);
        }
        Ok(ControlReply::Done)
    }
}
