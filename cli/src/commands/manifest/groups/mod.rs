//! ConsumerGroups: planned by the operator's own code. Without an operator nobody comes back for what has to wait, so that is told
//! as a refusal.

mod show;

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use tidemill_client::{Client, ClientError, ErrorCode, Groups, ResetTo, v1};
use tidemill_crd::{
    ConsumerGroup, Outcome,
    plan::{
        self, ClusterGate, GroupAction, GroupObject, GroupObserved, GroupPlan, GroupSeen, Refusal, plan_group,
    },
    wire,
};
use tidemill_types::StartAt;

use super::{
    Kind,
    read::{Manifest, Object},
    show::not_found,
    topics::Done,
};
use crate::{
    commands::{Output, connect::failed, table},
    error::CliError,
    output,
};

/// Groups that are asked for at once.
const AT_ONCE: usize = 16;
/// Looks and changes of one group; the second look finds nothing to do.
const ROUNDS: usize = 3;

/// A group with the numbers that a plan does not need.
struct Shown {
    seen: GroupSeen,
    described: v1::DescribeGroupResponse,
}

async fn observe(groups: &Groups, name: &str) -> Result<Option<Shown>, ClientError> {
    let described = match groups.describe(name).await {
        Ok(described) => described,
        Err(e) if e.code == Some(ErrorCode::UnknownGroup) => return Ok(None),
        Err(e) => return Err(e),
    };
    let config = groups.config(name).await?.map(|(config, _)| config);
    Ok(Some(Shown { seen: wire::group::seen(&described, config.as_ref()), described }))
}

fn groups_of(manifests: &[Manifest]) -> Vec<(&Manifest, &ConsumerGroup)> {
    let of = |m: &Manifest| matches!(m.object, Object::Group(_));
    let all = manifests.iter().filter(|m| of(m));
    all.filter_map(|m| if let Object::Group(g) = &m.object { Some((m, &**g)) } else { None }).collect()
}

async fn planned(
    groups: &Groups,
    m: &Manifest,
    group: &ConsumerGroup,
    deleted: bool,
) -> Result<(GroupPlan, bool), ClientError> {
    let seen = observe(groups, group.group_name()).await?.map(|s| s.seen);
    let declared = seen.as_ref().is_some_and(|s| s.config.is_some());
    let (uid, owner) = (m.uid(), m.owner());
    let object = GroupObject { group, uid: &uid, owner: &owner, deleted };
    let plan = plan_group(object, &GroupObserved { gate: ClusterGate::Open, group: seen, behind: None });
    Ok((plan, declared))
}

/// Makes each group be as its manifest says, or tells what that would change.
pub(super) async fn apply<'a>(
    client: &Client,
    manifests: &'a [Manifest],
    dry_run: bool,
) -> Result<Vec<(&'a Manifest, Done)>, CliError> {
    let groups = client.groups();
    let one = |(m, group): (&'a Manifest, &'a ConsumerGroup)| {
        let groups = groups.clone();
        async move { applied(&groups, m, group, dry_run).await.map(|done| (m, done)) }
    };
    stream::iter(groups_of(manifests)).map(one).buffered(AT_ONCE).try_collect().await
}

async fn applied(
    groups: &Groups,
    m: &Manifest,
    group: &ConsumerGroup,
    dry_run: bool,
) -> Result<Done, CliError> {
    let mut done = Done::Unchanged;
    for _ in 0..ROUNDS {
        let (plan, declared) = planned(groups, m, group, false).await.map_err(|e| failed(&e))?;
        if !plan.actions.is_empty() && done == Done::Unchanged {
            done = if declared { Done::Configured(plan.differences.clone()) } else { Done::Created };
        }
        if dry_run || plan.actions.is_empty() {
            return Ok(match plan.verdict.outcome {
                // What was done is done, and something is left.
                Outcome::Working | Outcome::Rejected | Outcome::Retrying if plan.actions.is_empty() => {
                    Done::Refused(plan.verdict.reason, plan.verdict.message)
                }
                _ => done,
            });
        }
        for action in plan.actions {
            match carry_out(groups, action).await {
                Ok(()) => {}
                Err(e) if e.code.is_some_and(|c| !c.retryable() && c != ErrorCode::OutcomeUnknown) => {
                    return Ok(refused(&e));
                }
                Err(e) => return Err(failed(&e)),
            }
        }
    }
    Ok(done)
}

fn refused(e: &ClientError) -> Done {
    let code = e.code.map(|c| c.wire().to_owned()).unwrap_or_default();
    let verdict = plan::refused(&Refusal { code, message: e.message.clone(), ..Refusal::default() });
    Done::Refused(verdict.reason, verdict.message)
}

async fn carry_out(groups: &Groups, action: GroupAction) -> Result<(), ClientError> {
    match action {
        GroupAction::Declare { wish, claim, from_uid } => {
            groups.declare(wire::group::declare(&wish, &claim, from_uid)).await.map(drop)
        }
        GroupAction::Reset { name, topics, id, shown, to, evict } => {
            let topics: Vec<String> = topics.into_iter().collect();
            let to = match to {
                StartAt::Earliest => ResetTo::Earliest,
                StartAt::Latest => ResetTo::Latest,
                StartAt::Timestamp(ms) => ResetTo::Timestamp(ms),
            };
            groups.reset_once(&name, &topics, &to, (&id, &shown), evict).await.map(drop)
        }
        GroupAction::Release { name, uid } => groups.release(&name, &uid, false).await.map(drop),
        GroupAction::Remove { name, uid } => groups.release(&name, &uid, true).await.map(drop),
    }
}

