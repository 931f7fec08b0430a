//! `ChangeMembers`: one step at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use openraft::{
    ChangeMembers,
    async_runtime::WatchReceiver,
    errors::{ClientWriteError, RaftError},
};
use tidemill_metadata::State;
use tidemill_proto::meta::{
    ChangeMembersRequest, ChangeMembersResponse, Voter, change_members_request::Change,
    change_members_response::Outcome,
};
use tidemill_types::ErrorCode;
use tonic::Status;

use super::{MetaService, invalid, peers, refuse, refuse_for_now};
use crate::{
    check::NotLeading,
    config::is_address,
    node::Node,
    types::{NodeId, Peer, TypeConfig},
};

/// Retry hint, ms.
const AGAIN_MS: u64 = 200;
/// A new member must have the log within this time before it votes.
const LEARN: Duration = Duration::from_secs(50);
/// A voter that lacks no more entries than this counts as up to date.
const NEARLY: u64 = 1_000;
/// Voters at most.
const MAX_VOTERS: usize = 7;

type WriteError = RaftError<TypeConfig, ClientWriteError<TypeConfig>>;

pub(super) async fn change(
    service: &MetaService,
    r: ChangeMembersRequest,
) -> Result<ChangeMembersResponse, Status> {
    let node = &service.node;
    node.cluster.check(&r.cluster)?;
    let change = r.change.ok_or_else(|| invalid("change", "one of add, remove, readdress"))?;
    if let Change::Readdress(voter) = &change {
        // Local first: it is needed most when the quorum cannot commit.
        readdress_here(node, voter).await?;
    }
    let elsewhere = || Ok(ChangeMembersResponse { outcome: Some(Outcome::Leader(service.hint())) });
    match node.check.wait().await {
        Ok(_) => {}
        Err(NotLeading::Elsewhere) => return elsewhere(),
        Err(NotLeading::Unproven(why)) => {
            return Err(refuse_for_now(ErrorCode::QuorumUnavailable, &why, AGAIN_MS));
        }
    }
    let Ok(_changing) = node.changing.try_lock() else {
        return Err(refuse_for_now(ErrorCode::NotReady, "a change of members is under way", AGAIN_MS));
    };
    let done = match change {
        Change::Add(address) => add(node, &address).await?,
        Change::Remove(id) => remove(node, id).await?,
        Change::Readdress(voter) => readdress(node, &voter).await?,
    };
    match done {
        Ok(()) => Ok(ChangeMembersResponse { outcome: Some(Outcome::Done(true)) }),
        Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_))) => elsewhere(),
        Err(RaftError::APIError(e @ ClientWriteError::ChangeMembershipError(_))) => {
            Err(refuse_for_now(ErrorCode::NotReady, &e.to_string(), AGAIN_MS))
        }
        Err(e) => Err(refuse(ErrorCode::OutcomeUnknown, &e.to_string())),
    }
}

/// Voters and all nodes of the membership in force.
fn members(node: &Node) -> (BTreeSet<NodeId>, BTreeMap<NodeId, Peer>) {
    let m = node.raft.server_metrics().borrow_watched().membership_config.clone();
    (m.voter_ids().collect(), m.nodes().map(|(id, p)| (*id, p.clone())).collect())
}

/// A new member first gets the log as a learner, then votes.
async fn add(node: &Arc<Node>, address: &str) -> Result<Result<(), WriteError>, Status> {
    if !is_address(address) {
        return Err(invalid("add", &format!("{address:?} is not host:port")));
    }
    let status = peers::status_of(node, address)
        .await
        .map_err(|why| refuse_for_now(ErrorCode::QuorumUnavailable, &why, AGAIN_MS))?;
    let (voters, nodes) = members(node);
    if voters.contains(&status.node) {
        return Ok(Ok(()));
    }
    let foreign = !status.cluster.is_empty() && status.cluster != node.cluster.bytes();
    if foreign || (status.role != "uninitialized" && !nodes.contains_key(&status.node)) {
        let why =
            format!("{address} is not empty: it is a {} of another quorum, or was removed", status.role);
        return Err(refuse(ErrorCode::Conflict, &why));
    }
    let level = node.machine.with(State::feature_level);
    if status.feature_level.max(1) < level {
        let why = format!(
            "the binary at {address} knows feature level {}, the cluster is at {level}: install a newer one",
            status.feature_level.max(1)
        );
        return Err(refuse(ErrorCode::FeatureLevelTooLow, &why));
    }
    if voters.len() >= MAX_VOTERS {
        return Err(refuse(ErrorCode::Conflict, &format!("there are {MAX_VOTERS} voters")));
    }
    let peer = Peer { address: address.to_owned(), member: status.member };
    let learning = node.raft.add_learner(status.node, peer, true);
    match tokio::time::timeout(LEARN, learning).await {
        Ok(Ok(_)) => {}
        Ok(Err(e)) => return Ok(Err(e)),
        Err(_) => {
            let why = format!("{address} did not catch up within {LEARN:?}: try again");
            return Err(refuse_for_now(ErrorCode::QuorumUnavailable, &why, AGAIN_MS));
        }
    }
    let change = ChangeMembers::AddVoterIds(BTreeSet::from([status.node]));
    Ok(node.raft.change_membership(change, false).await.map(|_| ()))
}

