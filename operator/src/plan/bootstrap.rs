//! The quorum: made once, read back when the status was lost, never made beside data of an older one (rule 21).

use std::collections::BTreeSet;

use super::{Action, Draft, Input};
use crate::{
    names::{Names, Role},
    observe::{MetaView, VoterView},
};

/// What is to be done about the quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// Somebody whose answer is needed has not answered yet.
    Waiting {
        /// One word.
        reason: &'static str,
        /// A sentence.
        why: String,
    },
    /// What was found does not fit together: a person has to look.
    Stalled {
        /// One word.
        reason: &'static str,
        /// A sentence.
        why: String,
    },
    /// Everybody is empty: it can be made.
    Make,
    /// It is there.
    Running {
        /// Its id.
        cluster: String,
        /// Its voters.
        voters: Vec<VoterView>,
        /// The pod that leads.
        leader: Option<String>,
    },
}

/// The next change of the voters, if any is needed and possible.
enum Change {
    None,
    Do(Action, String),
    Wait(String),
}

pub(super) fn decide(input: &Input<'_>) -> Quorum {
    let observed = input.observed;
    let recorded = input.cluster.status.as_ref().and_then(|s| s.cluster_id.clone());
    let metas = || observed.metas.iter().filter_map(|(pod, m)| Some((pod, m.as_ref().ok()?)));
    let named: BTreeSet<&str> = metas().filter_map(|(_, m)| m.cluster.as_deref()).collect();
    let cookies: BTreeSet<(&str, &str)> = observed
        .bookies
        .iter()
        .filter_map(|(pod, b)| Some((pod.as_str(), b.as_ref().ok()?.cluster.as_deref()?)))
        .collect();
    let stalled = |reason, why: String| Quorum::Stalled { reason, why };
    if named.len() > 1 {
        let each: Vec<String> =
            metas().filter_map(|(pod, m)| Some(format!("{pod}: {}", m.cluster.as_ref()?))).collect();
        return stalled(
            "ForeignVolume",
            format!("the quorum's volumes belong to different clusters ({})", each.join(", ")),
        );
    }
    let Some(id) = named.first().copied() else { return not_made(input, recorded.as_deref(), &cookies) };
    if let Some(recorded) = recorded.as_deref().filter(|r| *r != id) {
        return stalled(
            "ForeignVolume",
            format!("the quorum's volumes belong to cluster {id}, this Cluster is {recorded}"),
        );
    }
    if let Some((pod, other)) = cookies.iter().find(|(_, c)| *c != id) {
        return stalled(
            "ForeignVolume",
            format!("the volume of {pod} belongs to cluster {other}, this Cluster is {id}"),
        );
    }
    // One that the quorum refuses ends before anybody can ask it.
    if let Some(pod) = observed.pods.values().find(|p| p.role == Some(Role::Bookie) && p.foreign) {
        return stalled(
            "ForeignVolume",
            format!(
                "the volume of {} belongs to another cluster than this one, {id}: put the right volume back, see docs/ops/kubernetes/replace-a-disk.md",
                pod.name
            ),
        );
    }
    let leader = metas().find(|(_, m)| m.role == "leader");
    let informed =
        leader.or_else(|| metas().filter(|(_, m)| m.cluster.is_some()).max_by_key(|(_, m)| m.applied));
    Quorum::Running {
        cluster: id.to_owned(),
        voters: informed.map(|(_, m)| m.voters.clone()).unwrap_or_default(),
        leader: leader.map(|(pod, _)| pod.clone()),
    }
}

