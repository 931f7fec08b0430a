//! The plan of a ConsumerGroup.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_types::{Assignor, StartAt};

use super::{Claim, ClusterGate};
use crate::{
    ConditionChange, ConsumerGroup, Outcome, Verdict,
    group::{GroupDeletionPolicy, GroupMode, Strategy, parse_partition, parse_position, validate},
};

/// Topic and index.
pub type TopicPartition = (String, u32);

/// How a group shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupWish {
    /// Name.
    pub name: String,
    /// Topics that it reads.
    pub topics: BTreeSet<String>,
    /// How partitions are shared out.
    pub assignor: Assignor,
    /// With [`Assignor::Static`]: partitions by instance.
    pub fixed: BTreeMap<String, BTreeSet<TopicPartition>>,
    /// Where it begins without a committed offset; `None`: the member decides.
    pub start_at: Option<StartAt>,
}

/// A group as the cluster has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSeen {
    /// How it is declared and configured; `None`: not at all, though members may be there.
    pub config: Option<GroupWish>,
    /// Whose it is.
    pub claim: Option<Claim>,
    /// The object of that claim is known to be gone.
    pub holder_gone: bool,
    /// Declared resets that were carried out, id and where to, the newest last.
    pub resets: Vec<(String, String)>,
    /// `empty`, `stable`, `rebalancing`.
    pub state: String,
    /// Members.
    pub members: u32,
    /// Who reads what.
    pub assignments: BTreeMap<String, BTreeSet<TopicPartition>>,
    /// Records behind, if known.
    pub lag: Option<u64>,
    /// Declared topics that do not exist.
    pub missing: BTreeSet<String>,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupObserved {
    /// Whether the cluster can be worked on.
    pub gate: ClusterGate,
    /// The group; `None`: nobody knows it.
    pub group: Option<GroupSeen>,
    /// More records behind than the object allows, steadily; `None`: no limit, or not known.
    pub behind: Option<bool>,
}

