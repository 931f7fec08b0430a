//! The plan of a Topic.

use std::collections::BTreeMap;

use super::ClusterGate;
use crate::{
    ConditionChange, Outcome, Topic, Verdict,
    cluster::TopicDefaults,
    topic::{Adoption, DeletionPolicy, TopicConfigWish as TopicWish, validate, wish},
};

/// Who a topic belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Identity of the object.
    pub uid: String,
    /// For people.
    pub owner: String,
}

/// A deleted topic whose records are still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// When they go, ms since the Unix epoch.
    pub purge_at_ms: i64,
    /// Whose it was.
    pub former: Option<Claim>,
}

/// A topic as the cluster has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSeen {
    /// Its id.
    pub id: u64,
    /// Partitions.
    pub partitions: u32,
    /// Every key with its effective value.
    pub config: BTreeMap<String, String>,
    /// Whose it is.
    pub claim: Option<Claim>,
    /// Deleted, not yet purged.
    pub tombstone: Option<Tombstone>,
    /// Partitions that no broker owns.
    pub without_owner: u32,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicObserved {
    /// Whether the cluster can be worked on.
    pub gate: ClusterGate,
    /// The topic; `None`: there is none.
    pub topic: Option<TopicSeen>,
    /// Effective values of the keys that a topic does not set.
    pub defaults: BTreeMap<String, String>,
    /// The cluster gives no topic more copies; `None` = as asked.
    pub max_copies: Option<u8>,
}

/// The object.
#[derive(Clone, Copy, Debug)]
pub struct TopicObject<'a> {
    /// The Topic.
    pub topic: &'a Topic,
    /// Under which it claims.
    pub uid: &'a str,
    /// For people: [`super::owner`].
    pub owner: &'a str,
    /// It is being deleted.
    pub deleted: bool,
    /// It has been Ready in this generation: a broker that restarts later is the cluster's business, and Ready does not flicker
    /// (rule 3).
    pub was_ready: bool,
    /// What its Cluster says of Topics that do not say otherwise.
    pub defaults: Option<&'a TopicDefaults>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicAction {
    /// Make it be so; creates, changes, adopts or undeletes.
    Apply {
        /// How it shall be.
        wish: TopicWish,
        /// Under this claim.
        claim: Claim,
        /// Of a topic that nobody claims.
        adoption: Adoption,
    },
    /// Make it a tombstone and free the claim.
    Delete {
        /// Name of the topic.
        name: String,
        /// Only when this uid holds the claim.
        uid: String,
        /// Records are kept for so long, ms.
        purge_after_ms: i64,
        /// Only when it has no records.
        if_empty: bool,
    },
    /// Free the claim and touch nothing else.
    Release {
        /// Name of the topic.
        name: String,
        /// The uid that holds it.
        uid: String,
    },
}

/// What to do, and what to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPlan {
    /// In order.
    pub actions: Vec<TopicAction>,
    /// Row of the verdict table.
    pub verdict: Verdict,
    /// Conditions besides those of the verdict.
    pub conditions: Vec<ConditionChange>,
    /// Each difference as `field: old -> new`.
    pub differences: Vec<String>,
    /// Wishes that are allowed and not wise.
    pub warnings: Vec<String>,
}

impl TopicPlan {
    fn new(verdict: Verdict) -> Self {
        let (actions, conditions) = (Vec::new(), Vec::new());
        Self { actions, verdict, conditions, differences: Vec::new(), warnings: Vec::new() }
    }

    fn rejected(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Verdict::new(Outcome::Rejected, reason, message))
    }

    /// Nothing is left to be done or waited for.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.actions.is_empty() && self.verdict.outcome == Outcome::Done
    }
}

/// What there is to do for a Topic.
#[must_use]
pub fn plan_topic(object: TopicObject<'_>, seen: &TopicObserved) -> TopicPlan {
    // Rule 1: the deletion goes before every gate but the one that nothing can be done through.
    if object.deleted {
        return delete(object, seen);
    }
    let spec = &object.topic.spec;
    if spec.paused {
        return TopicPlan::new(Verdict::new(
            Outcome::Paused,
            "Paused",
            "spec.paused is true: nothing is changed",
        ));
    }
    let violations = validate(object.topic, None);
    if let Some(first) = violations.first() {
        let others = violations.len() - 1;
        let more = if others > 0 { format!(" (and {others} more)") } else { String::new() };
        return TopicPlan::rejected("InvalidSpec", format!("{}: {}{more}", first.field, first.message));
    }
    if let Some(verdict) = seen.gate.verdict() {
        return TopicPlan::new(verdict);
    }
    let name = object.topic.metadata.name.as_deref().unwrap_or_default();
    let wish = match wish(name, spec, object.defaults) {
        Ok(wish) => wish,
        Err(r) => {
            let reason = if r.unsupported { "Unsupported" } else { "InvalidSpec" };
            return TopicPlan::rejected(reason, r.to_string());
        }
    };
    let mut plan = match &seen.topic {
        None => apply(object, &wish, "Creating", format!("topic {} is being created", wish.name)),
        Some(topic) => of_existing(object, &wish, topic, seen),
    };
    plan.warnings.clone_from(&wish.warnings);
    if plan.verdict.outcome != Outcome::Rejected {
        plan.conditions = conditions(&wish, seen);
    }
    plan
}

