//! Default replica counts: the number and its reason stand in docs/ops/kubernetes.

/// Members of the quorum: the fewest that survive the loss of one.
#[must_use]
pub fn default_meta() -> i32 {
    3
}

/// Brokers; an autoscaler may own the number.
#[must_use]
pub fn default_brokers() -> i32 {
    3
}

/// Bookies of a pool: one per copy.
pub(super) fn bookies() -> i32 {
    3
}

/// Label of nodes that tells their failure zone.
pub(super) fn topology_key() -> String {
    "topology.kubernetes.io/zone".to_owned()
}

/// Brokers restarted at once.
pub(super) fn max_concurrent() -> i32 {
    1
}
