//! One pass over a ConsumerGroup.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::{ResourceExt, runtime::controller::Action};
use tidemill_client::{ClientError, Groups, ResetTo};
use tidemill_crd::{
    Cluster, ConsumerGroup, Outcome, Verdict, is_true,
    plan::{
        ClusterGate, GroupAction, GroupObject, GroupObserved, GroupPlan, GroupSeen, owner, plan_group,
        refused,
    },
    wire,
};
use tidemill_types::StartAt;

use super::{
    KIND, Memory, Shared,
    calls::{Failed, GroupCalls},
    finalize,
    observe::{holder_gone, observe},
    say,
};
use crate::{
    controller::{DENIED, PassError, jittered, parent},
    metrics::{ActionLabel, KindLabel},
};

/// Least time between two looks at a group that is as it should be.
const LOOK: Duration = Duration::from_secs(30);
/// Many groups are looked at less often: so many of them in a second.
const LOOKS_PER_S: u64 = 50;
/// A Cluster that was fine and does not answer for so long is not fine any more: a broker that restarts is no news (rule 3).
const SILENCE: Duration = Duration::from_secs(60);
/// Objects that may be gone and still be remembered.
const SLACK: usize = 64;
/// Looks and changes of one pass; what is left after them is the next one's.
const ROUNDS: usize = 3;

pub(super) async fn reconcile(group: Arc<ConsumerGroup>, shared: Arc<Shared>) -> Result<Action, PassError> {
    let started = Instant::now();
    let metrics = &shared.context.metrics;
    let depth = metrics.queue.get_or_create(&KindLabel { kind: KIND }).clone();
    depth.inc();
    let result = pass(&group, &shared).await;
    depth.dec();
    metrics.passed(KIND, started.elapsed(), result.is_err());
    // A denied verb is a condition, not a loop (rule 18).
    if let Err(Some(verdict)) = result.as_ref().map_err(PassError::denied) {
        metrics.forbidden.inc();
        say::status(&shared, &group, Looked { plan: only(verdict), seen: None }).await?;
        return Ok(Action::requeue(DENIED));
    }
    result
}

async fn pass(group: &ConsumerGroup, shared: &Shared) -> Result<Action, PassError> {
    if !shared.parents.known() {
        return Ok(Action::requeue(Duration::from_millis(500)));
    }
    shared.forget_gone();
    // Deletion first (rule 1).
    if group.metadata.deletion_timestamp.is_some() {
        return finalize::delete(group, shared).await;
    }
    if let Some(again) = shared.echoes.heard(group) {
        return Ok(Action::requeue(again));
    }
    // Before anything is made: what is made without it would outlive the object.
    if !group.spec.paused && finalize::align(group, shared).await? {
        return Ok(Action::await_change());
    }
    let (uid, namespace) = (group.uid().unwrap_or_default(), group.namespace().unwrap_or_default());
    let owner = owner("ConsumerGroup", &namespace, &group.name_any());
    let object = GroupObject { group, uid: &uid, owner: &owner, deleted: false };
    let cluster = shared.parents.get(&group.spec.cluster_ref, &namespace);
    let gate = parent::gate(&group.spec.cluster_ref, &namespace, cluster.as_deref());
    let looked = match cluster.as_deref().filter(|_| gate == ClusterGate::Open) {
        Some(cluster) => work(object, shared, cluster).await?,
        None => Looked {
            plan: plan_group(object, &GroupObserved { gate, group: None, behind: None }),
            seen: None,
        },
    };
    let again = match looked.plan.verdict.outcome {
        Outcome::Done => settled(shared),
        // The Cluster's change wakes it.
        Outcome::Working if looked.plan.verdict.reason == "WaitingForCluster" => Duration::from_secs(600),
        Outcome::Working => Duration::from_secs(2),
        Outcome::Retrying => Duration::from_secs(5),
        // A conflict ends when the other one goes.
        Outcome::Rejected => LOOK,
        Outcome::Paused => return say::status(shared, group, looked).await.map(|_| Action::await_change()),
    };
    let again = jittered(again);
    let version = say::status(shared, group, looked).await?;
    shared.echoes.wrote(group, version, again);
    Ok(Action::requeue(again))
}

fn settled(shared: &Shared) -> Duration {
    let many = u64::try_from(shared.groups.len()).unwrap_or(u64::MAX) / LOOKS_PER_S;
    LOOK.max(Duration::from_secs(many))
}

/// A plan, with what it was made from when the Cluster was asked.
pub(super) struct Looked {
    pub(super) plan: GroupPlan,
    pub(super) seen: Option<GroupSeen>,
}

/// Looks, acts and looks again until nothing is left to do.
async fn work(object: GroupObject<'_>, shared: &Shared, cluster: &Cluster) -> Result<Looked, PassError> {
    let observed = |group, behind| GroupObserved { gate: ClusterGate::Open, group, behind };
    // Nobody is asked for what cannot be.
    let blind = plan_group(object, &observed(None, None));
    if matches!(blind.verdict.outcome, Outcome::Paused | Outcome::Rejected) {
        return Ok(Looked { plan: blind, seen: None });
    }
    let calls = shared.context.connection(cluster).groups;
    let mut last = None;
    for _ in 0..ROUNDS {
        let name = object.group.group_name().to_owned();
        let mut seen = match calls.run(|groups| observe(groups, name)).await {
            Ok(seen) => seen,
            Err(failed) => return Ok(silent(object, shared, failed)),
        };
        if let Some(seen) = &mut seen
            && let Some(holder) =
                seen.claim.as_ref().filter(|c| c.uid != object.uid && c.owner != object.owner)
        {
            seen.holder_gone = holder_gone(shared, object.group, &holder.owner).await?;
        }
        let behind = heard(object, shared, seen.as_ref().and_then(|s| s.lag));
        let plan = plan_group(object, &observed(seen.clone(), behind));
        let actions = plan.actions.clone();
        last = Some(Looked { plan, seen: Some(seen.unwrap_or_default()) });
        if actions.is_empty() {
            break;
        }
        if let Err(failed) = act(object, shared, &calls, actions).await {
            let verdict = verdict_of(failed);
            return Ok(match last {
                Some(l) => Looked { plan: GroupPlan { verdict, actions: Vec::new(), ..l.plan }, ..l },
                None => Looked { plan: only(verdict), seen: None },
            });
        }
    }
    // Rounds are more than none.
    Ok(last.unwrap_or(Looked { plan: blind, seen: None }))
}

