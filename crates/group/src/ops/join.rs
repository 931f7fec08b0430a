//! A member joins, with epoch 0: for the first time, again after it was fenced, or once more because it heard no answer.

use tidemill_types::GroupName;

use crate::{
    Assignment, Coordinator, Effects, Group, GroupError, Join, Member, MemberId, Now, Outcome, Subscription,
    coordinator::Dirty, model::Alive, settle, topics,
};

/// Longest id of a member or an instance, bytes.
const MAX_ID: usize = 249;
/// Longest name of a client, bytes.
const MAX_CLIENT: usize = 512;
/// Least and longest time-outs, ms.
const TIMEOUTS: std::ops::RangeInclusive<u32> = 100..=3_600_000;

impl Coordinator {
    /// Adds a member, or begins a new life of one that is there: whatever it had before is given up by that.
    ///
    /// # Errors
    /// In the outcome: `Mode`, `Invalid`, `TooMany`, `MemberInUse`, `InstanceInUse`.
    pub fn join(&mut self, join: Join, now: Now) -> Outcome<Assignment> {
        if let Err(e) = self.check_join(&join) {
            return Outcome::refused(e);
        }
        let (name, id) = (join.group.clone(), join.member.clone());
        let rules = self.settings.rules;
        if let Some(g) = self.groups.get_mut(&name)
            && let Some(m) = g.state.members.get(&id)
        {
            let same = m.incarnation == join.incarnation;
            // The very same join again: its answer was lost.
            if same && join.incarnation != 0 && join.attempt <= m.attempt && rules.repeated_joins_are_known {
                let alive = Alive {
                    confirm_until: g.alive.get(&id).and_then(|a| a.confirm_until),
                    ..Alive::new(m, now)
                };
                g.alive.insert(id.clone(), alive);
                return self.answer(Effects::default(), &name, &id);
            }
            if !same && join.incarnation != 0 && m.incarnation != 0 && !m.away {
                return Outcome::refused(GroupError::MemberInUse);
            }
        }
        if !self.groups.contains_key(&name) {
            if self.groups.len() >= self.settings.max_groups {
                let max = self.settings.max_groups;
                return Outcome::refused(GroupError::TooMany { what: "groups", max });
            }
            let config = self.config_of(&name).cloned();
            self.groups.insert(name.clone(), Group { config, ..Group::default() });
        }
        let Some(g) = self.groups.get(&name) else { return Outcome::refused(GroupError::UnknownGroup) };
        let before = match &join.instance {
            Some(instance) => match predecessor(g, instance, &id) {
                Ok(found) => found,
                Err(e) => return Outcome::refused(e),
            },
            None => None,
        };
        let is_new = !g.state.members.contains_key(&id) && before.is_none();
        if is_new && g.state.members.len() >= self.settings.max_members {
            let max = self.settings.max_members;
            return Outcome::refused(GroupError::TooMany { what: "members in a group", max });
        }
        let defaults = (self.settings.session, self.settings.rebalance);
        let effects = self.edit(&name, now, |g, dirty| enter(g, join, before, defaults, dirty));
        self.answer(effects, &name, &id)
    }

    fn check_join(&self, join: &Join) -> Result<(), GroupError> {
        self.check_mode(&join.group)?;
        let id = |field, text: &str| match text.len() {
            1..=MAX_ID if text.bytes().all(|b| b.is_ascii_graphic()) => Ok(()),
            _ => Err(GroupError::invalid(
                field,
                format!("1 to {MAX_ID} printable ASCII characters without a space"),
            )),
        };
        id("member", &join.member)?;
        if let Some(i) = &join.instance {
            id("instance", i)?;
        }
        if join.client.len() > MAX_CLIENT {
            return Err(GroupError::invalid("client", format!("at most {MAX_CLIENT} bytes")));
        }
        for (field, ms) in
            [("session_timeout_ms", join.session_ms), ("rebalance_timeout_ms", join.rebalance_ms)]
        {
            if ms.is_some_and(|v| !TIMEOUTS.contains(&v)) {
                let (least, most) = TIMEOUTS.into_inner();
                return Err(GroupError::invalid(field, format!("{least} to {most} ms")));
            }
        }
        self.check_subscription(&join.subscription)
    }

    pub(super) fn check_subscription(&self, s: &Subscription) -> Result<(), GroupError> {
        let max = self.settings.max_topics;
        if s.topics.len() > max || (s.topics.is_empty() && s.pattern.is_none()) {
            return Err(GroupError::invalid("subscription", format!("1 to {max} topics, or a pattern")));
        }
        if s.topics.iter().any(tidemill_types::TopicName::is_internal) {
            return Err(GroupError::invalid("subscription", "topics that do not belong to the system"));
        }
        s.pattern.as_deref().map_or(Ok(()), |p| topics::compile(p).map(drop))
    }

    pub(super) fn answer(
        &self,
        effects: Effects,
        group: &GroupName,
        member: &MemberId,
    ) -> Outcome<Assignment> {
        let answer = self.assignment(group, member).ok_or(GroupError::UnknownMember);
        Outcome { effects, answer }
    }
}

/// Who had the instance id: a member that went to come back. A live one keeps it.
fn predecessor(g: &Group, instance: &str, id: &MemberId) -> Result<Option<MemberId>, GroupError> {
    let mut others = g.state.members.iter().filter(|(m, _)| *m != id);
    match others.find(|(_, m)| m.instance.as_deref() == Some(instance)) {
        None => Ok(None),
        Some((other, m)) if m.away => Ok(Some(other.clone())),
        Some((other, _)) => Err(GroupError::InstanceInUse { member: other.to_string() }),
    }
}

fn enter(
    g: &mut Group,
    join: Join,
    before: Option<MemberId>,
    (session, rebalance): (std::time::Duration, std::time::Duration),
    dirty: &mut Dirty,
) {
    let id = join.member;
    let ms = |d: std::time::Duration| u32::try_from(d.as_millis()).unwrap_or(u32::MAX);
    let config = g.config.clone();
    let session_ms = join.session_ms.or(config.as_ref().and_then(|c| c.session_ms)).unwrap_or(ms(session));
    let rebalance_ms =
        join.rebalance_ms.or(config.as_ref().and_then(|c| c.rebalance_ms)).unwrap_or(ms(rebalance));
    // This very epoch is raised by the edit: whatever an earlier life knew is below it.
    let joined_epoch = g.state.epoch + 1;
    let mut m = Member {
        instance: join.instance,
        client: join.client,
        incarnation: join.incarnation,
        attempt: join.attempt,
        subscription: join.subscription,
        session_ms,
        rebalance_ms,
        joined_epoch,
        epoch: joined_epoch,
        ..Member::default()
    };
    if let Some(old) = g.state.members.remove(&id) {
        settle::free(g, &old, &id);
        // The target stays, so that it gets back what nobody else needs; and revisions are never used twice.
        m.target = old.target;
        m.revision = old.revision + 1;
    }
    if let Some(other) = before
        && let Some(old) = settle::remove(g, &other, dirty)
    {
        m.revision = m.revision.max(old.revision + 1);
        m.target = old.target;
    }
    g.alive.remove(&id);
    g.state.members.insert(id.clone(), m);
    dirty.group = true;
    dirty.assignment(&id);
}
