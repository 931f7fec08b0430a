//! The plan of a ConsumerGroup.

use std::collections::BTreeMap;

use super::ClusterGate;
use crate::{
    ConditionChange, ConsumerGroup, Outcome, Verdict,
    group::{GroupDeletionPolicy, GroupMode, Reset, Strategy, validate},
};

/// How a group shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupWish {
    /// Name.
    pub name: String,
    /// Topics that it reads, sorted.
    pub topics: Vec<String>,
    /// What it delivers.
    pub mode: GroupMode,
    /// How partitions are shared out, unless by hand.
    pub strategy: Strategy,
    /// By hand: partitions as TOPIC/PARTITION by member, sorted.
    pub fixed: BTreeMap<String, Vec<String>>,
    /// `earliest`, `latest` or a time; `None`: the member decides.
    pub start_at: Option<String>,
}

/// A group as the cluster has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSeen {
    /// How it is configured; `None`: not at all, though members may be there.
    pub config: Option<GroupWish>,
    /// Id of the last reset that was carried out.
    pub last_reset: Option<String>,
    /// Members.
    pub members: u32,
    /// Records behind, if known.
    pub lag: Option<u64>,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupObserved {
    /// Whether the cluster can be worked on.
    pub gate: ClusterGate,
    /// The group; `None`: nobody knows it.
    pub group: Option<GroupSeen>,
    /// The cluster takes configurations of groups; otherwise why not.
    pub supported: Result<(), String>,
}

/// The object.
#[derive(Clone, Copy, Debug)]
pub struct GroupObject<'a> {
    /// The ConsumerGroup.
    pub group: &'a ConsumerGroup,
    /// It is being deleted.
    pub deleted: bool,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupAction {
    /// Store the configuration.
    Configure(GroupWish),
    /// Move the committed offsets and remember the id.
    Reset {
        /// Name of the group.
        name: String,
        /// Its topics.
        topics: Vec<String>,
        /// What is asked for.
        reset: Reset,
    },
    /// Forget the configuration.
    Remove {
        /// Name of the group.
        name: String,
    },
}

/// What to do, and what to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    /// In order.
    pub actions: Vec<GroupAction>,
    /// Row of the verdict table.
    pub verdict: Verdict,
    /// Conditions besides those of the verdict.
    pub conditions: Vec<ConditionChange>,
}

impl GroupPlan {
    fn new(outcome: Outcome, reason: &str, message: impl Into<String>) -> Self {
        let verdict = Verdict::new(outcome, reason, message);
        Self { actions: Vec::new(), verdict, conditions: Vec::new() }
    }
}

/// The wish of a ConsumerGroup.
fn wish(group: &ConsumerGroup) -> GroupWish {
    let s = &group.spec;
    let mut topics = s.topics.clone();
    topics.sort_unstable();
    topics.dedup();
    let assignment = s.assignment.clone().unwrap_or_default();
    let sorted = |mut v: Vec<String>| {
        v.sort_unstable();
        v
    };
    let fixed = assignment.fixed.into_iter().map(|(member, p)| (member, sorted(p.0))).collect();
    GroupWish {
        name: group.group_name().to_owned(),
        topics,
        mode: s.mode,
        strategy: assignment.strategy.unwrap_or(Strategy::CooperativeSticky),
        fixed,
        start_at: s.start_at.clone(),
    }
}

/// What there is to do for a ConsumerGroup.
#[must_use]
pub fn plan_group(object: GroupObject<'_>, seen: &GroupObserved) -> GroupPlan {
    if object.deleted {
        return delete(object, seen);
    }
    let spec = &object.group.spec;
    if spec.paused {
        return GroupPlan::new(Outcome::Paused, "Paused", "nothing is changed: spec.paused is true");
    }
    let violations = validate(object.group, None);
    if let Some(first) = violations.first() {
        return GroupPlan::new(
            Outcome::Rejected,
            "InvalidSpec",
            format!("{}: {}", first.field, first.message),
        );
    }
    if spec.mode != GroupMode::Stream {
        let why = format!("mode {:?} is not in this version: only Stream is", spec.mode);
        return GroupPlan::new(Outcome::Rejected, "NotSupported", why);
    }
    if let Some(verdict) = seen.gate.verdict() {
        return GroupPlan { actions: Vec::new(), verdict, conditions: Vec::new() };
    }
    if let Err(why) = &seen.supported {
        return GroupPlan::new(Outcome::Rejected, "NotSupported", why.clone());
    }
    let wish = wish(object.group);
    let group = seen.group.as_ref();
    let mut plan = if group.and_then(|g| g.config.as_ref()) != Some(&wish) {
        let mut plan = GroupPlan::new(
            Outcome::Working,
            "Configuring",
            format!("group {} is being configured", wish.name),
        );
        plan.actions.push(GroupAction::Configure(wish.clone()));
        plan
    } else {
        GroupPlan::new(Outcome::Done, "Settled", format!("group {} is as specified", wish.name))
    };
    if let Some(reset) =
        spec.reset.as_ref().filter(|r| group.and_then(|g| g.last_reset.as_ref()) != Some(&r.id))
    {
        reset_once(&mut plan, &wish, reset, group.map_or(0, |g| g.members));
    }
    if let Some((max, lag)) = spec.limits.and_then(|l| l.max_lag).zip(group.and_then(|g| g.lag)) {
        plan.conditions.push(lag_condition(max, lag));
    }
    plan
}

/// Once per new id; applying the same manifest again does nothing.
fn reset_once(plan: &mut GroupPlan, wish: &GroupWish, reset: &Reset, members: u32) {
    if reset.require_empty && members > 0 {
        let why = format!("reset {} waits until the group is empty: {members} members", reset.id);
        plan.verdict = Verdict::new(Outcome::Working, "WaitingForEmptyGroup", why);
        return;
    }
    plan.verdict =
        Verdict::new(Outcome::Working, "Resetting", format!("reset {} is being carried out", reset.id));
    plan.actions.push(GroupAction::Reset {
        name: wish.name.clone(),
        topics: wish.topics.clone(),
        reset: reset.clone(),
    });
}

/// Names the bucket and not the number, so that it does not move with every record (rule 3).
fn lag_condition(max: i64, lag: u64) -> ConditionChange {
    let above = i64::try_from(lag).unwrap_or(i64::MAX) > max;
    let (reason, message) = if above {
        ("AboveLimit", format!("the group is more than {max} records behind"))
    } else {
        ("WithinLimit", format!("the group is at most {max} records behind"))
    };
    ConditionChange::new("LagWithinLimit", !above, reason, message)
}

fn delete(object: GroupObject<'_>, seen: &GroupObserved) -> GroupPlan {
    let done = |why: &str| GroupPlan::new(Outcome::Done, "Deleted", why);
    if object.group.spec.deletion_policy == GroupDeletionPolicy::Retain {
        return done("configuration and committed offsets stay (deletionPolicy Retain)");
    }
    match &seen.gate {
        ClusterGate::Missing { cluster } => return done(&format!("Cluster {cluster} is gone")),
        ClusterGate::NotReady { why } => {
            let why = format!("the group's deletion waits for the Cluster: {why}");
            return GroupPlan::new(Outcome::Retrying, "WaitingForCluster", why);
        }
        _ => {}
    }
    if seen.group.as_ref().is_none_or(|g| g.config.is_none()) {
        return done("there is no such configuration");
    }
    let name = object.group.group_name().to_owned();
    let mut plan = GroupPlan::new(Outcome::Working, "Deleting", format!("the configuration of {name} goes"));
    plan.actions.push(GroupAction::Remove { name });
    plan
}
