//! `RaiseFeatureLevel`: only what every voter's binary knows.

use std::sync::Arc;

use openraft::async_runtime::WatchReceiver;
use tidemill_metadata::State;
use tidemill_proto::meta::{
    RaiseFeatureLevelRequest, RaiseFeatureLevelResponse, raise_feature_level_response::Outcome,
};
use tidemill_types::{
    ErrorCode,
    meta::{Command, ControlAction, ControlCommand},
};
use tonic::Status;

use super::{MetaService, peers, refuse, refuse_for_now};
use crate::{check::NotLeading, node::Node};

/// Retry hint, ms.
const AGAIN_MS: u64 = 200;

pub(super) async fn raise(
    service: &MetaService,
    r: RaiseFeatureLevelRequest,
) -> Result<RaiseFeatureLevelResponse, Status> {
    let node = &service.node;
    node.cluster.check(&r.cluster)?;
    match node.check.wait().await {
        Ok(_) => {}
        Err(NotLeading::Elsewhere) => {
            let outcome = Some(Outcome::Leader(service.hint()));
            return Ok(RaiseFeatureLevelResponse { outcome, highest: 0 });
        }
        Err(NotLeading::Unproven(why)) => {
            return Err(refuse_for_now(ErrorCode::QuorumUnavailable, &why, AGAIN_MS));
        }
    }
    // Nobody joins while the level goes up.
    let Ok(_changing) = node.changing.try_lock() else {
        return Err(refuse_for_now(ErrorCode::NotReady, "a change of members is under way", AGAIN_MS));
    };
    let known = highest(node).await;
    let level = node.machine.with(State::feature_level);
    let answer = |level, highest| RaiseFeatureLevelResponse { outcome: Some(Outcome::Level(level)), highest };
    if r.dry_run {
        return Ok(answer(level, known.unwrap_or(0)));
    }
    let highest = known.map_err(|why| refuse_for_now(ErrorCode::QuorumUnavailable, &why, AGAIN_MS))?;
    let wanted = if r.level == 0 { highest.max(level) } else { r.level };
    if wanted > highest {
        let why = format!("level {wanted} is not known to every voter, the highest that is, is {highest}");
        return Err(refuse(ErrorCode::FeatureLevelTooLow, &why));
    }
    if wanted < level {
        let why = format!("the feature level is {level} and never goes down");
        return Err(refuse(ErrorCode::Conflict, &why));
    }
    if wanted > level && !propose(node, wanted).await {
        return Err(refuse_for_now(ErrorCode::NotReady, "the level was not committed yet", AGAIN_MS));
    }
    Ok(answer(node.machine.with(State::feature_level), highest))
}

/// The highest level that every voter's binary knows.
pub(super) async fn highest(node: &Arc<Node>) -> Result<u32, String> {
    let membership = node.raft.server_metrics().borrow_watched().membership_config.clone();
    let others = membership.voter_ids().filter(|id| *id != node.id).map(|id| {
        let known = membership.get_node(&id).map(|p| p.address.clone()).unwrap_or_default();
        let address = node.book.address(id, &known);
        async move { peers::status_of(node, &address).await.map(|s| s.feature_level.max(1)) }
    });
    let mut lowest = tidemill_metadata::FEATURE_LEVEL;
    for level in futures::future::join_all(others).await {
        lowest = lowest.min(level?);
    }
    Ok(lowest)
}

/// The leader's own command; every voter's binary was asked before.
pub(super) async fn propose(node: &Node, level: u32) -> bool {
    let action = ControlAction::RaiseFeatureLevel { level };
    node.propose_own(None, Command::Control(ControlCommand { epoch: None, action })).await
}