fn own_claim(object: TopicObject<'_>) -> Claim {
    Claim { uid: object.uid.to_owned(), owner: object.owner.to_owned() }
}

fn apply(object: TopicObject<'_>, wish: &TopicWish, reason: &str, message: String) -> TopicPlan {
    let mut plan = TopicPlan::new(Verdict::new(Outcome::Working, reason, message));
    plan.actions = vec![TopicAction::Apply {
        wish: wish.clone(),
        claim: own_claim(object),
        adoption: object.topic.spec.adoption,
    }];
    plan
}

fn of_existing(
    object: TopicObject<'_>,
    wish: &TopicWish,
    topic: &TopicSeen,
    seen: &TopicObserved,
) -> TopicPlan {
    let name = &wish.name;
    let differences = differences(wish, topic, seen);
    let shrinks = wish.partitions < topic.partitions;
    let adoption = object.topic.spec.adoption;
    let mut plan = if let Some(t) = &topic.tombstone {
        let same = t.former.as_ref().is_none_or(|f| f.owner == object.owner || f.uid == object.uid);
        let by = t.former.as_ref().map_or("nobody", |f| f.owner.as_str());
        let allowed =
            same || adoption == Adoption::Take || (adoption == Adoption::IfMatches && differences.is_empty());
        if !allowed {
            let why = format!(
                "topic {name} was deleted by {by} and is not purged yet; adoption Take brings it back"
            );
            return TopicPlan::rejected("Tombstoned", why);
        }
        if shrinks {
            return shrink(wish, topic);
        }
        apply(object, wish, "Undeleting", format!("topic {name}, deleted by {by}, is being brought back"))
    } else {
        match &topic.claim {
            Some(c) if c.uid == object.uid => {}
            // Rule 8: one wins, the loser says whom it lost to, and takes over when it is free.
            Some(c) => {
                return TopicPlan::rejected("Conflict", format!("topic {name} is claimed by {}", c.owner));
            }
            None if adoption == Adoption::Fail => {
                let why = format!(
                    "topic {name} exists and is claimed by nobody; set adoption to IfMatches or Take"
                );
                return TopicPlan::rejected("Exists", why);
            }
            None if adoption == Adoption::IfMatches && !differences.is_empty() => {
                let partitions = format!("{} partitions, {} wished", topic.partitions, wish.partitions);
                let shown = |d: &String| {
                    if d.starts_with("partitions: ") { partitions.clone() } else { d.clone() }
                };
                let all: Vec<String> = differences.iter().map(shown).collect();
                let why =
                    format!("topic {name} exists, is claimed by nobody and differs: {}", all.join(", "));
                return TopicPlan::rejected("Exists", why);
            }
            None if shrinks => return shrink(wish, topic),
            None => {
                let mut plan = apply(object, wish, "Adopting", format!("topic {name} is being adopted"));
                plan.differences = differences;
                return plan;
            }
        }
        if shrinks {
            return shrink(wish, topic);
        }
        let renamed = topic.claim.as_ref().is_some_and(|c| c.owner != object.owner);
        if differences.is_empty() && !renamed {
            settled(wish, topic, object.was_ready)
        } else {
            apply(object, wish, "Changing", format!("topic {name} is being changed"))
        }
    };
    plan.differences = differences;
    plan
}

fn shrink(wish: &TopicWish, topic: &TopicSeen) -> TopicPlan {
    let why = format!(
        "topic {} has {} partitions, {} are asked for: a topic never shrinks",
        wish.name, topic.partitions, wish.partitions
    );
    TopicPlan::rejected("PartitionsShrink", why)
}

fn settled(wish: &TopicWish, topic: &TopicSeen, was_ready: bool) -> TopicPlan {
    if topic.without_owner > 0 && !was_ready {
        let why = format!("not every partition of topic {} has an owner yet", wish.name);
        return TopicPlan::new(Verdict::new(Outcome::Working, "WaitingForOwners", why));
    }
    TopicPlan::new(Verdict::new(Outcome::Done, "Ready", format!("topic {} is as specified", wish.name)))
}

