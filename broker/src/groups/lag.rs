//! How far groups are behind, as a metric of each group, topic and partition.
//!
//! The number of series is bounded: of more partitions than `group-lag-series` allows, those come first whose group's name comes
//! first, so that the choice does not change from one look to the next, and the rest is counted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use tidemill_types::{GroupName, PartitionId};

use super::{Stage, ranges};
use crate::{core::Core, deadline::Deadline};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(15);
/// What a look at one coordinator, and the question after all ends, may take.
const WAIT: Duration = Duration::from_secs(5);

/// A partition of a group.
type Key = (GroupName, PartitionId);

/// Which partition of which group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
pub(crate) struct LagLabels {
    group: String,
    topic: String,
    partition: u32,
}

/// The metrics. Clones share the values.
#[derive(Clone, Debug, Default)]
pub(crate) struct LagMetrics {
    lag: Family<LagLabels, Gauge<i64, AtomicI64>>,
    omitted: Gauge,
    shown: Arc<Mutex<BTreeSet<LagLabels>>>,
}

impl LagMetrics {
    pub(crate) fn fill(&self, r: &mut Registry) {
        r.register(
            "group_lag",
            "Records between what a group committed and the end of the partition",
            self.lag.clone(),
        );
        r.register(
            "group_lag_omitted",
            "Partitions of groups without a series, because there are too many",
            self.omitted.clone(),
        );
    }

    /// Shows these and nothing else.
    fn show(&self, now: BTreeMap<LagLabels, i64>, omitted: usize) {
        let mut shown = self.shown.lock();
        for gone in shown.iter().filter(|l| !now.contains_key(*l)) {
            self.lag.remove(gone);
        }
        for (labels, lag) in &now {
            self.lag.get_or_create(labels).set(*lag);
        }
        *shown = now.into_keys().collect();
        self.omitted.set(i64::try_from(omitted).unwrap_or(i64::MAX));
    }
}

/// Looks at all groups of this broker's coordinators until the broker ends.
pub(crate) async fn watch(core: Arc<Core>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        look(&core).await;
    }
}

async fn look(core: &Arc<Core>) {
    let most = usize::try_from(core.config.group_lag_series).unwrap_or(usize::MAX);
    if most == 0 {
        return core.metrics.lag.show(BTreeMap::new(), 0);
    }
    let mut committed: BTreeMap<Key, i64> = BTreeMap::new();
    let mut omitted = 0;
    for (_, handle) in core.groups.all() {
        if *handle.stage.borrow() != Stage::Serving {
            continue;
        }
        let of_one = handle.ask(Deadline::within(WAIT), move |c| first_offsets(c, most)).await;
        // A coordinator that moves away: its new owner shows its groups.
        let Ok((offsets, more)) = of_one else { continue };
        omitted += more;
        committed.extend(offsets);
        while committed.len() > most {
            committed.pop_last();
            omitted += 1;
        }
    }
    let ids: Vec<PartitionId> =
        committed.keys().map(|(_, p)| *p).collect::<BTreeSet<_>>().into_iter().collect();
    let found = ranges(core, &ids, Deadline::within(WAIT)).await;
    let ends: BTreeMap<PartitionId, (i64, i64)> =
        ids.into_iter().zip(found).filter_map(|(id, r)| Some((id, r.ok()?))).collect();
    let mut now = BTreeMap::new();
    {
        let table = core.mirror.table();
        for ((group, p), offset) in committed {
            // Without an answer there is no series: a wrong figure is worse than none.
            let (Some((start, end)), Some(topic)) = (ends.get(&p), table.topic(p.topic)) else { continue };
            let labels =
                LagLabels { group: group.to_string(), topic: topic.name.to_string(), partition: p.index };
            now.insert(labels, lag(offset, *start, *end));
        }
    }
    core.metrics.lag.show(now, omitted);
}

/// What was trimmed is not behind: nobody will ever read it.
fn lag(committed: i64, start: i64, end: i64) -> i64 {
    (end - committed.max(start)).max(0)
}

/// The first committed offsets in order of groups and partitions, and how many more there are.
fn first_offsets(c: &tidemill_group::Coordinator, most: usize) -> (Vec<(Key, i64)>, usize) {
    let mut out = Vec::new();
    let mut more = 0;
    for (name, state) in c.states() {
        for (p, o) in &state.offsets {
            if out.len() < most {
                out.push(((name.clone(), *p), o.offset));
            } else {
                more += 1;
            }
        }
    }
    (out, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(group: &str, partition: u32) -> LagLabels {
        LagLabels { group: group.into(), topic: "t".into(), partition }
    }

    #[test]
    fn series_come_and_go_with_what_is_there() {
        let m = LagMetrics::default();
        let mut r = Registry::default();
        m.fill(&mut r);
        let text = |r: &Registry| {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, r).unwrap();
            text
        };
        m.show(BTreeMap::from([(labels("a", 0), 3), (labels("b", 7), 0)]), 2);
        let first = text(&r);
        assert!(first.contains(r#"group_lag{group="a",topic="t",partition="0"} 3"#), "{first}");
        assert!(first.contains(r#"group_lag{group="b",topic="t",partition="7"} 0"#), "{first}");
        assert!(first.contains("group_lag_omitted 2"), "{first}");
        m.show(BTreeMap::from([(labels("a", 0), 1)]), 0);
        let second = text(&r);
        assert!(second.contains(r#"group_lag{group="a",topic="t",partition="0"} 1"#), "{second}");
        assert!(!second.contains(r#"group="b""#), "{second}");
    }

    #[test]
    fn what_was_trimmed_is_not_behind() {
        assert_eq!(lag(5, 0, 9), 4);
        assert_eq!(lag(5, 7, 9), 2);
        assert_eq!(lag(9, 0, 9), 0);
        assert_eq!(lag(12, 0, 9), 0);
    }
}
