//! Makes target, epoch, revocations and grants of a group follow what its members, topics and configuration are.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_types::TopicId;

use crate::{
    Group, MemberId, Now, Rules, Topics,
    assignor::{self, Candidate},
    coordinator::Dirty,
    model::{Alive, Member},
    topics::Patterns,
};

/// After any change of a group. `dirty.group` says that members or subscriptions changed: that is a new epoch in any case.
pub(crate) fn settle(g: &mut Group, topics: &Topics, rules: Rules, now: Now, dirty: &mut Dirty) {
    retarget(g, topics, now, dirty);
    let ids: Vec<MemberId> = g.state.members.keys().cloned().collect();
    // Revocations of all first: then it does not matter in which order members come.
    for id in &ids {
        revoke(g, id, dirty);
    }
    for id in &ids {
        advance(g, id, rules, dirty);
    }
    for id in &ids {
        let Some(m) = g.state.members.get(id) else { continue };
        let alive = g.alive.entry(id.clone()).or_insert_with(|| Alive::new(m, now));
        alive.confirm_until = match (m.revoking.is_empty(), alive.confirm_until) {
            (true, _) => None,
            (false, Some(t)) => Some(t),
            (false, None) => Some(now.mono + std::time::Duration::from_millis(m.rebalance_ms.into())),
        };
    }
    g.alive.retain(|id, _| g.state.members.contains_key(id));
}

/// The target is computed in the very step that raises the epoch, so a group's epoch is never ahead of its assignment,
/// empty or not (2.8 bug 13).
fn retarget(g: &mut Group, topics: &Topics, now: Now, dirty: &mut Dirty) {
    let mut patterns = Patterns::default();
    let mut counts: BTreeMap<TopicId, u32> = BTreeMap::new();
    let mut candidates: BTreeMap<MemberId, Candidate> = BTreeMap::new();
    for (id, m) in &g.state.members {
        let wants = topics.resolve(&m.subscription, &mut patterns);
        candidates.insert(
            id.clone(),
            Candidate {
                instance: m.instance.clone(),
                topics: wants.keys().copied().collect(),
                before: m.target.clone(),
            },
        );
        counts.extend(wants);
    }
    let named = |n: &tidemill_types::TopicName| topics.get(n).map(|t| t.id);
    let target = assignor::assign(g.config.as_deref(), &candidates, &counts, named);
    let moved = target.iter().any(|(id, t)| g.state.members.get(id).is_some_and(|m| m.target != *t));
    if !dirty.group && !moved && counts == g.state.topics {
        return;
    }
    dirty.group = true;
    g.state.epoch += 1;
    g.state.topics = counts;
    g.state.empty_since_ms = match (g.state.members.is_empty(), g.state.empty_since_ms) {
        (false, _) => None,
        (true, Some(t)) => Some(t),
        (true, None) => Some(now.wall_ms),
    };
    for (id, t) in target {
        if let Some(m) = g.state.members.get_mut(&id)
            && m.target != t
        {
            m.target = t;
            dirty.member(&id);
        }
    }
}

/// What a member has and shall not have is to be given up.
fn revoke(g: &mut Group, id: &MemberId, dirty: &mut Dirty) {
    let Some(m) = g.state.members.get_mut(id) else { return };
    let extra: Vec<_> = m.assigned.keys().filter(|p| !m.target.contains(p)).copied().collect();
    if extra.is_empty() {
        return;
    }
    for p in extra {
        // With the epoch of its assignment: commits of it are judged by that until it is confirmed (2.8 bug 11).
        if let Some(epoch) = m.assigned.remove(&p) {
            if m.away {
                // It stopped before it went.
                g.owners.remove(&p);
            } else {
                m.revoking.insert(p, epoch);
            }
        }
    }
    m.revision += 1;
    dirty.assignment(id);
}

/// A member that owes nothing takes part in the group's epoch, and gets what nobody has.
fn advance(g: &mut Group, id: &MemberId, rules: Rules, dirty: &mut Dirty) {
    let Some(m) = g.state.members.get_mut(id) else { return };
    if !m.revoking.is_empty() {
        return;
    }
    if m.epoch != g.state.epoch {
        m.epoch = g.state.epoch;
        dirty.assignment(id);
    }
    if m.away {
        return;
    }
    // Assigned to somebody, or not yet given up by somebody: not granted (2.8 bug 15).
    let free: Vec<_> = m
        .target
        .iter()
        .filter(|p| !(m.assigned.contains_key(p) || rules.grants_wait && g.owners.contains_key(p)))
        .copied()
        .collect();
    if free.is_empty() {
        return;
    }
    for p in free {
        m.assigned.insert(p, m.epoch);
        g.owners.insert(p, id.clone());
    }
    m.revision += 1;
    dirty.assignment(id);
}

/// A member is gone: what it had is free.
pub(crate) fn remove(g: &mut Group, id: &MemberId, dirty: &mut Dirty) -> Option<Member> {
    let m = g.state.members.remove(id)?;
    free(g, &m, id);
    g.alive.remove(id);
    dirty.group = true;
    dirty.assignment(id);
    Some(m)
}

/// What a member had is free.
pub(crate) fn free(g: &mut Group, m: &Member, id: &MemberId) {
    for p in m.assigned.keys().chain(m.revoking.keys()) {
        if g.owners.get(p) == Some(id) {
            g.owners.remove(p);
        }
    }
}

/// Confirms the revocations that are not in `owned`; true when there was one.
pub(crate) fn confirm(
    g: &mut Group,
    id: &MemberId,
    owned: &BTreeSet<tidemill_types::PartitionId>,
    dirty: &mut Dirty,
) -> bool {
    let Some(m) = g.state.members.get_mut(id) else { return false };
    let done: Vec<_> = m.revoking.keys().filter(|p| !owned.contains(p)).copied().collect();
    for p in &done {
        m.revoking.remove(p);
        g.owners.remove(p);
    }
    if done.is_empty() {
        return false;
    }
    m.revision += 1;
    dirty.assignment(id);
    true
}

impl Alive {
    pub(crate) fn new(m: &Member, now: Now) -> Self {
        let ms = |n: u32| std::time::Duration::from_millis(n.into());
        Self {
            expires: now.mono + ms(m.session_ms),
            confirm_until: (!m.revoking.is_empty()).then(|| now.mono + ms(m.rebalance_ms)),
        }
    }
}
