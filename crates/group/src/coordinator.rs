//! The coordinator of one partition of the offsets topic: all groups whose names hash to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tidemill_types::{GroupConfig, GroupMode, GroupName};

use crate::{
    Assignment, Declaration, Group, GroupError, GroupState, MemberId, Now, Settings, Summary, Topics,
    log::{self, Key, Record, Value},
    model::{Alive, Member},
};

/// What an operation leaves to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// To be appended, in order, before any answer of the operation is given.
    pub records: Vec<Record>,
    /// Members whose assignment changed; those that are gone are among them.
    pub changed: BTreeSet<(GroupName, MemberId)>,
}

/// An operation's answer with what it leaves to be done.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// To be done first. Empty when the operation was refused.
    pub effects: Effects,
    /// The answer.
    pub answer: Result<T, GroupError>,
}

impl<T> Outcome<T> {
    pub(crate) fn refused(e: GroupError) -> Self {
        Self { effects: Effects::default(), answer: Err(e) }
    }
}

/// All groups of one partition of the offsets topic.
#[derive(Clone, Debug, Default)]
pub struct Coordinator {
    pub(crate) settings: Settings,
    pub(crate) groups: BTreeMap<GroupName, Group>,
    pub(crate) topics: Arc<Topics>,
    configs: BTreeMap<GroupName, Arc<GroupConfig>>,
}

impl Coordinator {
    /// Without any group.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Applies one record of the log, in order.
    pub fn replay(&mut self, record: &Record) {
        let name = record.key.group().clone();
        if record.value.is_none() && !self.groups.contains_key(&name) {
            return;
        }
        let group = &mut self.groups.entry(name.clone()).or_default().state;
        match (&record.key, &record.value) {
            (Key::Group(_), Some(Value::Group(v))) => {
                group.epoch = v.epoch;
                group.empty_since_ms = v.empty_since_ms;
                group.topics.clone_from(&v.topics);
            }
            // The group's own record goes last: nothing of it is left.
            (Key::Group(_), _) => {
                self.groups.remove(&name);
            }
            (Key::Member(_, id), Some(Value::Member(m))) => {
                group.members.insert(id.as_str().into(), Member::clone(m));
            }
            (Key::Member(_, id), _) => {
                group.members.remove(id.as_str());
            }
            (Key::Offset(_, p), Some(Value::Offset(c))) => {
                group.offsets.insert(*p, c.clone());
            }
            (Key::Offset(_, p), _) => {
                group.offsets.remove(p);
            }
            (Key::Declared(_), Some(Value::Declared(d))) => group.declared.clone_from(d),
            (Key::Declared(_), _) => group.declared = Declaration::default(),
        }
    }

    /// The log was replayed: every member has its whole session from now on.
    pub fn loaded(&mut self, now: Now) {
        for (name, group) in &mut self.groups {
            group.config = self.configs.get(name).cloned();
            group.owners = BTreeMap::new();
            group.alive = BTreeMap::new();
            for (id, m) in &group.state.members {
                for p in m.assigned.keys().chain(m.revoking.keys()) {
                    group.owners.insert(*p, id.clone());
                }
                group.alive.insert(id.clone(), Alive::new(m, now));
            }
        }
    }

    /// The group's durable state, if anything of it is known.
    #[must_use]
    pub fn group(&self, name: &GroupName) -> Option<&GroupState> {
        self.groups.get(name).map(|g| &g.state)
    }

    /// The group as a whole.
    #[must_use]
    pub fn describe(&self, name: &GroupName) -> Option<&Group> {
        self.groups.get(name)
    }

    /// All durable state, by group: what a replay of the log gives.
    pub fn states(&self) -> impl Iterator<Item = (&GroupName, &GroupState)> {
        self.groups.iter().map(|(n, g)| (n, &g.state))
    }

    /// All groups in order of name.
    pub fn list(&self) -> impl Iterator<Item = Summary> {
        self.groups.iter().map(|(name, g)| Summary {
            name: name.clone(),
            epoch: g.state.epoch,
            members: g.state.members.len(),
            settled: g.is_settled(),
            offsets: g.state.offsets.len(),
            assignor: g.assignor(),
            claim: g.state.declared.claim.clone(),
        })
    }

