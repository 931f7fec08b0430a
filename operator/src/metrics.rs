//! Metrics of the operator; docs/ops/kubernetes/metrics.md lists them.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};
use tidemill_runtime::Metrics;

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabel {
    /// cluster, topic or consumergroup.
    pub kind: &'static str,
}

/// An action of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ActionLabel {
    /// Name of the action.
    pub action: &'static str,
}

/// All metrics of the operator.
#[derive(Clone, Debug)]
pub struct OperatorMetrics {
    /// Passes over objects.
    pub reconciles: Family<KindLabel, Counter>,
    /// Passes that ended with an error.
    pub errors: Family<KindLabel, Counter>,
    /// Duration of a pass, s.
    pub seconds: Family<KindLabel, Histogram, fn() -> Histogram>,
    /// Changes made, by action.
    pub writes: Family<ActionLabel, Counter>,
    /// Status writes.
    pub status_writes: Family<KindLabel, Counter>,
    /// Time from creation to the first Ready, s.
    pub time_to_ready: Family<KindLabel, Histogram, fn() -> Histogram>,
    /// Objects waiting for a pass.
    pub queue: Family<KindLabel, Gauge>,
    /// 1 while this process leads.
    pub leader: Gauge<i64, std::sync::atomic::AtomicI64>,
    /// Installed definitions that lack fields.
    pub old_definitions: Gauge<i64, std::sync::atomic::AtomicI64>,
    /// Calls refused for want of rights.
    pub forbidden: Counter<u64, AtomicU64>,
}

fn pass() -> Histogram {
    Histogram::new([0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0, f64::INFINITY])
}

fn wait() -> Histogram {
    Histogram::new([1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, f64::INFINITY])
}

impl OperatorMetrics {
    /// Registers them.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let this = Self {
            reconciles: Family::default(),
            errors: Family::default(),
            seconds: Family::new_with_constructor(pass as fn() -> Histogram),
            writes: Family::default(),
            status_writes: Family::default(),
            time_to_ready: Family::new_with_constructor(wait as fn() -> Histogram),
            queue: Family::default(),
            leader: Gauge::default(),
            old_definitions: Gauge::default(),
            forbidden: Counter::default(),
        };
        let m = this.clone();
        metrics.register("operator", &[], move |r| {
            r.register("reconciles", "Passes over objects", m.reconciles);
            r.register("reconcile_errors", "Passes that ended with an error", m.errors);
            r.register("reconcile_seconds", "Duration of a pass", m.seconds);
            r.register("writes", "Changes made, by action", m.writes);
            r.register("status_writes", "Writes of a status", m.status_writes);
            r.register("time_to_ready_seconds", "From creation to the first Ready", m.time_to_ready);
            r.register("queue_depth", "Passes under way", m.queue);
            r.register("leader", "1 while this process leads", m.leader);
            r.register("old_definitions", "Installed definitions that lack fields", m.old_definitions);
            r.register("forbidden", "Calls that were refused for want of rights", m.forbidden);
            r.register_collector(Box::new(crate::memory::Memory));
        });
        this
    }

    /// A pass ended.
    pub fn passed(&self, kind: &'static str, took: Duration, failed: bool) {
        let label = KindLabel { kind };
        self.reconciles.get_or_create(&label).inc();
        if failed {
            self.errors.get_or_create(&label).inc();
        }
        self.seconds.get_or_create(&label).observe(took.as_secs_f64());
    }
}
