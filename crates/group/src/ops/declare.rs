//! What objects say of a group: whose it is, what it reads. One object wins, the others are told which (rule 8 of the operator).

use tidemill_types::Claim;

use crate::{
    Coordinator, Declaration, Declare, Effects, Group, GroupError, Now, Outcome, Release, Released,
    log::Record,
};

/// Longest uid and owner of a claim, bytes.
const MAX_CLAIM: usize = 600;

impl Coordinator {
    /// Declares a group; it need not have members or offsets. The answer says whether anything changed.
    ///
    /// An object that was made anew under its old name is the same owner: its claim is its own.
    ///
    /// # Errors
    /// In the outcome: `Claimed`, `TooMany`, `Invalid`, `Mode`.
    pub fn declare(&mut self, d: Declare, now: Now) -> Outcome<bool> {
        if let Err(e) = self.check_declare(&d) {
            return Outcome::refused(e);
        }
        let name = d.group;
        let config = self.config_of(&name).cloned();
        let first = !self.groups.contains_key(&name);
        let g = self.groups.entry(name.clone()).or_insert_with(|| Group { config, ..Group::default() });
        let mut records = Vec::new();
        if first {
            g.state.empty_since_ms = Some(now.wall_ms);
            records.push(Record::group(&name, &g.state));
        }
        let old = &g.state.declared;
        let new = Declaration { claim: Some(d.claim), topics: d.topics, resets: old.resets.clone() };
        let changed = new != *old;
        if changed {
            g.state.declared = new;
            records.push(Record::declared(&name, &g.state.declared));
        }
        Outcome { effects: Effects { records, ..Effects::default() }, answer: Ok(changed) }
    }

    fn check_declare(&self, d: &Declare) -> Result<(), GroupError> {
        self.check_mode(&d.group)?;
        for (field, text) in [("claim.uid", &d.claim.uid), ("claim.owner", &d.claim.owner)] {
            if !(1..=MAX_CLAIM).contains(&text.len()) {
                return Err(GroupError::invalid(field, format!("1 to {MAX_CLAIM} bytes")));
            }
        }
        if d.topics.len() > self.settings.max_topics {
            return Err(GroupError::TooMany { what: "topics", max: self.settings.max_topics });
        }
        let Some(g) = self.groups.get(&d.group) else {
            let max = self.settings.max_groups;
            let room = self.groups.len() < max;
            return room.then_some(()).ok_or(GroupError::TooMany { what: "groups", max });
        };
        let may = |holder: &Claim| {
            holder.uid == d.claim.uid
                || holder.owner == d.claim.owner
                || d.from_uid.as_ref() == Some(&holder.uid)
        };
        match &g.state.declared.claim {
            Some(holder) if !may(holder) => Err(GroupError::Claimed { owner: holder.owner.clone() }),
            _ => Ok(()),
        }
    }

    /// Ends a declaration: the claim is freed and nothing else, or the group goes with its offsets. Done is done: what is
    /// absent or another's is no error.
    ///
    /// # Errors
    /// In the outcome: `NotEmpty` when the group shall go and has members.
    pub fn release(&mut self, r: &Release) -> Outcome<Released> {
        let done = |answer| Outcome { effects: Effects::default(), answer: Ok(answer) };
        let Some(g) = self.groups.get_mut(&r.group) else { return done(Released::Absent) };
        let claim = &g.state.declared.claim;
        if claim.as_ref().is_none_or(|c| c.uid != r.uid) {
            return done(Released::NotHolder(claim.clone()));
        }
        if r.delete {
            let Outcome { effects, answer } = self.remove(&r.group);
            return Outcome { effects, answer: answer.map(|()| Released::Done) };
        }
        // What it reads and which resets are done stays: the next object goes on from there.
        g.state.declared.claim = None;
        let records = vec![Record::declared(&r.group, &g.state.declared)];
        Outcome { effects: Effects { records, ..Effects::default() }, answer: Ok(Released::Done) }
    }
}
