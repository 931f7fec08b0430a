//! A leader that is told to stop hands over first: the others need not wait for an election time-out.

use std::{sync::Arc, time::Duration};

use openraft::async_runtime::WatchReceiver;

use crate::{node::Node, types::NodeId};

/// The others elect one by themselves when it takes longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Makes the voter that has most of the log the leader, when this member leads and there is one. Best effort.
pub(crate) async fn hand_over(node: &Arc<Node>) {
    let Some(to) = successor(node) else { return };
    if node.raft.trigger().transfer_leader(to).await.is_err() {
        return;
    }
    let mut metrics = node.raft.server_metrics();
    let handed = tokio::time::timeout(PATIENCE, async {
        while metrics.borrow_watched().state.is_leader() {
            if metrics.changed().await.is_err() {
                return;
            }
        }
    });
    match handed.await {
        Ok(()) => tracing::info!(to, "the lead was handed over"),
        Err(_) => tracing::info!(to, "the lead was not taken over in time"),
    }
}

fn successor(node: &Arc<Node>) -> Option<NodeId> {
    let m = node.raft.metrics().borrow_watched().clone();
    if !m.state.is_leader() {
        return None;
    }
    let replicated = m.replication.unwrap_or_default();
    m.membership_config
        .voter_ids()
        .filter(|id| *id != node.id)
        .max_by_key(|id| replicated.get(id).copied().flatten().map(|l| l.index))
}
