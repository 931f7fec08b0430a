//! Moving committed offsets from outside.

use tidemill_types::{GroupName, PartitionId};

use crate::{
    Coordinator, Effects, Group, GroupError, MAX_RESETS, MemberId, Now, Outcome, Reset, ResetDone,
    ResetOutcome, log::Record, settle,
};

/// Longest id of a declared reset, and longest text of where it goes, bytes.
const MAX_TEXT: usize = 249;

impl Coordinator {
    /// Moves and forgets committed offsets. All of it is one operation: a declared reset is remembered in the very entry that
    /// moves the offsets, so that no crash makes it happen twice, or not at all and remembered.
    ///
    /// # Errors
    /// In the outcome: `NotEmpty`, `TooMany`, `Invalid`, `Mode`.
    pub fn reset(&mut self, r: Reset, now: Now) -> Outcome<ResetOutcome> {
        if let Some((id, _)) = &r.once
            && self.reset_done(&r.group, id)
        {
            return Outcome { effects: Effects::default(), answer: Ok(ResetOutcome::Already) };
        }
        if let Err(e) = self.check_reset(&r) {
            return Outcome::refused(e);
        }
        let name = r.group;
        let mut effects = self.edit(&name, now, |g, dirty| {
            let all: Vec<MemberId> = g.state.members.keys().cloned().collect();
            for id in &all {
                settle::remove(g, id, dirty);
            }
        });
        let config = self.config_of(&name).cloned();
        let first = !self.groups.contains_key(&name);
        let g = self.groups.entry(name.clone()).or_insert_with(|| Group { config, ..Group::default() });
        if first {
            g.state.empty_since_ms = Some(now.wall_ms);
            effects.records.push(Record::group(&name, &g.state));
        }
        for (p, mut c) in r.set {
            c.commit_ms = now.wall_ms;
            effects.records.push(Record::offset(&name, p, Some(&c)));
            g.state.offsets.insert(p, c);
        }
        effects.records.extend(forgotten(g, &name, &r.forget));
        if let Some((id, to)) = r.once {
            let resets = &mut g.state.declared.resets;
            resets.push(ResetDone { id, to, at_ms: now.wall_ms });
            let over = resets.len().saturating_sub(MAX_RESETS);
            resets.drain(..over);
            effects.records.push(Record::declared(&name, &g.state.declared));
        }
        Outcome { effects, answer: Ok(ResetOutcome::Done) }
    }

    /// Whether a declared reset was carried out.
    #[must_use]
    pub fn reset_done(&self, group: &GroupName, id: &str) -> bool {
        self.groups.get(group).is_some_and(|g| g.state.declared.resets.iter().any(|r| r.id == id))
    }

    fn check_reset(&self, r: &Reset) -> Result<(), GroupError> {
        self.check_mode(&r.group)?;
        if let Some((id, to)) = &r.once {
            for (field, text) in [("id", id), ("to", to)] {
                if !(1..=MAX_TEXT).contains(&text.len()) {
                    return Err(GroupError::invalid(field, format!("1 to {MAX_TEXT} bytes")));
                }
            }
        }
        let max = self.settings.max_metadata;
        for (_, c) in &r.set {
            if c.offset < 0 {
                return Err(GroupError::invalid("offset", "0 or above"));
            }
            if c.metadata.len() > max {
                return Err(GroupError::invalid("metadata", format!("at most {max} bytes")));
            }
        }
        match self.groups.get(&r.group) {
            Some(g) if !g.state.members.is_empty() && !r.evict => {
                Err(GroupError::NotEmpty { members: g.state.members.len() })
            }
            None if self.groups.len() >= self.settings.max_groups => {
                Err(GroupError::TooMany { what: "groups", max: self.settings.max_groups })
            }
            _ => Ok(()),
        }
    }
}

fn forgotten(g: &mut Group, name: &GroupName, partitions: &[PartitionId]) -> Vec<Record> {
    let known = partitions.iter().filter(|p| g.state.offsets.remove(p).is_some());
    known.map(|p| Record::offset(name, *p, None)).collect()
}
