//! Reading committed offsets.

use tidemill_types::{GroupName, PartitionId};

use super::heartbeat::check_epoch;
use crate::{Committed, Coordinator, GroupError, MemberId};

impl Coordinator {
    /// Committed offsets of the named partitions, or of all. A member that is not what it thinks gets an error, never "no
    /// offset" (2.8 bug 16). An unknown group has no offsets: that is how every group begins.
    ///
    /// # Errors
    /// `UnknownMember`, `Fenced`.
    pub fn fetch(
        &self,
        group: &GroupName,
        member: Option<&(MemberId, u64)>,
        partitions: Option<&[PartitionId]>,
    ) -> Result<Vec<(PartitionId, Option<Committed>)>, GroupError> {
        let state = self.groups.get(group).map(|g| &g.state);
        if let Some((id, epoch)) = member {
            let m = state.and_then(|s| s.members.get(id)).ok_or(GroupError::UnknownMember)?;
            check_epoch(m, *epoch, self.settings.rules)?;
        }
        let of = |p: &PartitionId| state.and_then(|s| s.offsets.get(p)).cloned();
        Ok(match (partitions, state) {
            (Some(asked), _) => asked.iter().map(|p| (*p, of(p))).collect(),
            (None, Some(s)) => s.offsets.iter().map(|(p, c)| (*p, Some(c.clone()))).collect(),
            (None, None) => Vec::new(),
        })
    }
}
