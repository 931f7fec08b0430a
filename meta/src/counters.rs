//! Figures of one member.

use std::sync::{Arc, Weak};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::Counter, gauge::ConstGauge},
    registry::Registry,
};

use openraft::async_runtime::WatchReceiver;

use crate::node::Node;

/// Counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) proposals: Counter,
    pub(crate) reads: Counter,
    pub(crate) renewals: Counter,
    pub(crate) expiries: Counter,
    pub(crate) not_leader: Counter,
    pub(crate) overloaded: Counter,
    pub(crate) audits: Counter,
    pub(crate) audit_looks: Counter,
    pub(crate) audit_recoveries: Counter,
    pub(crate) audit_compared: Counter,
    pub(crate) audit_copies: Counter,
    pub(crate) audit_divergent: Counter,
}

impl Counters {
    pub(crate) fn register(&self, r: &mut Registry) {
        r.register("proposals", "Commands of clients that were applied", self.proposals.clone());
        r.register("reads", "Linearizable reads answered", self.reads.clone());
        r.register("renewals", "Session renewals answered", self.renewals.clone());
        r.register("expiries", "Expiries of sessions proposed", self.expiries.clone());
        r.register("not_leader", "Requests sent on to the leader", self.not_leader.clone());
        r.register(
            "overloaded",
            "Proposals and watches refused because too many were under way",
            self.overloaded.clone(),
        );
        r.register(
            "audit_compared",
            "Closed ledgers whose replicas are all the same",
            self.audit_compared.clone(),
        );
        r.register("audit_copies", "Copies of entries that were compared", self.audit_copies.clone());
        r.register("audit_divergent", "Ledgers with copies that differ", self.audit_divergent.clone());
        r.register("audits", "Passes of the auditor", self.audits.clone());
        r.register(
            "audit_looks",
            "Ledgers whose members were asked what they hold",
            self.audit_looks.clone(),
        );
        r.register(
            "audit_recoveries",
            "Ledgers recovered because their owner did not roll them in time",
            self.audit_recoveries.clone(),
        );
    }
}

/// Gauges, read when they are asked for.
#[derive(Debug)]
pub(crate) struct Gauges(pub(crate) Weak<Node>);

impl Collector for Gauges {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(node) = self.0.upgrade() else { return Ok(()) };
        for (name, help, value) in gauges(&node) {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(out.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

fn gauges(node: &Arc<Node>) -> Vec<(&'static str, &'static str, u64)> {
    let m = node.raft.metrics().borrow_watched().clone();
    let state = node.machine.state();
    let audit = node.duties.audited().unwrap_or_default();
    let oldest = if audit.oldest_ms == 0 { 0 } else { (state.wall_ms() - audit.oldest_ms).max(0) / 1_000 };
    let index = |id: Option<crate::types::LogId>| id.map_or(0, |i| i.index);
    vec![
        ("term", "Raft term", m.current_term),
        ("leads", "1 while this member leads", u64::from(m.state.is_leader())),
        ("last_log", "Index of the last log entry", m.last_log_index.unwrap_or(0)),
        ("applied", "Index of the last applied entry", index(m.last_applied)),
        ("snapshot_index", "Index of the last snapshot", index(m.snapshot)),
        ("voters", "Voters of the quorum", m.membership_config.voter_ids().count() as u64),
        ("sessions", "Live sessions", state.sessions().count() as u64),
        ("sessions_kept", "Sessions that this member counts as leader", node.duties.sessions() as u64),
        ("partitions", "Partitions", state.partitions().count() as u64),
        ("repair_ledgers", "Ledgers with copies to be made or looked for, on the leader", audit.ledgers),
        ("repair_bytes", "Payload bytes of the copies to be made, at most, on the leader", audit.bytes),
        (
            "repair_oldest_seconds",
            "How long the oldest of them has waited, on the leader",
            u64::try_from(oldest).unwrap_or(0),
        ),
        ("repairs_in_progress", "Repairs under way, on the leader", audit.in_progress.into()),
        ("repair_stuck", "Ledgers that nobody can complete now, on the leader", audit.stuck),
        ("log_cache_bytes", "Payload bytes of the log in memory", node.log.cached_bytes() as u64),
        ("snapshot_bytes", "Bytes of the last snapshot", node.store.snapshot_bytes()),
    ]
}