/// No member knows a cluster.
fn not_made(input: &Input<'_>, recorded: Option<&str>, cookies: &BTreeSet<(&str, &str)>) -> Quorum {
    let observed = input.observed;
    let spec = &input.cluster.spec;
    let stalled = |reason, why: String| Quorum::Stalled { reason, why };
    let waiting = |reason, why: String| Quorum::Waiting { reason, why };
    let set = input.names.set(Role::Meta, None);
    for ordinal in 0..spec.meta.replicas {
        let pod = Names::pod(&set, ordinal);
        match observed.metas.get(&pod) {
            Some(Ok(_)) => {}
            Some(Err(why)) => return waiting("WaitingForMeta", format!("{pod}: {why}")),
            None => return waiting("WaitingForMeta", format!("{pod} is not there yet")),
        }
    }
    if let Some(recorded) = recorded {
        return stalled(
            "QuorumLost",
            format!(
                "all members of the quorum have empty volumes, but this Cluster is {recorded}: restore a snapshot of the quorum, see docs/ops/kubernetes/lost-quorum.md"
            ),
        );
    }
    if let Some((pod, cluster)) = cookies.first() {
        return stalled(
            "QuorumLost",
            format!(
                "all members of the quorum have empty volumes, but the volume of {pod} belongs to cluster {cluster}: making a new quorum would lose its data"
            ),
        );
    }
    if let Some(claim) = observed.claims.values().find(|c| c.role == Some(Role::Bookie) && c.uuid.is_some()) {
        return stalled(
            "QuorumLost",
            format!(
                "all members of the quorum have empty volumes, but volume claim {} carries data of an earlier cluster",
                claim.name
            ),
        );
    }
    for pool in &spec.bookie_pools {
        let set = input.names.set(Role::Bookie, Some(&pool.name));
        for ordinal in 0..pool.replicas {
            let pod = Names::pod(&set, ordinal);
            // No answer is not "no cookie".
            match observed.bookies.get(&pod) {
                Some(Ok(_)) => {}
                Some(Err(why)) => return waiting("WaitingForBookies", format!("{pod}: {why}")),
                None => return waiting("WaitingForBookies", format!("{pod} is not there yet")),
            }
        }
    }
    if let Some((pod, Err(why))) = observed.bookies.iter().find(|(_, b)| b.is_err()) {
        return waiting("WaitingForBookies", format!("{pod}: {why}"));
    }
    Quorum::Make
}

impl Quorum {
    /// Adds what is to be done, and the condition.
    pub(super) fn add(&self, input: &Input<'_>, draft: &mut Draft) {
        match self {
            Self::Waiting { reason, why } => draft.say("QuorumReady", false, reason, why.clone()),
            Self::Stalled { reason, why } => draft.say("QuorumReady", false, reason, why.clone()),
            Self::Make => {
                let voters = input.names.meta_addresses(input.cluster.spec.meta.replicas);
                draft.step("InitializeQuorum", &input.names.set(Role::Meta, None), None);
                draft.say("QuorumReady", false, "Initializing", "the quorum is being made");
                draft.actions.push(Action::Initialize { cluster: input.fresh_id.to_owned(), voters });
            }
            Self::Running { voters, .. } => {
                let change = change(input, voters);
                match (change, &input.observed.quorum) {
                    (_, Some(Err(why))) => draft.say("QuorumReady", false, "NoQuorum", why.clone()),
                    (Change::Do(action, why), _) => {
                        let target = match &action {
                            Action::AddVoter { address } | Action::RemoveVoter { address, .. } => {
                                address.clone()
                            }
                            _ => String::new(),
                        };
                        draft.step(action.name(), &target, None);
                        draft.say("QuorumReady", false, "ChangingMembers", why);
                        draft.actions.push(action);
                    }
                    (Change::Wait(why), _) => draft.say("QuorumReady", false, "ChangingMembers", why),
                    (Change::None, _) => {
                        let n = voters.len();
                        draft.say("QuorumReady", true, "QuorumAnswers", format!("{n} voters"));
                    }
                }
            }
        }
    }
}

/// One step at a time: first a voter whose volume was emptied leaves, then an empty member joins.
fn change(input: &Input<'_>, voters: &[VoterView]) -> Change {
    let set = input.names.set(Role::Meta, None);
    let answering =
        |v: &VoterView| input.observed.metas.values().flatten().any(|m| m.node == v.node && !m.empty());
    let alive = voters.iter().filter(|v| answering(v)).count();
    for ordinal in 0..input.cluster.spec.meta.replicas {
        let pod = Names::pod(&set, ordinal);
        let address = input.names.address(Role::Meta, &pod);
        let Some(Ok(member)) = input.observed.metas.get(&pod) else {
            if voters.iter().all(|v| v.address != address) {
                return Change::Wait(format!("{pod} does not answer yet and cannot join"));
            }
            continue;
        };
        let joined = |m: &MetaView| voters.iter().any(|v| v.node == m.node);
        if joined(member) {
            continue;
        }
        if let Some(old) = voters.iter().find(|v| v.address == address) {
            // Without the one that is gone the rest must still be a majority, before and after.
            if alive * 2 <= voters.len() {
                return Change::Wait(format!(
                    "the volume of {pod} is empty, and too few of the others answer to replace it"
                ));
            }
            let action = Action::RemoveVoter { node: old.node, address };
            return Change::Do(
                action,
                format!("the volume of {pod} was emptied: its old identity leaves the quorum"),
            );
        }
        return Change::Do(Action::AddVoter { address }, format!("{pod} joins the quorum"));
    }
    Change::None
}