/// What a wish asks for that is not so, as `field: old -> new`.
fn differences(wish: &TopicWish, topic: &TopicSeen, seen: &TopicObserved) -> Vec<String> {
    let mut out = Vec::new();
    if wish.partitions != topic.partitions {
        out.push(format!("partitions: {} -> {}", topic.partitions, wish.partitions));
    }
    let wanted = effective(wish, seen);
    let mut keys: Vec<&String> = wanted.keys().chain(topic.config.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let (old, new) = (topic.config.get(key), wanted.get(key));
        let text =
            |v: Option<&String>| v.filter(|v| !v.is_empty()).map_or("(none)", String::as_str).to_owned();
        if text(old) != text(new) {
            out.push(format!("config.{key}: {} -> {}", text(old), text(new)));
        }
    }
    out
}

/// The wish with everything that it does not say, as the cluster will have it.
fn effective(wish: &TopicWish, seen: &TopicObserved) -> BTreeMap<String, String> {
    let mut all = seen.defaults.clone();
    all.extend(wish.config.iter().map(|(k, v)| (k.clone(), v.clone())));
    let number = |all: &BTreeMap<String, String>, key: &str| all.get(key).and_then(|v| v.parse::<u8>().ok());
    if let (Some(mut copies), Some(mut quorum)) = (number(&all, "copies"), number(&all, "ackQuorum")) {
        // Copies without a word on the quorum mean what they can mean; and a small cluster gives what it has.
        if !wish.config.contains_key("ackQuorum") {
            quorum = quorum.min(copies);
        }
        if let Some(max) = seen.max_copies {
            copies = copies.min(max);
            quorum = quorum.min(copies);
        }
        // The other way to say that there is no bound.
        all.entry("retention.bytes".to_owned()).and_modify(|v| {
            if v == "-1" {
                v.clear();
            }
        });
        all.insert("copies".to_owned(), copies.to_string());
        all.insert("ackQuorum".to_owned(), quorum.to_string());
    }
    all
}

/// Says when copies are fewer than asked for, and what is allowed and risky.
fn conditions(wish: &TopicWish, seen: &TopicObserved) -> Vec<ConditionChange> {
    let asked = wish.config.get("copies").and_then(|v| v.parse::<u8>().ok()).unwrap_or(3);
    let replicated = match seen.max_copies {
        Some(max) if max < asked => ConditionChange::new(
            "Replicated",
            false,
            "FewerCopies",
            format!("{max} copies instead of {asked}: the cluster has no more"),
        ),
        _ => ConditionChange::absent("Replicated"),
    };
    let advice = match &wish.warnings[..] {
        [] => ConditionChange::absent("Advice"),
        some => ConditionChange::new("Advice", true, "Replication", some.join("; ")),
    };
    vec![replicated, advice]
}

/// The delete branch: what is gone is done, somebody else's is left alone (rules 1, 2 and 8).
fn delete(object: TopicObject<'_>, seen: &TopicObserved) -> TopicPlan {
    let spec = &object.topic.spec;
    let done = |why: &str| TopicPlan::new(Verdict::new(Outcome::Done, "Deleted", why));
    match &seen.gate {
        ClusterGate::Missing { cluster } => return done(&format!("Cluster {cluster} is gone")),
        // Nothing is known of the topic: not a reason to give up, nor to do anything.
        ClusterGate::NotReady { why } if spec.deletion_policy != DeletionPolicy::Retain => {
            let why = format!("the topic's deletion waits for the Cluster: {why}");
            return TopicPlan::new(Verdict::new(Outcome::Retrying, "WaitingForCluster", why));
        }
        _ => {}
    }
    let name = object.topic.topic_name().to_owned();
    let own = |t: &TopicSeen| t.claim.as_ref().is_some_and(|c| c.uid == object.uid);
    let Some(topic) = seen.topic.as_ref().filter(|t| own(t)) else {
        return done("no topic is claimed by this object");
    };
    let mut plan =
        TopicPlan::new(Verdict::new(Outcome::Working, "Deleting", format!("topic {name} is being let go")));
    plan.actions = vec![match spec.deletion_policy {
        DeletionPolicy::Retain => TopicAction::Release { name, uid: object.uid.to_owned() },
        policy => TopicAction::Delete {
            name,
            uid: object.uid.to_owned(),
            purge_after_ms: spec
                .purge_after
                .millis()
                .ok()
                .and_then(|ms| i64::try_from(ms).ok())
                // What cannot be read keeps the records longest.
                .unwrap_or(10 * 365 * 24 * 3_600_000),
            if_empty: policy == DeletionPolicy::DeleteIfEmpty,
        },
    }];
    debug_assert!(topic.tombstone.is_none(), "a tombstone has no claim");
    plan
}
