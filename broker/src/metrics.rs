//! What a broker counts. Names, units and meaning for people stand in `docs/ops/broker.md`.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tidemill_runtime::Metrics;

use crate::{compaction_metrics::CompactionMetrics, groups::lag::LagMetrics};

/// A broker's metrics. Clones share the values.
#[derive(Clone, Debug)]
pub(crate) struct BrokerMetrics {
    pub(crate) produce_records: Counter,
    pub(crate) produce_bytes: Counter,
    pub(crate) produce_calls: Counter,
    pub(crate) produce_failed: Counter,
    pub(crate) produce_duplicates: Counter,
    pub(crate) produce_latency: Histogram,
    pub(crate) in_flight_bytes: Gauge,
    pub(crate) produce_streams: Gauge,
    pub(crate) fetch_calls: Counter,
    pub(crate) fetch_bytes: Counter,
    pub(crate) fetch_waiting: Gauge,
    pub(crate) not_owner: Counter,
    pub(crate) no_owner: Counter,
    pub(crate) overloaded: Counter,
    pub(crate) partitions_owned: Gauge,
    pub(crate) partitions_opening: Gauge,
    pub(crate) take_overs: Counter,
    pub(crate) take_over_duration: Histogram,
    pub(crate) releases: Counter,
    pub(crate) partitions_dropped: Counter,
    pub(crate) sessions_lost: Counter,
    pub(crate) groups: Gauge,
    pub(crate) group_members: Gauge,
    pub(crate) group_rebalances: Counter,
    pub(crate) group_members_removed: Counter,
    pub(crate) group_commits: Counter,
    /// Groups and members by partition of the offsets topic.
    group_counts: Arc<Mutex<HashMap<u32, (usize, usize)>>>,
    pub(crate) degraded_ledgers: Gauge,
    pub(crate) tail_cache_bytes: Gauge<u64, AtomicU64>,
    pub(crate) tail_cache_hits: Counter,
    pub(crate) tail_cache_misses: Counter,
    pub(crate) compaction: CompactionMetrics,
    pub(crate) lag: LagMetrics,
}

impl BrokerMetrics {
    pub(crate) fn new() -> Self {
        // 0.5 ms to 16 s, doubling: a fast disk at the low end, a failover at the high one.
        let latency =
            || Histogram::new(prometheus_client::metrics::histogram::exponential_buckets(0.0005, 2.0, 16));
        Self {
            produce_records: Counter::default(),
            produce_bytes: Counter::default(),
            produce_calls: Counter::default(),
            produce_failed: Counter::default(),
            produce_duplicates: Counter::default(),
            produce_latency: latency(),
            in_flight_bytes: Gauge::default(),
            produce_streams: Gauge::default(),
            fetch_calls: Counter::default(),
            fetch_bytes: Counter::default(),
            fetch_waiting: Gauge::default(),
            not_owner: Counter::default(),
            no_owner: Counter::default(),
            overloaded: Counter::default(),
            partitions_owned: Gauge::default(),
            partitions_opening: Gauge::default(),
            take_overs: Counter::default(),
            take_over_duration: latency(),
            releases: Counter::default(),
            partitions_dropped: Counter::default(),
            sessions_lost: Counter::default(),
            groups: Gauge::default(),
            group_members: Gauge::default(),
            group_rebalances: Counter::default(),
            group_members_removed: Counter::default(),
            group_commits: Counter::default(),
            group_counts: Arc::default(),
            degraded_ledgers: Gauge::default(),
            tail_cache_bytes: Gauge::default(),
            tail_cache_hits: Counter::default(),
            tail_cache_misses: Counter::default(),
            compaction: CompactionMetrics::default(),
            lag: LagMetrics::default(),
        }
    }

    /// Groups and members of one coordinator; none of both: it is gone.
    pub(crate) fn groups_of(&self, partition: u32, groups: usize, members: usize) {
        let mut counts = self.group_counts.lock();
        if (groups, members) == (0, 0) {
            counts.remove(&partition);
        } else {
            counts.insert(partition, (groups, members));
        }
        let gauge = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.groups.set(gauge(counts.values().map(|c| c.0).sum()));
        self.group_members.set(gauge(counts.values().map(|c| c.1).sum()));
    }

