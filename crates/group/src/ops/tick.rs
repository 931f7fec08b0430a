//! What time does: sessions end, revocations take too long, offsets of empty groups expire, topics are gone.

use std::time::Duration;

use tidemill_types::{GroupName, PartitionId};

use super::delete::last_records;
use crate::{Coordinator, Effects, Group, MemberId, Now, log::Record, settle};

impl Coordinator {
    /// When the next session or rebalance time-out ends.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let all = self.groups.values().flat_map(|g| g.alive.values());
        all.map(|a| a.confirm_until.map_or(a.expires, |c| c.min(a.expires))).min()
    }

    /// Removes members that were not heard for their session, or did not confirm in time. Their claims end with it, and
    /// nothing of their epoch counts any more.
    pub fn expire_members(&mut self, now: Now) -> Effects {
        let mut effects = Effects::default();
        let due = |g: &Group| -> Vec<MemberId> {
            let over = g.alive.iter().filter(|(_, a)| {
                a.expires <= now.mono || a.confirm_until.is_some_and(|until| until <= now.mono)
            });
            over.map(|(id, _)| id.clone()).collect()
        };
        let lost: Vec<(GroupName, Vec<MemberId>)> =
            self.groups.iter().map(|(n, g)| (n.clone(), due(g))).filter(|(_, ids)| !ids.is_empty()).collect();
        for (name, ids) in lost {
            effects.merge(self.edit(&name, now, |g, dirty| {
                for id in &ids {
                    settle::remove(g, id, dirty);
                }
            }));
        }
        effects
    }

    /// Forgets the offsets of groups that have been empty for long enough, and those of topics that are gone for good; then
    /// groups of which nothing is left. `wall_ms` has to be a time that surely has passed.
    pub fn expire_offsets(&mut self, wall_ms: i64) -> Effects {
        let mut effects = Effects::default();
        let names: Vec<GroupName> = self.groups.keys().cloned().collect();
        for name in names {
            let configured = self.config_of(&name).is_some();
            let Some(g) = self.groups.get_mut(&name) else { continue };
            let keep = g.config.as_ref().and_then(|c| c.offsets_retention_ms);
            let keep = keep.map_or(self.settings.offsets_retention, Duration::from_millis);
            let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
            let topics = &self.topics;
            let over: Vec<PartitionId> = g
                .state
                .offsets
                .iter()
                .filter(|(p, c)| {
                    let idle = g.state.empty_since_ms.map(|t| t.max(c.commit_ms));
                    topics.is_gone(p.topic) || idle.is_some_and(|t| t.saturating_add(keep) <= wall_ms)
                })
                .map(|(p, _)| *p)
                .collect();
            for p in over {
                g.state.offsets.remove(&p);
                effects.records.push(Record::offset(&name, p, None));
            }
            let unused = g.state.empty_since_ms.is_some_and(|t| t.saturating_add(keep) <= wall_ms);
            let held = configured || g.state.declared.claim.is_some();
            if g.state.members.is_empty() && g.state.offsets.is_empty() && unused && !held {
                effects.records.extend(last_records(&name, &g.state));
                self.groups.remove(&name);
            }
        }
        effects
    }
}