fn only(verdict: Verdict) -> GroupPlan {
    GroupPlan { actions: Vec::new(), verdict, conditions: Vec::new(), differences: Vec::new() }
}

fn verdict_of(failed: Failed) -> Verdict {
    match failed {
        Failed::NoAnswer(why) => Verdict::new(Outcome::Retrying, "ClusterUnavailable", why),
        Failed::Refused(refusal) => refused(&refusal),
    }
}

async fn act(
    object: GroupObject<'_>,
    shared: &Shared,
    calls: &GroupCalls,
    actions: Vec<GroupAction>,
) -> Result<(), Failed> {
    for action in actions {
        let name = match &action {
            GroupAction::Declare { .. } => "DeclareGroup",
            GroupAction::Reset { .. } => "ResetGroup",
            GroupAction::Release { .. } => "ReleaseGroup",
            GroupAction::Remove { .. } => "RemoveGroup",
        };
        let told = match &action {
            GroupAction::Reset { id, shown, .. } => {
                Some(format!("reset {id}: the committed offsets went to {shown}"))
            }
            _ => None,
        };
        let changed = calls.run(|groups| carry_out(groups, action)).await?;
        if !changed {
            continue;
        }
        shared.context.metrics.writes.get_or_create(&ActionLabel { action: name }).inc();
        if let Some(note) = told {
            say::event(shared, object.group, name, &note).await;
        }
    }
    Ok(())
}

/// Carries one action out; answers whether anything changed.
pub(super) async fn carry_out(groups: Groups, action: GroupAction) -> Result<bool, ClientError> {
    match action {
        GroupAction::Declare { wish, claim, from_uid } => {
            groups.declare(wire::group::declare(&wish, &claim, from_uid)).await.map(|r| r.changed)
        }
        GroupAction::Reset { name, topics, id, shown, to, evict } => {
            let topics: Vec<String> = topics.into_iter().collect();
            let to = match to {
                StartAt::Earliest => ResetTo::Earliest,
                StartAt::Latest => ResetTo::Latest,
                StartAt::Timestamp(ms) => ResetTo::Timestamp(ms),
            };
            groups.reset_once(&name, &topics, &to, (&id, &shown), evict).await.map(|r| r.executed)
        }
        GroupAction::Release { name, uid } => groups.release(&name, &uid, false).await.map(|_| true),
        GroupAction::Remove { name, uid } => groups.release(&name, &uid, true).await.map(|_| true),
    }
}

/// The Cluster answered: what the lag means by now.
fn heard(object: GroupObject<'_>, shared: &Shared, lag: Option<u64>) -> Option<bool> {
    let max = object.group.spec.limits.and_then(|l| l.max_lag);
    let mut memories = shared.memories.lock();
    let memory = memory(&mut memories, object.group);
    memory.silent = None;
    memory.group.look(shared.now_ms(), lag, max)
}

/// The Cluster did not answer: an object that was fine stays so for a while.
fn silent(object: GroupObject<'_>, shared: &Shared, failed: Failed) -> Looked {
    let verdict = verdict_of(failed);
    let fine = object.group.status.as_ref().filter(|s| {
        is_true(&s.conditions, "Ready") && s.observed_generation == object.group.metadata.generation
    });
    let since = {
        let mut memories = shared.memories.lock();
        *memory(&mut memories, object.group).silent.get_or_insert_with(tokio::time::Instant::now)
    };
    let keep = verdict.outcome == Outcome::Retrying && since.elapsed() < SILENCE;
    let ready = fine.filter(|_| keep).and_then(|s| tidemill_crd::find(&s.conditions, "Ready"));
    let verdict = ready.map_or(verdict, |c| Verdict::new(Outcome::Done, &c.reason, c.message.clone()));
    Looked { plan: only(verdict), seen: None }
}

pub(super) fn memory<'a>(
    memories: &'a mut std::collections::HashMap<String, Memory>,
    group: &ConsumerGroup,
) -> &'a mut Memory {
    let new = || Memory {
        group: tidemill_crd::group::GroupMemory::new(&group.status.clone().unwrap_or_default()),
        silent: None,
    };
    memories.entry(group.uid().unwrap_or_default()).or_insert_with(new)
}

impl Shared {
    /// Objects without a finalizer go without a word: what is remembered of them is bounded by what is there.
    pub(super) fn forget_gone(&self) {
        let mut memories = self.memories.lock();
        if memories.len() > 2 * self.groups.len() + SLACK {
            let there: std::collections::HashSet<String> =
                self.groups.state().iter().filter_map(|g| g.uid()).collect();
            memories.retain(|uid, _| there.contains(uid));
        }
    }

    /// Since the controller began.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