    pub(crate) fn register(&self, metrics: &Metrics, member: &str) {
        metrics.register("broker", &[("member", member)], |r| self.fill(r));
    }

    fn fill(&self, r: &mut Registry) {
        r.register("produce_records", "Records acknowledged", self.produce_records.clone());
        r.register_with_unit("produce", "Batch bytes acknowledged", Unit::Bytes, self.produce_bytes.clone());
        r.register("produce_calls", "Produce calls and frames answered", self.produce_calls.clone());
        r.register(
            "produce_failed",
            "Produce calls and frames answered with an error",
            self.produce_failed.clone(),
        );
        r.register(
            "produce_duplicates",
            "Produce calls recognised as duplicates",
            self.produce_duplicates.clone(),
        );
        r.register_with_unit(
            "produce_latency",
            "From arrival to acknowledgement",
            Unit::Seconds,
            self.produce_latency.clone(),
        );
        r.register_with_unit(
            "produce_in_flight",
            "Batch bytes that wait for acknowledgement",
            Unit::Bytes,
            self.in_flight_bytes.clone(),
        );
        r.register("produce_streams", "Open produce streams", self.produce_streams.clone());
        r.register("fetch_calls", "Fetch calls answered", self.fetch_calls.clone());
        r.register_with_unit("fetch", "Batch bytes sent to consumers", Unit::Bytes, self.fetch_bytes.clone());
        r.register("fetch_waiting", "Fetch calls that wait for data", self.fetch_waiting.clone());
        r.register("not_owner", "Answers NOT_OWNER", self.not_owner.clone());
        r.register("no_owner", "Answers NO_OWNER", self.no_owner.clone());
        r.register("overloaded", "Answers OVERLOADED", self.overloaded.clone());
        r.register("partitions_owned", "Partitions that this broker serves", self.partitions_owned.clone());
        r.register(
            "partitions_opening",
            "Partitions that are being taken over",
            self.partitions_opening.clone(),
        );
        r.register("take_overs", "Partitions taken over", self.take_overs.clone());
        r.register_with_unit(
            "take_over_duration",
            "From the acquire to serving",
            Unit::Seconds,
            self.take_over_duration.clone(),
        );
        r.register("releases", "Partitions handed over in order", self.releases.clone());
        r.register("partitions_dropped", "Partitions lost without an order", self.partitions_dropped.clone());
        r.register("sessions_lost", "Sessions with the quorum that expired", self.sessions_lost.clone());
        r.register(
            "degraded_ledgers",
            "Open ledgers with fewer bookies than wanted",
            self.degraded_ledgers.clone(),
        );
        r.register("groups", "Consumer groups whose coordinator this broker is", self.groups.clone());
        r.register("group_members", "Members of these groups", self.group_members.clone());
        r.register("group_rebalances", "New epochs of groups", self.group_rebalances.clone());
        r.register(
            "group_members_removed",
            "Members that were not heard, or did not confirm in time",
            self.group_members_removed.clone(),
        );
        r.register("group_commits", "Offsets committed", self.group_commits.clone());
        r.register_with_unit("tail_cache", "Tail cache", Unit::Bytes, self.tail_cache_bytes.clone());
        r.register("tail_cache_hits", "Reads answered from the tail cache", self.tail_cache_hits.clone());
        r.register("tail_cache_misses", "Reads that went to bookies", self.tail_cache_misses.clone());
        self.compaction.fill(r);
        self.lag.fill(r);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_documented() {
        let metrics = Metrics::new();
        BrokerMetrics::new().register(&metrics, "broker-0");
        let page = include_str!("../../docs/ops/broker.md");
        let text = metrics.encode();
        let names: Vec<&str> =
            text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split_whitespace().next()).collect();
        assert!(names.len() > 20, "{text}");
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "{name} is missing in docs/ops/broker.md");
        }
    }
}
