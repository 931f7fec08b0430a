//! What to do about a Cluster. Pure: the same observation gives the same plan.
//!
//! ```text
//! deletion -> paused -> spec that cannot be -> quorum -> volumes -> pools -> rolling -> children -> verdict
//! ```
//!
//! Independent parts go on when one of them waits (rule 11): each adds its actions, its steps and its condition.

mod action;
mod bootstrap;
mod consent;
mod delete;
mod image;
mod permission;
mod pools;
mod refuse;
mod rolling;
mod status;
#[cfg(test)]
mod tests;
mod volumes;

use serde_json::Value;
use tidemill_crd::{
    Cluster, ConditionChange, Outcome, Verdict,
    cluster::{PlanStatus, PlanStep},
};

use crate::{
    names::{Names, Role},
    observe::Observed,
    render::{self, Wishes},
};

pub use action::Action;
pub use bootstrap::Quorum;
pub use delete::{Deletion, deletion};
pub use status::{StatusFields, fill};

/// What the plan stands on.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The Cluster as it is on the server.
    pub cluster: &'a Cluster,
    /// Names of its children.
    pub names: &'a Names,
    /// Image of a Cluster that names none.
    pub default_image: &'a str,
    /// Image without its tag, for `spec.version`.
    pub repository: &'a str,
    /// What is there.
    pub observed: &'a Observed,
    /// Id for a quorum that is to be made.
    pub fresh_id: &'a str,
    /// Minutes since Monday 00:00 UTC.
    pub minute: u32,
}

/// What is to be done, and what is to be said.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In order.
    pub actions: Vec<Action>,
    /// Ready, Reconciling, Stalled.
    pub verdict: Verdict,
    /// Further conditions.
    pub conditions: Vec<ConditionChange>,
    /// The rest of the status; `None` leaves it as it is.
    pub status: Option<StatusFields>,
    /// Members whose restart the quorum has to agree to first (rule 11): with its answers in the observation the plan goes on.
    pub asks: Vec<String>,
    /// Something may change without an event from the API server: look again after so many seconds.
    pub look_again_s: Option<u64>,
}

impl Plan {
    /// A verdict and nothing to do.
    pub(crate) fn only(verdict: Verdict) -> Self {
        Self {
            actions: Vec::new(),
            verdict,
            conditions: Vec::new(),
            status: None,
            asks: Vec::new(),
            look_again_s: None,
        }
    }
}

/// What the parts of a plan add up to.
#[derive(Debug, Default)]
struct Draft {
    actions: Vec<Action>,
    asks: Vec<String>,
    steps: Vec<PlanStep>,
    conditions: Vec<ConditionChange>,
    /// Reasons why the Cluster is not as its spec says, most important first.
    open: Vec<(String, String)>,
}

impl Draft {
    fn step(&mut self, action: &str, target: &str, waits_for: Option<String>) {
        self.steps.push(PlanStep { action: action.to_owned(), target: target.to_owned(), waits_for });
    }

    fn open(&mut self, reason: &str, message: impl Into<String>) {
        self.open.push((reason.to_owned(), message.into()));
    }

    /// A condition, and a reason to wait when it is false.
    fn say(&mut self, type_: &'static str, good: bool, reason: &str, message: impl Into<String>) {
        let message = message.into();
        if !good {
            self.open(reason, message.clone());
        }
        self.conditions.push(ConditionChange::new(type_, good, reason, message));
    }
}

/// The plan for a Cluster that is not being deleted.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    let spec = &input.cluster.spec;
    if spec.paused {
        return Plan::only(Verdict::new(
            Outcome::Paused,
            "Paused",
            "spec.paused is true: nothing is changed",
        ));
    }
    if let Err((reason, why)) = refuse::check(spec) {
        return Plan::only(Verdict::new(Outcome::Rejected, reason, why));
    }
    let mut draft = Draft::default();
    let quorum = bootstrap::decide(input);
    let (image, template_revision) = image::choose(input);
    let mut wishes = Wishes {
        image,
        template_revision,
        metas: spec.meta.replicas,
        pools: Vec::new(),
        bookies_evictable: evictable(input.observed),
    };
    volumes::plan(input, &mut draft);
    let consent = consent::Consent::of(input, &wishes);
    pools::plan(input, &consent, &mut wishes, &mut draft);
    let children = match render::children(input.cluster, input.names, &wishes) {
        Ok(children) => children,
        Err(e) => return Plan::only(Verdict::new(Outcome::Rejected, "InvalidSpec", e.to_string())),
    };
    apply(input, children, &mut draft);
    quorum.add(input, &mut draft);
    ready(input, &wishes, &mut draft);
    rolling::plan(input, &consent, &quorum, &mut draft);
    finish(input, &wishes, &consent, &quorum, draft)
}

