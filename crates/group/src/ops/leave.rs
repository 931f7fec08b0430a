//! A member leaves: what it had is free at once, or waits for its instance.

use crate::{Coordinator, GroupError, Leave, Now, Outcome, settle};

impl Coordinator {
    /// Removes a member, or marks a static one as away until its session is over.
    ///
    /// # Errors
    /// In the outcome: `UnknownGroup`, `UnknownMember`, `Fenced`, `Invalid`.
    pub fn leave(&mut self, leave: &Leave, now: Now) -> Outcome<()> {
        let id = &leave.member;
        let g = match self.known_mut(&leave.group, id, leave.epoch) {
            Ok(g) => g,
            Err(e) => return Outcome::refused(e),
        };
        let is_static = g.state.members.get(id).is_some_and(|m| m.instance.is_some());
        if leave.comes_back && !is_static {
            return Outcome::refused(GroupError::invalid(
                "comes_back",
                "only for members with an instance id",
            ));
        }
        let effects = self.edit(&leave.group, now, |g, dirty| {
            if !leave.comes_back {
                settle::remove(g, id, dirty);
                return;
            }
            if let Some(m) = g.state.members.get_mut(id) {
                m.away = true;
                dirty.member(id);
                for p in std::mem::take(&mut m.revoking).into_keys() {
                    g.owners.remove(&p);
                }
            }
        });
        Outcome { effects, answer: Ok(()) }
    }
}
