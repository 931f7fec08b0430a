//! Deletion of a group, or of some of its offsets.

use tidemill_types::{GroupName, PartitionId};

use crate::{Coordinator, Effects, GroupError, Outcome, log::Record};

impl Coordinator {
    /// Forgets an empty group with its committed offsets.
    ///
    /// # Errors
    /// In the outcome: `UnknownGroup`, `NotEmpty`.
    pub fn delete(&mut self, name: &GroupName) -> Outcome<()> {
        let Some(g) = self.groups.get(name) else { return Outcome::refused(GroupError::UnknownGroup) };
        if !g.state.members.is_empty() {
            return Outcome::refused(GroupError::NotEmpty { members: g.state.members.len() });
        }
        let mut records: Vec<Record> =
            g.state.offsets.keys().map(|p| Record::offset(name, *p, None)).collect();
        // Last: what comes before it is gone when it is read.
        records.push(Record::gone(name));
        self.groups.remove(name);
        Outcome { effects: Effects { records, ..Effects::default() }, answer: Ok(()) }
    }

    /// Forgets committed offsets of an empty group.
    ///
    /// # Errors
    /// In the outcome: `UnknownGroup`, `NotEmpty`.
    pub fn forget(&mut self, name: &GroupName, partitions: &[PartitionId]) -> Outcome<()> {
        let Some(g) = self.groups.get_mut(name) else { return Outcome::refused(GroupError::UnknownGroup) };
        if !g.state.members.is_empty() {
            return Outcome::refused(GroupError::NotEmpty { members: g.state.members.len() });
        }
        let known = partitions.iter().filter(|p| g.state.offsets.remove(p).is_some());
        let records = known.map(|p| Record::offset(name, *p, None)).collect();
        Outcome { effects: Effects { records, ..Effects::default() }, answer: Ok(()) }
    }
}
