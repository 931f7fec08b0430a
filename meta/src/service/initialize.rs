//! `Initialize`: makes a new quorum, once in a cluster's life.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use openraft::async_runtime::WatchReceiver;
use tidemill_metadata::State;
use tidemill_proto::{
    convert,
    meta::{InitializeRequest, InitializeResponse},
};
use tidemill_types::{ClusterId, ErrorCode, meta::Command};
use tonic::Status;

use super::{MetaService, feature, invalid, peers, refuse, refuse_for_now};
use crate::{config::is_address, node::Node, types::Peer};

/// A first election takes a second or two.
const ELECTION: Duration = Duration::from_secs(20);
/// Retry hint, ms.
const AGAIN_MS: u64 = 200;

pub(super) async fn initialize(
    service: &MetaService,
    r: InitializeRequest,
) -> Result<InitializeResponse, Status> {
    let node = &service.node;
    let cluster = convert::uuid("cluster", &r.cluster)
        .map(ClusterId)
        .map_err(|e| invalid("cluster", &format!("16 bytes, not {}", e.len)))?;
    check_addresses(&r.voters)?;
    node.cluster.check(&r.cluster)?;
    let Ok(_changing) = node.changing.try_lock() else {
        return Err(refuse_for_now(ErrorCode::NotReady, "a change of members is under way", AGAIN_MS));
    };
    let stopping = |e: &dyn std::fmt::Display| refuse(ErrorCode::NotReady, &e.to_string());
    if !node.raft.is_initialized().await.map_err(|e| stopping(&e))? {
        let peers = empty_peers(node, &r.voters).await?;
        node.raft
            .initialize(peers)
            .await
            .map_err(|e| refuse(ErrorCode::Conflict, &format!("this member is not empty any more: {e}")))?;
    }
    name_the_cluster(node, cluster, &r).await?;
    Ok(InitializeResponse { cluster: r.cluster })
}

fn check_addresses(voters: &[String]) -> Result<(), Status> {
    if ![1, 3, 5].contains(&voters.len()) {
        return Err(invalid("voters", "1, 3 or 5 addresses"));
    }
    if let Some(bad) = voters.iter().find(|v| !is_address(v)) {
        return Err(invalid("voters", &format!("{bad:?} is not host:port")));
    }
    if voters.iter().collect::<BTreeSet<_>>().len() != voters.len() {
        return Err(invalid("voters", "each address once"));
    }
    Ok(())
}

/// The named members, when every one of them reports an empty log and knows no cluster.
async fn empty_peers(node: &Node, voters: &[String]) -> Result<BTreeMap<u64, Peer>, Status> {
    let asked = voters.iter().map(|a| async move { (a, peers::status_of(node, a).await) });
    let mut out = BTreeMap::new();
    for (address, status) in futures::future::join_all(asked).await {
        let s = status.map_err(|why| refuse_for_now(ErrorCode::QuorumUnavailable, &why, AGAIN_MS))?;
        if s.role != "uninitialized" || !s.cluster.is_empty() {
            let why = format!("{address} is not empty: it is a {} of a quorum already", s.role);
            return Err(refuse(ErrorCode::Conflict, &why));
        }
        let peer = Peer { address: address.clone(), member: s.member };
        if out.insert(s.node, peer).is_some() {
            return Err(invalid("voters", &format!("{address} is a member that is named twice")));
        }
    }
    if !out.contains_key(&node.id) {
        return Err(invalid("voters", "the member that is asked must be one of them"));
    }
    Ok(out)
}

/// The first command: `Init`, proposed by whoever leads.
async fn name_the_cluster(node: &Arc<Node>, cluster: ClusterId, r: &InitializeRequest) -> Result<(), Status> {
    let later = |why: &str| refuse_for_now(ErrorCode::NotReady, why, AGAIN_MS);
    let mut metrics = node.raft.server_metrics();
    let leader = tokio::time::timeout(ELECTION, async {
        loop {
            let known = metrics.borrow_watched().current_leader;
            if let Some(leader) = known {
                return Some(leader);
            }
            metrics.changed().await.ok()?;
        }
    });
    let leader = leader.await.ok().flatten().ok_or_else(|| later("no leader was elected yet"))?;
    if leader != node.id {
        let (_, address) = node.leader();
        let mut stub = peers::stub(node, &address).map_err(|e| later(&e))?;
        return stub.initialize(r.clone()).await.map(|_| ());
    }
    if node.machine.with(State::cluster).is_none() && !node.propose_own(None, Command::Init { cluster }).await
    {
        return Err(later("the cluster's id was not committed yet"));
    }
    match node.machine.with(State::cluster) {
        Some(have) if have == cluster => {
            // A fresh cluster begins with all that its first voters know; one that is in use is raised by wish alone.
            let fresh = node.machine.with(|s| s.members().next().is_none() && s.topics().next().is_none());
            if fresh {
                let level = feature::highest(node).await.map_err(|why| later(&why))?;
                if node.machine.with(State::feature_level) < level && !feature::propose(node, level).await {
                    return Err(later("the feature level was not committed yet"));
                }
            }
            Ok(())
        }
        Some(have) => {
            Err(refuse(ErrorCode::WrongCluster, &format!("this quorum is cluster {have}, not {cluster}")))
        }
        None => Err(later("the cluster's id was not committed yet")),
    }
}
