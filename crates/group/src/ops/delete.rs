//! Deletion of a group.

use tidemill_types::GroupName;

use crate::{Coordinator, Declaration, Effects, GroupError, GroupState, Outcome, log::Record};

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
        records.extend(last_records(name, &g.state));
        self.groups.remove(name);
        Outcome { effects: Effects { records, ..Effects::default() }, answer: Ok(()) }
    }
}

/// What ends a group without members and offsets: each key that it has gets its tombstone, so that key compaction may take them one by
/// one; its own is the last.
pub(super) fn last_records(name: &GroupName, state: &GroupState) -> impl Iterator<Item = Record> {
    let none = Declaration::default();
    let declared = (state.declared != none).then(|| Record::declared(name, &none));
    declared.into_iter().chain([Record::gone(name)])
}
