//! Committed offsets: who may commit what.

use crate::{Commit, Coordinator, Effects, Group, GroupError, Now, Outcome, log::Record};

use super::heartbeat::check_epoch;

impl Coordinator {
    /// Commits offsets; the partitions are judged one by one. Whether an offset lies within its partition was checked
    /// before, by whoever knows where that ends.
    ///
    /// # Errors
    /// In the outcome: `UnknownGroup`, `UnknownMember`, `Fenced`, `NotEmpty`, `TooMany`, `Mode`; per partition `Fenced`,
    /// `Invalid`.
    pub fn commit(&mut self, commit: Commit, now: Now) -> Outcome<Vec<Result<(), GroupError>>> {
        if let Err(e) = self.check_commit(&commit) {
            return Outcome::refused(e);
        }
        let (max, rules) = (self.settings.max_metadata, self.settings.rules);
        let name = commit.group;
        let config = self.config_of(&name).cloned();
        let first = !self.groups.contains_key(&name);
        let g = self.groups.entry(name.clone()).or_insert_with(|| Group { config, ..Group::default() });
        let mut records = Vec::with_capacity(commit.offsets.len() + 1);
        if first {
            g.state.empty_since_ms = Some(now.wall_ms);
            records.push(Record::group(&name, &g.state));
        }
        let mut answer = Vec::with_capacity(commit.offsets.len());
        for (p, mut c) in commit.offsets {
            c.commit_ms = now.wall_ms;
            let verdict = match &commit.member {
                _ if c.offset < 0 => Err(GroupError::invalid("offset", "0 or above")),
                _ if c.metadata.len() > max => {
                    Err(GroupError::invalid("metadata", format!("at most {max} bytes")))
                }
                None => Ok(()),
                Some((id, epoch)) => g.state.members.get(id).map_or(Err(GroupError::UnknownMember), |m| {
                    // By the epoch at which this partition was assigned, not by the newest one: a commit while a
                    // rebalance is under way is good (KIP-1251). What is being revoked may still be committed.
                    match m.assigned.get(&p).or_else(|| m.revoking.get(&p)) {
                        Some(since) if since <= epoch || !rules.commits_belong_to_a_grant => Ok(()),
                        Some(_) => Err(GroupError::Fenced {
                            epoch: m.epoch,
                            why: "the partition was assigned later",
                        }),
                        None => Err(GroupError::Fenced {
                            epoch: m.epoch,
                            why: "the partition is not assigned to it",
                        }),
                    }
                }),
            };
            if verdict.is_ok() {
                records.push(Record::offset(&name, p, Some(&c)));
                g.state.offsets.insert(p, c);
            }
            answer.push(verdict);
        }
        Outcome { effects: Effects { records, ..Effects::default() }, answer: Ok(answer) }
    }

    fn check_commit(&self, commit: &Commit) -> Result<(), GroupError> {
        self.check_mode(&commit.group)?;
        let known = self.groups.get(&commit.group);
        match (&commit.member, known) {
            (None, Some(g)) if !g.state.members.is_empty() => {
                Err(GroupError::NotEmpty { members: g.state.members.len() })
            }
            (None, Some(_)) => Ok(()),
            (None, None) if self.groups.len() >= self.settings.max_groups => {
                Err(GroupError::TooMany { what: "groups", max: self.settings.max_groups })
            }
            (None, None) => Ok(()),
            (Some(_), None) => Err(GroupError::UnknownGroup),
            (Some((id, epoch)), Some(g)) => check_epoch(
                g.state.members.get(id).ok_or(GroupError::UnknownMember)?,
                *epoch,
                self.settings.rules,
            ),
        }
    }
}