/// The object.
#[derive(Clone, Copy, Debug)]
pub struct GroupObject<'a> {
    /// The ConsumerGroup.
    pub group: &'a ConsumerGroup,
    /// Under which it claims.
    pub uid: &'a str,
    /// For people: [`super::owner`].
    pub owner: &'a str,
    /// It is being deleted.
    pub deleted: bool,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupAction {
    /// Claim and configure it.
    Declare {
        /// How it shall be.
        wish: GroupWish,
        /// Under this claim.
        claim: Claim,
        /// Taking over from this one, whose object is gone.
        from_uid: Option<String>,
    },
    /// Move the committed offsets, once for this id: the cluster remembers it.
    Reset {
        /// Name of the group.
        name: String,
        /// Its topics; none: whatever it has committed.
        topics: BTreeSet<String>,
        /// The id.
        id: String,
        /// Where to, as in the spec.
        shown: String,
        /// The same.
        to: StartAt,
        /// Members are removed first; they join again.
        evict: bool,
    },
    /// Free the claim and touch nothing else.
    Release {
        /// Name of the group.
        name: String,
        /// The uid that holds it.
        uid: String,
    },
    /// The group goes with its configuration and its committed offsets.
    Remove {
        /// Name of the group.
        name: String,
        /// Only when this uid holds the claim.
        uid: String,
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
    /// Each difference as `field: old -> new`.
    pub differences: Vec<String>,
}

impl GroupPlan {
    fn new(outcome: Outcome, reason: &str, message: impl Into<String>) -> Self {
        Self::of(Verdict::new(outcome, reason, message))
    }

    fn of(verdict: Verdict) -> Self {
        Self { actions: Vec::new(), verdict, conditions: Vec::new(), differences: Vec::new() }
    }
}

/// The wish of a ConsumerGroup whose spec is valid.
fn wish(group: &ConsumerGroup) -> GroupWish {
    let s = &group.spec;
    let assignment = s.assignment.clone().unwrap_or_default();
    let parts = |all: Vec<String>| -> BTreeSet<TopicPartition> {
        let known = all.iter().filter_map(|p| parse_partition(p));
        known.map(|(topic, index)| (topic.to_owned(), index)).collect()
    };
    let fixed: BTreeMap<_, _> =
        assignment.fixed.into_iter().map(|(member, p)| (member, parts(p.0))).collect();
    let assignor = match assignment.strategy {
        _ if !fixed.is_empty() => Assignor::Static,
        None | Some(Strategy::CooperativeSticky) => Assignor::CooperativeSticky,
        Some(Strategy::Range) => Assignor::Range,
        Some(Strategy::Uniform) => Assignor::Uniform,
    };
    GroupWish {
        name: group.group_name().to_owned(),
        topics: s.topics.iter().cloned().collect(),
        assignor,
        fixed,
        start_at: s.start_at.as_deref().and_then(parse_position),
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
        return GroupPlan::new(Outcome::Paused, "Paused", "spec.paused is true: nothing is changed");
    }
    if let Some(first) = validate(object.group, None).first() {
        let why = format!("{}: {}", first.field, first.message);
        return GroupPlan::new(Outcome::Rejected, "InvalidSpec", why);
    }
    if spec.mode != GroupMode::Stream {
        let why = format!("spec.mode: {:?} is not in this version, Stream is", spec.mode);
        return GroupPlan::new(Outcome::Rejected, "Unsupported", why);
    }
    if let Some(verdict) = seen.gate.verdict() {
        return GroupPlan::of(verdict);
    }
    let wish = wish(object.group);
    let none = GroupSeen::default();
    let group = seen.group.as_ref().unwrap_or(&none);
    let (mut plan, has) = claim(object, &wish, group);
    if !has {
        return plan;
    }
    reset_once(&mut plan, object, &wish, group);
    plan.conditions.push(match (spec.limits.and_then(|l| l.max_lag), seen.behind) {
        (Some(max), Some(behind)) => lag_condition(max, behind),
        _ => ConditionChange::absent("LagWithinLimit"),
    });
    plan.conditions.push(match group.missing.first() {
        // What is gone from the spec is not missed, what was added is told by the next look.
        Some(first) if group.config.as_ref().is_some_and(|c| c.topics == wish.topics) => {
            let more = group.missing.len() - 1;
            let others = if more > 0 { format!(" and {more} more") } else { String::new() };
            let why = format!("topic {first}{others} does not exist: the group reads it when it does");
            ConditionChange::new("TopicsFound", false, "TopicMissing", why)
        }
        _ => ConditionChange::absent("TopicsFound"),
    });
    plan
}

/// Rule 8, for groups: one object wins, the others say whom they lost to. Answers whether this one has it.
fn claim(object: GroupObject<'_>, wish: &GroupWish, group: &GroupSeen) -> (GroupPlan, bool) {
    let name = &wish.name;
    let holder = group.claim.as_ref();
    // An object that was made anew under its name is the same owner.
    let other = holder.filter(|h| h.uid != object.uid && h.owner != object.owner);
    if let Some(h) = other.filter(|_| !group.holder_gone) {
        let why = format!("group {name} belongs to {}: this one takes over when it is free", h.owner);
        return (GroupPlan::new(Outcome::Rejected, "Conflict", why), false);
    }
    let own = Claim { uid: object.uid.to_owned(), owner: object.owner.to_owned() };
    if holder == Some(&own) && group.config.as_ref() == Some(wish) {
        let why = format!("group {name} is as specified");
        return (GroupPlan::new(Outcome::Done, "Ready", why), true);
    }
    let mut plan =
        GroupPlan::new(Outcome::Working, "Configuring", format!("group {name} is being configured"));
    plan.differences = differences(wish, group.config.as_ref());
    plan.actions.push(GroupAction::Declare {
        wish: wish.clone(),
        claim: own,
        from_uid: other.map(|h| h.uid.clone()),
    });
    (plan, true)
}

/// Once per new id; applying the same manifest again does nothing, whoever applies it.
fn reset_once(plan: &mut GroupPlan, object: GroupObject<'_>, wish: &GroupWish, group: &GroupSeen) {
    let Some(reset) = &object.group.spec.reset else { return };
    if group.resets.iter().any(|(id, _)| *id == reset.id) {
        return;
    }
    // Checked with the rest of the spec.
    let Some(to) = parse_position(&reset.to) else { return };
    if reset.require_empty && group.members > 0 {
        let why = format!("reset {} waits until the group has no members", reset.id);
        plan.verdict = Verdict::new(Outcome::Working, "WaitingForEmptyGroup", why);
        return;
    }
    let why = format!("reset {} to {} is being carried out", reset.id, reset.to);
    plan.verdict = Verdict::new(Outcome::Working, "Resetting", why);
    plan.differences.push(format!("reset: {} -> {}", reset.id, reset.to));
    plan.actions.push(GroupAction::Reset {
        name: wish.name.clone(),
        topics: wish.topics.clone(),
        id: reset.id.clone(),
        shown: reset.to.clone(),
        to,
        evict: !reset.require_empty,
    });
}

/// Names no number, so that it does not move with every record (rule 3).
fn lag_condition(max: i64, behind: bool) -> ConditionChange {
    let (reason, message) = if behind {
        ("AboveLimit", format!("the group is more than {max} records behind"))
    } else {
        ("WithinLimit", format!("the group is at most {max} records behind"))
    };
    ConditionChange::new("LagWithinLimit", !behind, reason, message)
}

/// What is wished and not so.
fn differences(wish: &GroupWish, old: Option<&GroupWish>) -> Vec<String> {
    let Some(old) = old else { return Vec::new() };
    let topics = |w: &GroupWish| w.topics.iter().cloned().collect::<Vec<_>>().join(",");
    let fixed = |w: &GroupWish| {
        let of = |(member, parts): (&String, &BTreeSet<TopicPartition>)| {
            let parts: Vec<String> = parts.iter().map(|(t, p)| format!("{t}/{p}")).collect();
            format!("{member}={}", parts.join(","))
        };
        w.fixed.iter().map(of).collect::<Vec<_>>().join(" ")
    };
    let pairs = [
        ("topics", topics(old), topics(wish)),
        ("assignment.strategy", shown_assignor(old.assignor), shown_assignor(wish.assignor)),
        ("assignment.static", fixed(old), fixed(wish)),
        ("startAt", shown_start(old.start_at), shown_start(wish.start_at)),
    ];
    let text = |t: String| if t.is_empty() { "(none)".to_owned() } else { t };
    let differ = pairs.into_iter().filter(|(_, old, new)| old != new);
    differ.map(|(field, old, new)| format!("{field}: {} -> {}", text(old), text(new))).collect()
}

/// An assignor as in a spec.
#[must_use]
pub fn shown_assignor(a: Assignor) -> String {
    match a {
        Assignor::CooperativeSticky => "cooperative-sticky",
        Assignor::Range => "range",
        Assignor::Uniform => "uniform",
        Assignor::Static => "static",
    }
    .to_owned()
}

/// A start as in a spec; empty for none.
#[must_use]
pub fn shown_start(at: Option<StartAt>) -> String {
    match at {
        None => String::new(),
        Some(StartAt::Earliest) => "earliest".to_owned(),
        Some(StartAt::Latest) => "latest".to_owned(),
        Some(StartAt::Timestamp(ms)) => k8s_openapi::jiff::Timestamp::from_millisecond(ms)
            .map_or_else(|_| format!("{ms} ms"), |t| t.to_string()),
    }
}

/// The delete branch: what is gone is done, somebody else's is left alone (rules 1 and 8).
fn delete(object: GroupObject<'_>, seen: &GroupObserved) -> GroupPlan {
    let done = |why: &str| GroupPlan::new(Outcome::Done, "Deleted", why);
    let retain = object.group.spec.deletion_policy == GroupDeletionPolicy::Retain;
    match &seen.gate {
        ClusterGate::Missing { cluster } => return done(&format!("Cluster {cluster} is gone")),
        ClusterGate::NotReady { why } if !retain => {
            let why = format!("the group's deletion waits for the Cluster: {why}");
            return GroupPlan::new(Outcome::Retrying, "WaitingForCluster", why);
        }
        ClusterGate::NotReady { .. } => return done("configuration and committed offsets stay"),
        // What was never allowed made nothing.
        ClusterGate::Forbidden { .. } => return done("the Cluster never took it"),
        ClusterGate::Open => {}
    }
    let own = |g: &&GroupSeen| g.claim.as_ref().is_some_and(|c| c.uid == object.uid);
    let Some(group) = seen.group.as_ref().filter(own) else {
        return done("no group is claimed by this object");
    };
    let (name, uid) = (object.group.group_name().to_owned(), object.uid.to_owned());
    if retain {
        let why = "configuration and committed offsets stay (deletionPolicy Retain)";
        let mut plan = GroupPlan::new(Outcome::Working, "Deleting", why);
        plan.actions.push(GroupAction::Release { name, uid });
        return plan;
    }
    if group.members > 0 {
        let why = format!("group {name} goes when it has no members any more");
        return GroupPlan::new(Outcome::Working, "WaitingForEmptyGroup", why);
    }
    let mut plan = GroupPlan::new(Outcome::Working, "Deleting", format!("group {name} is being removed"));
    plan.actions.push(GroupAction::Remove { name, uid });
    plan
}
