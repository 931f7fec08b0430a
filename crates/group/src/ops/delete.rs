//! Deletion of a group.

use tidemill_types::GroupName;

use crate::{Coordinator, Declaration, Effects, GroupError, Outcome, log::Record};

impl Coordinator {
    /// Forgets an empty group with its committed offsets, unless an object declares it: that would bring it back.
    ///
    /// # Errors
    /// In the outcome: `UnknownGroup`, `NotEmpty`, `Claimed`.
    pub fn delete(&mut self, name: &GroupName) -> Outcome<()> {
        match self.groups.get(name).and_then(|g| g.state.declared.claim.as_ref()) {
            Some(c) => Outcome::refused(GroupError::Claimed { owner: c.owner.clone() }),
            None => self.remove(name),
        }
    }

    pub(super) fn remove(&mut self, name: &GroupName) -> Outcome<()> {
        let Some(g) = self.groups.get(name) else { return Outcome::refused(GroupError::UnknownGroup) };
        if !g.state.members.is_empty() {
            return Outcome::refused(GroupError::NotEmpty { members: g.state.members.len() });
        }
        let mut records: Vec<Record> =
            g.state.offsets.keys().map(|p| Record::offset(name, *p, None)).collect();
        if g.state.declared != Declaration::default() {
            records.push(Record::declared(name, &Declaration::default()));
        }
        // Last: what comes before it is gone when it is read.
        records.push(Record::gone(name));
        self.groups.remove(name);
        Outcome { effects: Effects { records, ..Effects::default() }, answer: Ok(()) }
    }
}
