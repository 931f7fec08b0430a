//! A member's sign of life: what it still holds goes up, what it shall hold comes down.

use std::time::Duration;

use crate::{
    Assignment, Coordinator, Effects, Group, GroupError, Heartbeat, Member, MemberId, Now, Outcome, Rules,
    settle,
};

impl Coordinator {
    /// Prolongs the session, takes confirmations of revocations, answers the assignment.
    ///
    /// # Errors
    /// In the outcome: `UnknownGroup`, `UnknownMember`, `Fenced`, `Invalid`.
    pub fn heartbeat(&mut self, beat: Heartbeat, now: Now) -> Outcome<Assignment> {
        if let Some(s) = &beat.subscription
            && let Err(e) = self.check_subscription(s)
        {
            return Outcome::refused(e);
        }
        let (name, id) = (beat.group.clone(), beat.member.clone());
        let rules = self.settings.rules;
        let g = match self.known_mut(&name, &id, beat.epoch) {
            Ok(g) => g,
            Err(e) => return Outcome::refused(e),
        };
        let Some(m) = g.state.members.get(&id) else { return Outcome::refused(GroupError::UnknownMember) };
        if m.away {
            return Outcome::refused(GroupError::Fenced {
                epoch: m.epoch,
                why: "it left to come back by a join",
            });
        }
        let session = Duration::from_millis(m.session_ms.into());
        // A confirmation is about the assignment that it names, or it is about an older one and confirms nothing.
        let newest = beat.revision == m.revision || !rules.confirmations_name_their_revision;
        let confirms = newest && !m.revoking.is_empty();
        let owned = beat.owned.filter(|_| confirms);
        let subscription = beat.subscription.filter(|s| *s != m.subscription);
        if let Some(a) = g.alive.get_mut(&id) {
            a.expires = now.mono + session;
        }
        let news = subscription.is_some()
            || owned.as_ref().is_some_and(|o| m.revoking.keys().any(|p| !o.contains(p)));
        if !news {
            return self.answer(Effects::default(), &name, &id);
        }
        let effects = self.edit(&name, now, |g, dirty| {
            if let Some(owned) = &owned {
                settle::confirm(g, &id, owned, dirty);
            }
            if let Some(s) = subscription
                && let Some(m) = g.state.members.get_mut(&id)
            {
                m.subscription = s;
                dirty.group = true;
                dirty.member(&id);
            }
        });
        self.answer(effects, &name, &id)
    }

    /// The group, when the member is in it and may know this epoch.
    pub(super) fn known_mut(
        &mut self,
        name: &tidemill_types::GroupName,
        id: &MemberId,
        epoch: u64,
    ) -> Result<&mut Group, GroupError> {
        let rules = self.settings.rules;
        let g = self.groups.get_mut(name).ok_or(GroupError::UnknownGroup)?;
        let m = g.state.members.get(id).ok_or(GroupError::UnknownMember)?;
        check_epoch(m, epoch, rules)?;
        Ok(g)
    }
}

/// A member may be behind by any number of answers that were lost (2.2), never by a life.
pub(super) fn check_epoch(m: &Member, epoch: u64, rules: Rules) -> Result<(), GroupError> {
    if epoch < m.joined_epoch && rules.earlier_lives_are_void {
        return Err(GroupError::Fenced { epoch: m.epoch, why: "a later join made this epoch void" });
    }
    if epoch > m.epoch {
        return Err(GroupError::Fenced { epoch: m.epoch, why: "the epoch was never given" });
    }
    Ok(())
}
