//! The engine's figures, read at each scrape.

use std::{fmt, sync::Weak};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};
use tidemill_storage::Histogram;

use crate::shared::Core;

/// Reads a bookie's engine as long as the bookie is there.
pub(crate) struct EngineCollector(pub(crate) Weak<Core>);

impl fmt::Debug for EngineCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EngineCollector")
    }
}

impl Collector for EngineCollector {
    fn encode(&self, mut e: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(engine) = self.0.upgrade().and_then(|core| core.engine()) else { return Ok(()) };
        let (stats, info) = (engine.stats(), engine.info());
        for (name, help, value) in [
            ("groups", "Commit groups synced, closing ones included", stats.groups),
            ("closing_groups", "Closing groups of idle lanes", stats.closing_groups),
            ("entries", "Entries synced", stats.entries),
            ("payload_bytes", "Bytes of entries synced", stats.payload_bytes),
            ("written_bytes", "Bytes written to segments by adds, everything counted", stats.bytes_written),
            ("rewritten_bytes", "Bytes written by rewriting segments", stats.rewritten_bytes),
            ("refused_fenced", "Adds refused because the ledger is fenced", stats.refused_fenced),
            ("refused_read_only", "Adds refused for want of room", stats.refused_read_only),
            ("first_touches", "Adds for which the quorum had to be asked", stats.first_touches),
            ("conflicts", "Adds for a present entry with other bytes; alarm", stats.conflicts),
            ("replaced", "Damaged copies that were replaced", stats.replaced),
            ("corrupt_reads", "Reads that met damaged bytes; alarm", stats.corrupt_reads),
            ("fences_waited", "Fences that waited for an accepted add", stats.fences_waited),
            ("fences_of_unknown", "Fences of ledgers that were not held", stats.fences_of_unknown),
            ("failed_writes", "Segments given up after a failed write", stats.failed_writes),
            ("sealed_segments", "Segments sealed", stats.sealed_segments),
            ("removed_segments", "Segments removed", stats.removed_segments),
            ("scrubbed_bytes", "Bytes at rest that were read and checked", stats.scrubbed_bytes),
            ("scrubbed_segments", "Segments that were read and checked", stats.scrubbed_segments),
            (
                "scrub_damaged_segments",
                "Segments damaged beside their entries; alarm",
                stats.scrub_damaged_segments,
            ),
            ("scrub_failed_reads", "Segments that could not be read for the check", stats.scrub_failed_reads),
        ] {
            let m = e.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(m)?;
        }
        let sum = |f: fn(&tidemill_storage::LaneInfo) -> u64| info.lanes.iter().map(f).sum::<u64>();
        for (name, help, value) in [
            ("damaged_entries", "Stored entries known to be damaged; alarm", stats.damaged_entries),
            ("queue_bytes", "Bytes of adds that wait for a disk", stats.queue_bytes),
            ("ledgers", "Ledgers held", info.ledgers as u64),
            ("segments", "Segments on all lanes", sum(|l| l.segments as u64)),
            ("segment_bytes", "Bytes of all segments", sum(|l| l.segment_bytes)),
            ("live_bytes", "Bytes of live records in them", sum(|l| l.live_bytes)),
            ("free_bytes", "Free bytes of the lanes' file systems", sum(|l| l.free_bytes)),
            ("total_bytes", "Size of the lanes' file systems", sum(|l| l.total_bytes)),
            ("reserve_bytes", "Kept for fences, collections and recovery adds", sum(|l| l.reserve_bytes)),
            ("limbo", "1 while the bookie is in limbo", u64::from(info.limbo)),
            ("read_only", "1 while plain adds are refused", u64::from(crate::space::is_read_only(&info))),
        ] {
            let m = e.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(m)?;
        }
        let (sum, count, buckets) = seconds(&stats.sync);
        let mut m = e.encode_descriptor(
            "fsync",
            "Duration of the sync of a commit group",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        m.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

/// A histogram of µs as one of seconds: sum, count, `(upper bound, count)`.
#[expect(clippy::cast_precision_loss, reason = "times of a disk in seconds")]
fn seconds(h: &Histogram) -> (f64, u64, Vec<(f64, u64)>) {
    let last = h.buckets.len() - 1;
    let bound = |i: usize| if i == last { f64::INFINITY } else { Histogram::bound_us(i) as f64 / 1e6 };
    let buckets = h.buckets.iter().enumerate().map(|(i, &n)| (bound(i), n)).collect();
    (h.sum_us as f64 / 1e6, h.count, buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros_become_seconds_and_the_last_bucket_has_no_end() {
        let mut h = Histogram { count: 3, sum_us: 2_000_000, ..Histogram::default() };
        (h.buckets[0], h.buckets[19]) = (2, 1);
        let (sum, count, buckets) = seconds(&h);
        assert!((sum - 2.0).abs() < 1e-9 && count == 3);
        assert_eq!((buckets[0], buckets[19]), ((16e-6, 2), (f64::INFINITY, 1)));
    }
}
