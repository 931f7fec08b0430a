//! What the quorum says to the replacement of a pod (rule 11), and what its member has to do before.
//!
//! The plan asks by naming members in [`super::Plan::asks`]; whoever carries it out asks the quorum and plans again.

use super::{Action, Draft, Input};
use crate::{
    names::Role,
    observe::{MemberView, PodView},
};

/// Whether a pod may go now.
pub(super) enum Permission {
    /// It may; a bookie announces it first (R28).
    Given {
        /// uuid of the bookie.
        announce: Option<String>,
    },
    /// Not yet, and why.
    Waits(String),
}

/// The member that a pod is, as far as it is known.
fn uuid_of(input: &Input<'_>, role: Role, pod: &PodView) -> Option<String> {
    let observed = input.observed;
    match role {
        Role::Meta => observed.metas.get(&pod.name)?.as_ref().ok().map(|m| m.member.clone()),
        Role::Bookie => match observed.bookies.get(&pod.name) {
            Some(Ok(b)) => Some(b.uuid.clone()),
            // It is away: its claim knows.
            _ => observed.claims.get(&crate::render::claim_of(&pod.name)).and_then(|c| c.uuid.clone()),
        },
        Role::Broker => broker(input, &pod.name).map(|m| m.uuid.clone()),
    }
    .filter(|u| !u.is_empty())
}

fn members<'a>(input: &Input<'a>) -> &'a [MemberView] {
    match &input.observed.quorum {
        Some(Ok(q)) => &q.members,
        _ => &[],
    }
}

fn broker<'a>(input: &Input<'a>, pod: &str) -> Option<&'a MemberView> {
    members(input).iter().find(|m| m.role == Role::Broker.name() && m.name == pod)
}

/// The quorum is asked through a broker. While none is there nobody can be asked, and what is replaced may be the cure: then the
/// operator's own checks decide.
fn can_ask(input: &Input<'_>) -> bool {
    members(input).iter().any(|m| m.role == Role::Broker.name() && m.live)
}

/// Asks for a pod that the operator's own checks would replace.
pub(super) fn ask(input: &Input<'_>, role: Role, pod: &PodView, draft: &mut Draft) -> Permission {
    let given = Permission::Given { announce: None };
    let (true, Some(uuid)) = (can_ask(input), uuid_of(input, role, pod)) else { return given };
    let waits = |why: String| Permission::Waits(format!("the quorum's consent: {why}"));
    match input.observed.consents.get(&uuid) {
        None => {
            draft.asks.push(uuid);
            waits("it is asked".to_owned())
        }
        Some(Err(why)) => waits(why.clone()),
        Some(Ok(reasons)) if reasons.is_empty() => {
            Permission::Given { announce: (role == Role::Bookie).then_some(uuid) }
        }
        // Drained first; nothing else stands against it.
        Some(Ok(reasons)) if role == Role::Broker && reasons.iter().all(|r| r == OWNS) => {
            if broker(input, &pod.name).is_some_and(|m| m.state == "rw") {
                draft.actions.push(Action::DrainBroker { uuid, name: pod.name.clone(), undo: false });
            }
            Permission::Waits("others to take over its partitions".to_owned())
        }
        Some(Ok(reasons)) => waits(reasons.join(", ")),
    }
}

/// The broker has partitions, and others could have them.
const OWNS: &str = "OWNS_PARTITIONS";

/// What was wished for a replacement ends with it: a broker takes partitions again, and a bookie that stays after all does not
/// restart. Brokers that are gone for good are not waited for any more.
pub(super) fn tidy(input: &Input<'_>, outdated: &[&PodView], draft: &mut Draft) {
    let stays = |name: &str| {
        // A set whose controller is behind does not tell which of its pods are outdated.
        let set = name.rsplit_once('-').and_then(|(set, _)| input.observed.sets.get(set));
        set.is_some_and(|s| s.settled)
            && input.observed.pods.get(name).is_some_and(|p| p.ready && !p.deleting)
            && !outdated.iter().any(|o| o.name == name)
    };
    let set = input.names.set(Role::Broker, None);
    for m in members(input) {
        let (uuid, name) = (m.uuid.clone(), m.name.clone());
        if m.role == Role::Broker.name() {
            let ordinal = m
                .name
                .strip_prefix(&set)
                .and_then(|n| n.strip_prefix('-'))
                .and_then(|n| n.parse::<i32>().ok());
            let gone = ordinal.is_some_and(|n| n >= input.cluster.spec.brokers.replicas)
                && !input.observed.pods.contains_key(&m.name);
            if m.state == "draining" && m.live && stays(&m.name) {
                draft.actions.push(Action::DrainBroker { uuid, name, undo: true });
            } else if m.state == "rw" && !m.live && gone {
                draft.actions.push(Action::DrainBroker { uuid, name, undo: false });
            }
        } else if m.restarting && m.live && stays(&m.name) {
            draft.actions.push(Action::CancelRestart { uuid, name });
        }
    }
}