/// Rule 12: a bookie may be evicted when every fragment has had its copies for a minute.
fn evictable(observed: &Observed) -> bool {
    observed.clean_for_s >= 60
}

/// Children are applied, except a set whose claim template has to change first (rule 9); what is not wished for any more goes.
fn apply(input: &Input<'_>, children: Vec<Value>, draft: &mut Draft) {
    let text = |v: &Value, path: &str| v.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut wished = Vec::new();
    let mut actions = Vec::new();
    for child in children {
        let key = (text(&child, "/kind"), text(&child, "/metadata/name"));
        let held = draft
            .actions
            .iter()
            .any(|a| matches!(a, Action::OrphanSet { name, .. } | Action::HoldSet { name } if key.0 == "StatefulSet" && *name == key.1));
        if !held {
            actions.push(Action::Apply(Box::new(child)));
        }
        wished.push(key);
    }
    for (key, live) in &input.observed.children {
        // Sets are taken away by the pools' plan alone: their volumes carry data.
        if wished.contains(key)
            || key.0 == "StatefulSet"
            || live.pointer("/metadata/deletionTimestamp").is_some()
        {
            continue;
        }
        let owned = live.pointer("/metadata/ownerReferences").and_then(Value::as_array).is_some_and(|o| {
            o.iter().any(|o| o.get("uid").and_then(Value::as_str) == input.cluster.metadata.uid.as_deref())
        });
        if owned {
            actions.push(Action::Prune {
                kind: key.0.clone(),
                name: key.1.clone(),
                uid: text(live, "/metadata/uid"),
                version: text(live, "/metadata/resourceVersion"),
            });
        }
    }
    draft.actions.extend(actions);
}

/// Pods against wishes.
fn ready(input: &Input<'_>, wishes: &Wishes, draft: &mut Draft) {
    let wished = |role: Role| -> i32 {
        match role {
            Role::Meta => wishes.metas,
            Role::Bookie => wishes.pools.iter().map(|(_, n)| n).sum(),
            Role::Broker => input.cluster.spec.brokers.replicas,
        }
    };
    for (role, type_) in
        [(Role::Meta, "MetaReady"), (Role::Bookie, "BookiesReady"), (Role::Broker, "BrokersReady")]
    {
        let pods = || input.observed.pods.values().filter(move |p| p.role == Some(role));
        let ready = pods().filter(|p| p.ready).count();
        let wished = usize::try_from(wished(role)).unwrap_or(0);
        let mut message = format!("{ready} of {wished} pods are ready");
        if let Some(p) = pods().find(|p| !p.ready && p.trouble.is_some()) {
            message.push_str(&format!("; {}: {}", p.name, p.trouble.as_deref().unwrap_or_default()));
        }
        if let Some((pod, state)) = limbo(input, role) {
            message.push_str(&format!("; {pod} is in {state}"));
        }
        if ready == wished && pods().count() == wished {
            draft.say(type_, true, "PodsReady", message);
        } else {
            draft.say(type_, false, "WaitingForPods", message);
        }
    }
}

/// A bookie that lost a part of its data and is being repaired.
fn limbo(input: &Input<'_>, role: Role) -> Option<(String, String)> {
    if role != Role::Bookie {
        return None;
    }
    let states = input.observed.bookies.iter().filter_map(|(pod, b)| Some((pod, b.as_ref().ok()?)));
    states.filter(|(_, b)| b.state == "limbo").map(|(pod, b)| (pod.clone(), b.state.clone())).next()
}

fn finish(
    input: &Input<'_>,
    wishes: &Wishes,
    consent: &consent::Consent,
    quorum: &Quorum,
    draft: Draft,
) -> Plan {
    let status = status::fields(input, wishes, quorum);
    let plan =
        (!draft.steps.is_empty()).then(|| PlanStatus { hash: consent.hash.clone(), steps: draft.steps });
    let verdict = match (quorum, draft.open.first()) {
        (Quorum::Stalled { reason, why }, _) => Verdict::new(Outcome::Rejected, reason, why.clone()),
        (_, None) => Verdict::new(Outcome::Done, "Ready", "everything is as the spec says"),
        (_, Some((reason, message))) => Verdict::new(Outcome::Working, reason, message.clone()),
    };
    Plan {
        look_again_s: match verdict.outcome {
            Outcome::Working | Outcome::Retrying => Some(3),
            // Mended by a person on the data plane's side.
            Outcome::Rejected => Some(30),
            Outcome::Done if !wishes.bookies_evictable => Some(15),
            Outcome::Done | Outcome::Paused => None,
        },
        actions: draft.actions,
        asks: draft.asks,
        verdict,
        conditions: draft.conditions,
        status: Some(StatusFields { plan, ..status }),
    }
}
