//! Topics: plans and what they ask of the cluster.

use std::time::Duration;

use tidemill_client::{Client, v1};
use tidemill_crd::{
    Outcome, Topic,
    plan::{self, TopicObject, TopicPlan},
    wire::{self, topic::Request},
};

use super::{
    cluster,
    observe::Observed,
    read::{Manifest, Object},
};
use crate::{commands::connect::failed, error::CliError};

/// Wishes of one call.
const BATCH: usize = 1_000;
/// Longest wait that a broker takes.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Created,
    Configured(Vec<String>),
    /// It was deleted and is back.
    Undeleted,
    Unchanged,
    /// Reason and message of the verdict.
    Refused(String, String),
}

/// The plan of each Topic, in the order of the manifests.
pub(super) fn plans<'a>(
    manifests: &'a [Manifest],
    seen: &Observed,
    deleted: bool,
) -> Vec<(&'a Manifest, TopicPlan)> {
    manifests
        .iter()
        .filter_map(|m| match &m.object {
            Object::Topic(t) => Some((m, plan_of(manifests, m, t, seen, deleted))),
            _ => None,
        })
        .collect()
}

fn plan_of(all: &[Manifest], m: &Manifest, t: &Topic, seen: &Observed, deleted: bool) -> TopicPlan {
    let object = TopicObject {
        topic: t,
        uid: &m.uid(),
        owner: &m.owner(),
        deleted,
        was_ready: false,
        defaults: cluster::defaults(all, m),
    };
    plan::plan_topic(object, &seen.of(t.topic_name()))
}

/// Names of the topics.
pub(super) fn names(manifests: &[Manifest]) -> Vec<String> {
    let mut names: Vec<String> = manifests
        .iter()
        .filter_map(|m| match &m.object {
            Object::Topic(t) => Some(t.topic_name().to_owned()),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Carries the plans out, or tries them.
pub(super) async fn apply<'a>(
    client: &Client,
    plans: Vec<(&'a Manifest, TopicPlan)>,
    dry_run: bool,
    wait: Duration,
) -> Result<Vec<(&'a Manifest, Done)>, CliError> {
    let mut out = Vec::with_capacity(plans.len());
    let mut wishes = Vec::new();
    for (m, plan) in plans {
        let request = plan.actions.into_iter().next().map(wire::topic::request);
        match (request, plan.verdict) {
            (Some(Request::Apply(wish)), _) => {
                wishes.push((out.len(), wish));
                out.push((m, Done::Unchanged));
            }
            (_, v) if v.outcome == Outcome::Rejected => out.push((m, Done::Refused(v.reason, v.message))),
            // Settled, paused, or waiting for owners, which is no change.
            _ => out.push((m, Done::Unchanged)),
        }
    }
    let wait_ms = u32::try_from(wait.min(MAX_WAIT).as_millis()).unwrap_or(u32::MAX);
    for some in wishes.chunks(BATCH) {
        let topics = some.iter().map(|(_, w)| w.clone()).collect();
        let request = v1::ApplyTopicsRequest { topics, dry_run, wait_ms };
        let answer = client.control().apply_topics(request).await.map_err(|e| failed(&e))?;
        for ((at, _), result) in some.iter().zip(answer.results) {
            if let Some(slot) = out.get_mut(*at) {
                slot.1 = done(result);
            }
        }
    }
    Ok(out)
}

fn done(result: v1::TopicResult) -> Done {
    if let Err(refusal) = wire::topic::applied(&result) {
        let verdict = plan::refused(&refusal);
        return Done::Refused(verdict.reason, verdict.message);
    }
    match v1::TopicDone::try_from(result.done) {
        Ok(v1::TopicDone::Created) => Done::Created,
        Ok(v1::TopicDone::Changed) => Done::Configured(result.changes),
        Ok(v1::TopicDone::Undeleted) => Done::Undeleted,
        _ => Done::Unchanged,
    }
}
