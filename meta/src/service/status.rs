//! `Status`: who this member is and what it sees; needs no leader.

use std::sync::Arc;

use openraft::{ServerState, async_runtime::WatchReceiver};
use tidemill_proto::meta::{LeaderHint, RepairStatus, StatusResponse, Voter};
use tidemill_types::ErrorCode;
use tonic::Status;

use super::refuse;
use crate::{lead::AuditReport, node::Node};

pub(super) async fn status(node: &Arc<Node>) -> Result<StatusResponse, Status> {
    let stopping = |e: &dyn std::fmt::Display| refuse(ErrorCode::NotReady, &e.to_string());
    let initialized = node.raft.is_initialized().await.map_err(|e| stopping(&e))?;
    let m = node.raft.metrics().borrow_watched().clone();
    let role = match m.state {
        _ if !initialized => "uninitialized",
        ServerState::Learner => "learner",
        ServerState::Follower => "follower",
        ServerState::Candidate => "candidate",
        ServerState::Leader => "leader",
        ServerState::Shutdown => return Err(stopping(&"this member is stopping")),
    };
    let (leader, address) = node.leader();
    let (disk, folder) = (node.disk.clone(), node.dir.join("log"));
    let log_bytes = tidemill_runtime::work::blocking(move || disk.list(&folder))
        .await
        .map_err(|e| stopping(&e))?
        .map_or(0, |items| items.iter().map(|i| i.len).sum());
    let membership = &m.membership_config;
    let voters = membership
        .voter_ids()
        .map(|id| {
            let peer = membership.get_node(&id).cloned().unwrap_or_default();
            Voter { node: id, address: node.book.address(id, &peer.address), member: peer.member }
        })
        .collect();
    Ok(StatusResponse {
        node: node.id,
        member: node.member.0.as_bytes().to_vec(),
        cluster: node.cluster.bytes(),
        role: role.to_owned(),
        term: m.current_term,
        leader: Some(LeaderHint { node: leader, address }),
        last_log: m.last_log_index.unwrap_or(0),
        applied: m.last_applied.map_or(0, |a| a.index),
        snapshot: m.snapshot.map_or(0, |a| a.index),
        voters,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        log_bytes,
        snapshot_bytes: node.store.snapshot_bytes(),
        feature_level: tidemill_metadata::FEATURE_LEVEL,
        degraded: if m.state.is_leader() { node.duties.degraded() } else { Vec::new() },
        repair: (m.state == ServerState::Leader).then(|| node.duties.audited()).flatten().map(repair),
    })
}

fn repair(r: AuditReport) -> RepairStatus {
    RepairStatus {
        ledgers: r.ledgers,
        oldest_ms: r.oldest_ms,
        bytes: r.bytes,
        in_progress: r.in_progress,
        eta_ms: r.eta_ms,
        stuck: r.stuck,
    }
}
