//! The world as a model: which steps there are, what they do, what must hold.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_group::{Coordinator, Leave};
use tidemill_types::PartitionId;

use super::{
    scope::GroupScope,
    world::{MEMBERS, Message, NOW, World, group, id},
};
use crate::{explore::Model, hash::Print};

/// A scope as a model.
#[derive(Clone, Debug)]
pub struct GroupModel(pub GroupScope);

/// A step.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A member begins a new life.
    Join(usize),
    /// A member tells what it holds.
    Beat(usize),
    /// A member takes up what is new, and gives nothing up yet.
    Take(usize),
    /// A member makes what it reads equal to what it was told.
    Apply(usize),
    /// A member commits.
    Commit(usize, PartitionId),
    /// A member leaves.
    Leave(usize),
    /// The coordinator removes a member that it does not hear.
    Expire(usize),
    /// Another coordinator.
    FailOver,
    /// The message with this number comes, and is gone or comes again later.
    Deliver(usize, bool),
}

impl Model for GroupModel {
    type State = World;
    type Action = Step;

    fn initial(&self) -> World {
        let mut coordinator = Coordinator::new(self.0.settings());
        coordinator.set_topics(self.0.topics(), NOW);
        let s = &self.0;
        World {
            coordinator,
            members: Default::default(),
            net: BTreeSet::new(),
            left: [s.joins, s.beats, s.commits, s.leaves, s.expiries, s.fail_overs, s.twice],
            broken: None,
        }
    }

    fn actions(&self, w: &World, out: &mut Vec<Step>) {
        for m in 0..MEMBERS {
            let me = &w.members[m];
            if w.left[0] > 0 {
                out.push(Step::Join(m));
            }
            if let Some(told) = &me.told {
                if w.left[1] > 0 {
                    out.push(Step::Beat(m));
                }
                if told.assigned.keys().any(|p| !me.holding.contains_key(p)) {
                    out.push(Step::Take(m));
                }
                if me.applied != told.revision || me.holding != told.assigned {
                    out.push(Step::Apply(m));
                }
                if w.left[2] > 0 {
                    out.extend(me.holding.keys().map(|p| Step::Commit(m, *p)));
                }
                if w.left[3] > 0 {
                    out.push(Step::Leave(m));
                }
            }
            if w.left[4] > 0 && w.coordinator.assignment(&group(), &id(m)).is_some() {
                out.push(Step::Expire(m));
            }
        }
        if w.left[5] > 0 {
            out.push(Step::FailOver);
        }
        for n in 0..w.net.len() {
            out.push(Step::Deliver(n, false));
            if w.left[6] > 0 {
                out.push(Step::Deliver(n, true));
            }
        }
    }

    fn apply(&self, w: &World, step: Step) -> World {
        let mut w = w.clone();
        match step {
            Step::Join(m) => {
                w.left[0] -= 1;
                let message = w.join(m);
                w.net.insert(message);
            }
            Step::Beat(m) => {
                w.left[1] -= 1;
                let message = w.beat(m);
                w.net.extend(message);
            }
            Step::Take(m) => w.apply(m, false),
            Step::Apply(m) => w.apply(m, true),
            Step::Commit(m, p) => {
                w.left[2] -= 1;
                let me = &w.members[m];
                if let (Some(t), Some(granted)) = (&me.told, me.holding.get(&p)) {
                    let message =
                        Message::Commit { m, attempt: me.attempt, epoch: t.epoch, p, granted: *granted };
                    w.net.insert(message);
                }
            }
            Step::Leave(m) => {
                w.left[3] -= 1;
                let me = &mut w.members[m];
                if let Some(t) = me.told.take() {
                    let message = Message::Leave { m, attempt: me.attempt, epoch: t.epoch };
                    me.holding.clear();
                    me.applied = 0;
                    w.net.insert(message);
                }
            }
            Step::Expire(m) => {
                w.left[4] -= 1;
                if let Some(a) = w.coordinator.assignment(&group(), &id(m)) {
                    let gone = Leave { group: group(), member: id(m), epoch: a.epoch, comes_back: false };
                    let life =
                        w.coordinator.group(&group()).and_then(|g| Some(g.members.get(&id(m))?.attempt));
                    w.coordinator.leave(&gone, NOW);
                    w.members[m].expired |= life == Some(w.members[m].attempt);
                }
            }
            Step::FailOver => {
                w.left[5] -= 1;
                w.fail_over(&self.0);
            }
            Step::Deliver(n, again) => {
                if let Some(message) = w.net.iter().nth(n).cloned() {
                    if again {
                        w.left[6] -= 1;
                    } else {
                        w.net.remove(&message);
                    }
                    w.deliver(message);
                }
            }
        }
        w
    }

    fn fingerprint(&self, w: &World) -> u128 {
        let groups: Vec<_> = w.coordinator.states().collect();
        Print::of(&format!("{groups:?}{:?}{:?}{:?}{:?}", w.members, w.net, w.left, w.broken))
    }

    fn violated(&self, w: &World) -> Option<String> {
        if let Some(what) = &w.broken {
            return Some(what.clone());
        }
        let mut holders: BTreeMap<PartitionId, usize> = BTreeMap::new();
        for m in (0..MEMBERS).filter(|m| w.is_live(*m)) {
            let known = w.coordinator.group(&group()).and_then(|g| g.members.get(&id(m)));
            for p in w.members[m].holding.keys() {
                if let Some(other) = holders.insert(*p, m) {
                    return Some(format!("O: {p} is held by m{other} and m{m}"));
                }
                if known.is_none_or(|k| !k.assigned.contains_key(p) && !k.revoking.contains_key(p)) {
                    return Some(format!("H: m{m} holds {p} and the coordinator does not know it"));
                }
            }
        }
        // Costly: of each state whose fingerprint says so, and of all that are near the end.
        if self.fingerprint(w).is_multiple_of(16) { w.heals(&self.0).err() } else { None }
    }

    fn describe(&self, w: &World, step: Step) -> String {
        match step {
            Step::Deliver(n, again) => {
                let message = w.net.iter().nth(n);
                format!("deliver{} {message:?}", if again { " (and again later)" } else { "" })
            }
            other => format!("{other:?}"),
        }
    }
}