async fn remove(node: &Arc<Node>, id: NodeId) -> Result<Result<(), WriteError>, Status> {
    let (voters, nodes) = members(node);
    if !nodes.contains_key(&id) {
        return Ok(Ok(()));
    }
    let ids = BTreeSet::from([id]);
    if !voters.contains(&id) {
        return Ok(node.raft.change_membership(ChangeMembers::RemoveNodes(ids), false).await.map(|_| ()));
    }
    if voters.len() == 1 {
        return Err(refuse(ErrorCode::Conflict, "the last voter cannot leave"));
    }
    check_rest(node, id, &voters, &nodes).await?;
    Ok(node.raft.change_membership(ChangeMembers::RemoveVoters(ids), false).await.map(|_| ()))
}

/// The voters that stay must be able to commit by themselves: a majority of them answers and has nearly all of the log.
async fn check_rest(
    node: &Arc<Node>,
    leaving: NodeId,
    voters: &BTreeSet<NodeId>,
    nodes: &BTreeMap<NodeId, Peer>,
) -> Result<(), Status> {
    let last = node.raft.metrics().borrow_watched().last_log_index.unwrap_or(0);
    let stay: Vec<NodeId> = voters.iter().copied().filter(|v| *v != leaving).collect();
    let asked = stay.iter().map(|id| async {
        if *id == node.id {
            return true;
        }
        let known = nodes.get(id).map(|p| p.address.clone()).unwrap_or_default();
        let status = peers::status_of(node, &node.book.address(*id, &known)).await;
        status.is_ok_and(|s| s.node == *id && s.last_log + NEARLY >= last)
    });
    let well = futures::future::join_all(asked).await.into_iter().filter(|well| *well).count();
    let needed = stay.len() / 2 + 1;
    if well < needed {
        let why = format!(
            "of the {} voters that would stay {well} answer and are up to date, {needed} are needed",
            stay.len()
        );
        return Err(refuse(ErrorCode::Conflict, &why));
    }
    Ok(())
}

async fn readdress_here(node: &Arc<Node>, voter: &Voter) -> Result<(), Status> {
    if !is_address(&voter.address) {
        return Err(invalid("readdress", &format!("{:?} is not host:port", voter.address)));
    }
    let (book, id, address) = (node.book.clone(), voter.node, voter.address.clone());
    let known = members(node).1.get(&id).map(|p| p.address.clone()).unwrap_or_default();
    let noted = tidemill_runtime::work::blocking(move || book.readdress(id, &known, &address)).await;
    noted
        .map_err(|e| refuse(ErrorCode::Internal, &e.to_string()))?
        .map_err(|e| refuse(ErrorCode::Internal, &format!("the new address was not noted: {e}")))
}

async fn readdress(node: &Arc<Node>, voter: &Voter) -> Result<Result<(), WriteError>, Status> {
    let (_, nodes) = members(node);
    let Some(known) = nodes.get(&voter.node) else {
        return Err(refuse(ErrorCode::InvalidArgument, &format!("node {} is no member", voter.node)));
    };
    if known.address == voter.address {
        return Ok(Ok(()));
    }
    // Safe although openraft warns of it: a message names its node, so a wrong address reaches nobody else.
    let peer = Peer { address: voter.address.clone(), member: known.member.clone() };
    let change = ChangeMembers::SetNodes(BTreeMap::from([(voter.node, peer)]));
    Ok(node.raft.change_membership(change, false).await.map(|_| ()))
}
