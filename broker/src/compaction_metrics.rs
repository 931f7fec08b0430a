//! What the compactions of a broker did. Names, units and meaning for people stand in `docs/ops/broker.md`.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};
use tidemill_partition_log::CompactionCounters;

/// Metrics of key compaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompactionMetrics {
    running: Gauge,
    passes: Counter,
    failed: Counter,
    read_bytes: Counter,
    written_bytes: Counter,
    kept: Counter,
    dropped: Counter,
    dirty: Gauge<f64, AtomicU64>,
}

impl CompactionMetrics {
    pub(crate) fn fill(&self, r: &mut Registry) {
        r.register("compactions_running", "Compactions that run now", self.running.clone());
        r.register("compactions", "Compactions that ended", self.passes.clone());
        r.register("compactions_failed", "Compactions that failed and are tried again", self.failed.clone());
        r.register_with_unit(
            "compaction_read",
            "Bytes read by compactions",
            Unit::Bytes,
            self.read_bytes.clone(),
        );
        r.register_with_unit(
            "compaction_written",
            "Bytes of batches written by compactions",
            Unit::Bytes,
            self.written_bytes.clone(),
        );
        r.register("compaction_records_kept", "Records that compactions wrote", self.kept.clone());
        r.register("compaction_records_dropped", "Records that compactions left out", self.dropped.clone());
        r.register_with_unit(
            "compaction_max_dirty",
            "Largest share of bytes of one partition that were not compacted yet",
            Unit::Ratios,
            self.dirty.clone(),
        );
    }

    /// Takes over what was counted, and the largest dirty share of all partitions.
    pub(crate) fn note(&self, counted: &CompactionCounters, max_dirty_permille: u16) {
        let now = |c: &AtomicU64| c.load(Ordering::Relaxed);
        self.running.set(i64::try_from(now(&counted.running)).unwrap_or(i64::MAX));
        for (metric, counter) in [
            (&self.passes, &counted.passes),
            (&self.failed, &counted.failed),
            (&self.read_bytes, &counted.read_bytes),
            (&self.written_bytes, &counted.written_bytes),
            (&self.kept, &counted.kept_records),
            (&self.dropped, &counted.dropped_records),
        ] {
            metric.inc_by(now(counter).saturating_sub(metric.get()));
        }
        self.dirty.set(f64::from(max_dirty_permille) / 1_000.0);
    }
}