/// What stands in manifests, by their own policies; answers what was refused.
pub(super) async fn delete<'a>(
    client: &Client,
    manifests: &'a [Manifest],
    dry_run: bool,
) -> Result<Vec<(&'a Manifest, Done)>, CliError> {
    let groups = client.groups();
    let mut out = Vec::new();
    for (m, group) in groups_of(manifests) {
        let (plan, _) = planned(&groups, m, group, true).await.map_err(|e| failed(&e))?;
        let Some(action) = plan.actions.into_iter().next() else {
            if plan.verdict.outcome == Outcome::Done {
                output::note(&format!("note: {}: {}", m.full_name(), plan.verdict.message));
            } else {
                out.push((m, Done::Refused(plan.verdict.reason, plan.verdict.message)));
            }
            continue;
        };
        let retained = matches!(action, GroupAction::Release { .. });
        if !dry_run && let Err(e) = carry_out(&groups, action).await {
            if e.code.is_some_and(|c| !c.retryable() && c != ErrorCode::OutcomeUnknown) {
                out.push((m, refused(&e)));
                continue;
            }
            return Err(failed(&e));
        }
        told(&m.full_name(), group.group_name(), retained, dry_run)?;
    }
    Ok(out)
}

fn told(object: &str, group: &str, retained: bool, dry_run: bool) -> Result<(), CliError> {
    let suffix = if dry_run { " (dry run)" } else { "" };
    output::print(&format!("{object} deleted{suffix}\n"))?;
    if retained {
        output::note(&format!(
            "note: group {group} stays with its offsets, only its claim was freed; `tidemill group delete {group}` forgets it"
        ));
    }
    Ok(())
}

/// By name, without a manifest: the claim is freed, the group stays.
pub(super) async fn let_go(
    client: &Client,
    names: &[String],
    namespace: &str,
    dry_run: bool,
) -> Result<(), CliError> {
    let all = listed(client, names, namespace).await?;
    for (name, s) in names.iter().zip(all) {
        let full = format!("{}/{name}", Kind::ConsumerGroup.full());
        let Some(claim) = s.claim else {
            let why = format!("group {} is declared by no object", s.name);
            return Err(CliError::new(full, why, ErrorCode::UnknownGroup)
                .help(format!("`tidemill group delete {}` forgets the group and its offsets", s.name)));
        };
        // Somebody else's object would bring it back.
        if claim.uid != plan::manifest_uid(namespace, &show::object_of(Some(&claim), &s.name).1) {
            let why = format!("group {} is claimed by {}", s.name, claim.owner);
            return Err(CliError::new(full, why, ErrorCode::GroupClaimed)
                .help("delete the object that claims it, or name its namespace with -n"));
        }
        if !dry_run {
            client.groups().release(&s.name, &claim.uid, false).await.map_err(|e| failed(&e))?;
        }
        told(&full, &s.name, true, dry_run)?;
    }
    Ok(())
}

/// The groups that are named, or all.
async fn listed(
    client: &Client,
    names: &[String],
    namespace: &str,
) -> Result<Vec<v1::GroupSummary>, CliError> {
    let all = client.groups().list().await.map_err(|e| failed(&e))?;
    if !all.missing.is_empty() {
        let n = all.missing.len();
        output::note(&format!("warning: {n} coordinators did not answer, their groups are missing"));
    }
    if names.is_empty() {
        return Ok(all.groups);
    }
    let find = |name: &String| {
        let is = |g: &&v1::GroupSummary| show::is_named(g.claim.as_ref(), &g.name, namespace, name);
        all.groups.iter().find(is).cloned().ok_or_else(|| not_found(Kind::ConsumerGroup, name))
    };
    names.iter().map(find).collect()
}

async fn shown(client: &Client, names: &[String], namespace: &str) -> Result<Vec<Shown>, CliError> {
    let groups = client.groups();
    let one = |s: v1::GroupSummary| {
        let groups = groups.clone();
        async move { observe(&groups, &s.name).await }
    };
    let all = listed(client, names, namespace).await?;
    let found: Vec<Option<Shown>> =
        stream::iter(all).map(one).buffered(AT_ONCE).try_collect().await.map_err(|e| failed(&e))?;
    // One that went meanwhile is not there.
    Ok(found.into_iter().flatten().collect())
}

pub(super) async fn get(
    client: &Client,
    names: &[String],
    namespace: &str,
    form: Output,
) -> Result<(), CliError> {
    let rows = shown(client, names, namespace).await?.iter().map(show::row).collect();
    table::print(
        form,
        &["NAME", "READY", "REASON", "STATE", "MEMBERS", "LAG"],
        &["GROUP", "CLAIMED-BY", "ASSIGNMENT", "TOPICS"],
        rows,
    )
}

pub(super) async fn describe(client: &Client, names: &[String], namespace: &str) -> Result<(), CliError> {
    for (i, s) in shown(client, names, namespace).await?.iter().enumerate() {
        let text = show::text(s);
        output::print(&if i > 0 { format!("\n{text}") } else { text })?;
    }
    Ok(())
}

/// Topics joined for people.
fn joined(topics: &BTreeSet<String>) -> String {
    let all: Vec<&str> = topics.iter().map(String::as_str).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(",") }
}
