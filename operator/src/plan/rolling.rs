//! Replacing pods of an older revision, in the safe order (rule 11).
//!
//! One tier after the other: quorum, bookies, brokers; one pod at a time (brokers: `maxConcurrent`). A pod that never was
//! ready may always be replaced: nothing is lost with it, and the new revision may be its cure. For every other one the quorum
//! agrees first, a bookie announces its restart, and a broker hands its partitions over.

use super::{
    Action, Draft, Input, Quorum,
    consent::Consent,
    permission::{self, Permission},
};
use crate::{names::Role, observe::PodView};

/// Entries that a member of the quorum may be behind and still count as caught up.
const CAUGHT_UP: u64 = 1_000;

pub(super) fn plan(input: &Input<'_>, consent: &Consent, quorum: &Quorum, draft: &mut Draft) {
    let mut busy = false;
    let mut open = 0;
    let mut all = Vec::new();
    for role in Role::ALL {
        let old = outdated(input, role);
        open += old.len();
        all.extend(old.iter().copied());
        let (never, rest): (Vec<&PodView>, Vec<&PodView>) = old.into_iter().partition(|p| !p.was_ready);
        for pod in never {
            draft.step("ReplacePod", &pod.name, None);
            replace(pod, "it never was ready, and a newer revision is there", None, draft);
        }
        if rest.is_empty() {
            continue;
        }
        let wait = consent
            .waits_for
            .clone()
            .or_else(|| busy.then(|| "the pods of the tier before".to_owned()))
            .or_else(|| safe(input, quorum, role, &rest));
        let order = order(quorum, role, rest);
        let at_once = match role {
            Role::Broker => broker_room(input),
            _ => 1,
        };
        for (i, pod) in order.iter().enumerate() {
            match &wait {
                None if i < at_once => match permission::ask(input, role, pod, draft) {
                    Permission::Given { announce } => {
                        draft.step("ReplacePod", &pod.name, None);
                        replace(pod, "it has an older revision", announce, draft);
                    }
                    Permission::Waits(why) => draft.step("ReplacePod", &pod.name, Some(why)),
                },
                None => draft.step("ReplacePod", &pod.name, Some("the one before".to_owned())),
                Some(why) => draft.step("ReplacePod", &pod.name, Some(why.clone())),
            }
        }
        busy = true;
    }
    permission::tidy(input, &all, draft);
    if let Some(set) = input.observed.sets.values().find(|s| !s.settled && !s.deleting) {
        // Its pods cannot be compared yet: "nothing is outdated" would be no answer.
        let message =
            format!("StatefulSet {} was changed and its controller has not looked at it yet", set.name);
        draft.say("Updated", false, "RollingUpdate", message);
    } else if open == 0 {
        draft.say("Updated", true, "PodsUpdated", "all pods have the latest revision");
    } else {
        let reason = if consent.waits_for.is_some() { "WaitingForConsent" } else { "RollingUpdate" };
        let message = match &consent.waits_for {
            Some(why) => format!("{open} pods have an older revision; waits for {why}"),
            None => format!("{open} pods have an older revision and are replaced one by one"),
        };
        draft.say("Updated", false, reason, message);
    }
}

fn replace(pod: &PodView, why: &str, announce: Option<String>, draft: &mut Draft) {
    draft.actions.push(Action::DeletePod {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        version: pod.version.clone(),
        why: why.to_owned(),
        announce,
    });
}

/// Pods of an older revision than their set's. A set whose controller has not seen the latest spec tells nothing yet.
fn outdated<'a>(input: &Input<'a>, role: Role) -> Vec<&'a PodView> {
    let observed = input.observed;
    observed
        .pods
        .values()
        .filter(|p| p.role == Some(role) && !p.deleting)
        .filter(|p| {
            let set = p.name.rsplit_once('-').and_then(|(set, _)| observed.sets.get(set));
            set.filter(|s| s.settled)
                .and_then(|s| s.update_revision.as_ref())
                .is_some_and(|r| p.revision.as_ref() != Some(r))
        })
        .collect()
}

/// One that is away already first, the leader of the quorum last; else the highest number first.
fn order<'a>(quorum: &Quorum, role: Role, mut pods: Vec<&'a PodView>) -> Vec<&'a PodView> {
    let leader = match quorum {
        Quorum::Running { leader, .. } if role == Role::Meta => leader.as_deref(),
        _ => None,
    };
    pods.sort_by_key(|p| {
        (p.ready, leader == Some(p.name.as_str()), p.pool.clone(), std::cmp::Reverse(p.ordinal))
    });
    pods
}

/// Brokers that may be away now.
fn broker_room(input: &Input<'_>) -> usize {
    let away = input.observed.pods.values().filter(|p| p.role == Some(Role::Broker) && !p.ready).count();
    let most = usize::try_from(input.cluster.spec.updates.max_concurrent).unwrap_or(1).max(1);
    most.saturating_sub(away)
}

/// What has to be waited for before a pod of this tier may go; `None` = nothing.
fn safe(input: &Input<'_>, quorum: &Quorum, role: Role, old: &[&PodView]) -> Option<String> {
    let observed = input.observed;
    let away: Vec<&PodView> = observed.pods.values().filter(|p| p.role == Some(role) && !p.ready).collect();
    if role != Role::Broker {
        // One that is away already is replaced first; with two away nothing more is taken.
        let only_old = away.len() == 1 && old.iter().any(|o| away.iter().any(|a| a.name == o.name));
        if let Some(pod) = away.first().filter(|_| !only_old) {
            return Some(format!("{} to be ready", pod.name));
        }
    }
    match role {
        Role::Meta => meta_safe(input, quorum),
        Role::Bookie => {
            if let Some((pod, b)) = observed
                .bookies
                .iter()
                .find_map(|(pod, b)| Some((pod, b.as_ref().ok().filter(|b| b.state == "limbo")?)))
            {
                return Some(format!("{pod} to leave {}", b.state));
            }
            match &observed.quorum {
                Some(Ok(q)) => match &q.under {
                    Ok(0) => None,
                    Ok(n) => Some(format!("{n} ledgers to have all their copies checked")),
                    Err(why) => Some(format!("an answer about missing copies: {why}")),
                },
                Some(Err(why)) => Some(format!("the quorum: {why}")),
                None => None,
            }
        }
        Role::Broker => None,
    }
}

fn meta_safe(input: &Input<'_>, quorum: &Quorum) -> Option<String> {
    let Quorum::Running { voters, .. } = quorum else { return None };
    if voters.len() < 3 {
        // Nothing can take over: the outage is the same at any time.
        return None;
    }
    let answers: Vec<_> = input.observed.metas.values().flatten().collect();
    let silent = voters.iter().filter(|v| !answers.iter().any(|a| a.node == v.node)).count();
    if silent > 1 {
        return Some(format!("{silent} voters to answer"));
    }
    let newest = answers.iter().map(|a| a.applied).max().unwrap_or(0);
    let behind = answers.iter().any(|a| a.applied.saturating_add(CAUGHT_UP) < newest);
    behind.then(|| "all voters to catch up".to_owned())
}
