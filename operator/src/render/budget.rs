//! Disruption budgets from quorum arithmetic (rule 12).

use serde_json::{Value, json};
use tidemill_crd::ClusterSpec;

use super::Wishes;
use crate::names::{Names, Role};

/// None for a single replica: it could only block a drain for ever.
pub(super) fn budgets(spec: &ClusterSpec, names: &Names, wishes: &Wishes) -> Vec<Value> {
    let bookies: i32 = wishes.pools.iter().map(|(_, n)| n).sum();
    let mut out = Vec::new();
    if wishes.metas > 1 {
        out.push(budget(names, Role::Meta, (wishes.metas - 1) / 2));
    }
    if bookies > 1 {
        // One budget over all pools: copies of an entry may lie in different ones.
        out.push(budget(names, Role::Bookie, i32::from(wishes.bookies_evictable)));
    }
    if spec.brokers.replicas > 1 {
        out.push(budget(names, Role::Broker, 1));
    }
    out
}

fn budget(names: &Names, role: Role, max_unavailable: i32) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": names.headless(role), "labels": names.labels(Some(role), None)},
        "spec": {
            "maxUnavailable": max_unavailable,
            "selector": {"matchLabels": names.selector(role, None)},
            // A pod that is not ready protects nothing by staying where it is.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    })
}
