//! Which partitions have not reached their end.

use std::collections::HashMap;

use tidemill_client::{ConsumedBatch, Event, TopicPartition};

/// Partitions on the way to their ends.
#[derive(Debug, Default)]
pub(super) struct Ends {
    left: HashMap<TopicPartition, i64>,
}

impl Ends {
    /// The partitions of `all` that have something before their end: (partition, start, end).
    pub(super) fn new(all: impl IntoIterator<Item = (TopicPartition, i64, i64)>) -> Self {
        Self {
            left: all.into_iter().filter(|(_, start, end)| start < end).map(|(p, _, end)| (p, end)).collect(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// The partitions that have not reached their end.
    pub(super) fn left(&self) -> impl Iterator<Item = &TopicPartition> {
        self.left.keys()
    }

    /// Where a partition ends that has not reached it.
    pub(super) fn end(&self, partition: &TopicPartition) -> Option<i64> {
        self.left.get(partition).copied()
    }

    /// The next record of `source` has this offset; true when that is the first time at or behind the end.
    pub(super) fn reached(&mut self, source: &TopicPartition, next: i64) -> bool {
        match self.left.get(source) {
            Some(end) if next >= *end => self.left.remove(source).is_some(),
            _ => false,
        }
    }

    /// What of `event` lies before the end, and whether its partition ends with it.
    pub(super) fn cut(&mut self, event: Event) -> (Option<Event>, Option<TopicPartition>) {
        match event {
            Event::Batch(batch) => {
                let Some(end) = self.left.get(&batch.source).copied() else { return (None, None) };
                let next = batch.records.last().map_or(0, |r| r.offset.saturating_add(1));
                let ended = self.reached(&batch.source, next).then(|| batch.source.clone());
                let mut records = batch.records;
                records.truncate(records.partition_point(|r| r.offset < end));
                let some = !records.is_empty();
                (some.then(|| Event::Batch(ConsumedBatch { records, ..batch })), ended)
            }
            Event::Gap(mut gap) => {
                let Some(end) = self.left.get(&gap.source).copied() else { return (None, None) };
                let ended = self.reached(&gap.source, gap.to).then(|| gap.source.clone());
                gap.to = gap.to.min(end);
                ((gap.from < gap.to).then_some(Event::Gap(gap)), ended)
            }
            Event::Corrupt { ref source, offset, .. } | Event::OutOfRange { ref source, offset, .. } => {
                // Behind the end it is nobody's business.
                let before = self.left.get(source).is_some_and(|end| offset < *end);
                (before.then_some(event), None)
            }
            Event::Failed { ref source, .. } => (self.left.contains_key(source).then_some(event), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_client::{ConsumedRecord, Gap, GapKind};

    use super::*;

    fn part(partition: u32) -> TopicPartition {
        TopicPartition { topic: "t".into(), partition }
    }

    fn batch(partition: u32, offsets: std::ops::Range<i64>) -> Event {
        let record =
            |offset| ConsumedRecord { offset, timestamp: 0, key: None, value: None, headers: Vec::new() };
        let records = offsets.map(record).collect();
        Event::Batch(ConsumedBatch { source: part(partition), append_time: 0, high_watermark: 0, records })
    }

    fn len(event: Option<Event>) -> usize {
        match event {
            Some(Event::Batch(b)) => b.records.len(),
            _ => 0,
        }
    }

    #[test]
    fn records_behind_the_end_are_cut() {
        let mut ends = Ends::new([(part(0), 0, 5), (part(1), 3, 3), (part(2), 0, 1)]);
        let (event, ended) = ends.cut(batch(0, 0..3));
        assert_eq!((len(event), ended), (3, None));
        let (event, ended) = ends.cut(batch(0, 3..9));
        assert_eq!((len(event), ended), (2, Some(part(0))));
        assert_eq!(ends.cut(batch(0, 9..12)), (None, None));
        assert_eq!(ends.cut(batch(1, 3..4)), (None, None));
        assert!(!ends.is_done());
        let (event, ended) = ends.cut(batch(2, 0..1));
        assert_eq!((len(event), ended), (1, Some(part(2))));
        assert!(ends.is_done());
    }

    #[test]
    fn a_gap_can_end_a_partition() {
        let mut ends = Ends::new([(part(0), 0, 5)]);
        let gap = |from, to| Event::Gap(Gap { source: part(0), kind: GapKind::Trimmed, from, to });
        assert_eq!(ends.cut(gap(0, 9)), (Some(gap(0, 5)), Some(part(0))));
        assert!(ends.is_done());
    }

    #[test]
    fn a_position_at_the_end_ends() {
        let mut ends = Ends::new([(part(0), 0, 5)]);
        assert!(!ends.reached(&part(0), 4));
        assert!(ends.reached(&part(0), 5));
        assert!(!ends.reached(&part(0), 6));
    }
}