    /// Number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is no group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// What a member has been told last, or would be told now.
    #[must_use]
    pub fn assignment(&self, group: &GroupName, member: &MemberId) -> Option<Assignment> {
        let g = self.groups.get(group)?;
        let m = g.state.members.get(member)?;
        Some(Assignment {
            group: group.clone(),
            member: member.clone(),
            epoch: m.epoch,
            revision: m.revision,
            assigned: m.assigned.iter().map(|(p, e)| (*p, *e)).collect(),
            revoking: m.revoking.iter().map(|(p, e)| (*p, *e)).collect(),
            session_ms: m.session_ms,
            rebalance_ms: m.rebalance_ms,
            start_at: g.config.as_ref().and_then(|c| c.start_at),
        })
    }

    /// The configuration of a group changed; `None`: it has none any more.
    pub fn set_config(&mut self, name: &GroupName, config: Option<Arc<GroupConfig>>, now: Now) -> Effects {
        match &config {
            Some(c) => self.configs.insert(name.clone(), c.clone()),
            None => self.configs.remove(name),
        };
        self.edit(name, now, |g, _| g.config = config)
    }

    /// The topics of the cluster changed.
    pub fn set_topics(&mut self, topics: Arc<Topics>, now: Now) -> Effects {
        self.topics = topics;
        let mut effects = Effects::default();
        let active: Vec<GroupName> =
            self.groups.iter().filter(|(_, g)| !g.state.members.is_empty()).map(|(n, _)| n.clone()).collect();
        for name in active {
            effects.merge(self.edit(&name, now, |_, _| {}));
        }
        effects
    }

    /// The configuration of a group that was set last.
    #[must_use]
    pub fn config_of(&self, name: &GroupName) -> Option<&Arc<GroupConfig>> {
        self.configs.get(name)
    }

    /// Groups that have a configuration.
    pub fn configured(&self) -> impl Iterator<Item = &GroupName> {
        self.configs.keys()
    }

    /// Groups of modes that this version does not serve.
    pub(crate) fn check_mode(&self, name: &GroupName) -> Result<(), GroupError> {
        match self.configs.get(name).map(|c| c.mode) {
            None | Some(GroupMode::Stream) => Ok(()),
            Some(mode) => Err(GroupError::Mode { mode }),
        }
    }

    /// Changes a group that exists, then makes its target, epoch and grants follow; the differences come back as records.
    pub(crate) fn edit(
        &mut self,
        name: &GroupName,
        now: Now,
        with: impl FnOnce(&mut Group, &mut Dirty),
    ) -> Effects {
        let Some(group) = self.groups.get_mut(name) else { return Effects::default() };
        let mut dirty = Dirty::default();
        with(group, &mut dirty);
        crate::settle::settle(group, &self.topics, self.settings.rules, now, &mut dirty);
        dirty.effects(name, group)
    }

    /// The records of everything, cut into parts of about `max_bytes`: those behind `after`, and where the next part goes
    /// on. Replayed behind any older records they give the same state.
    #[must_use]
    pub fn snapshot(&self, after: Option<&Key>, max_bytes: usize) -> (Vec<Record>, Option<Key>) {
        log::snapshot::part(&self.groups, after, max_bytes)
    }
}

/// What an edit touched.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    pub(crate) group: bool,
    pub(crate) members: BTreeSet<MemberId>,
    pub(crate) told: BTreeSet<MemberId>,
}

impl Dirty {
    /// A member's record has to be written.
    pub(crate) fn member(&mut self, id: &MemberId) {
        self.members.insert(id.clone());
    }

    /// Its assignment changed too.
    pub(crate) fn assignment(&mut self, id: &MemberId) {
        self.members.insert(id.clone());
        self.told.insert(id.clone());
    }

    fn effects(self, name: &GroupName, group: &Group) -> Effects {
        let mut records = Vec::with_capacity(self.members.len() + 1);
        if self.group {
            records.push(Record::group(name, &group.state));
        }
        for id in &self.members {
            records.push(Record::member(name, id, group.state.members.get(id)));
        }
        Effects { records, changed: self.told.into_iter().map(|id| (name.clone(), id)).collect() }
    }
}

impl Effects {
    /// Adds those of a later operation.
    pub fn merge(&mut self, other: Self) {
        self.records.extend(other.records);
        self.changed.extend(other.changed);
    }

    /// Nothing to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.changed.is_empty()
    }
}
