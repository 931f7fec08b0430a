//! Which records stay.

use std::hash::{BuildHasher, RandomState};

use tidemill_record::{BatchError, BatchHeader, Compacted, Compactor, Limits, Record};
use tidemill_types::Offset;

use super::KeyMap;
use crate::StoredBatch;

/// What a pass decides by. Times are ms since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Records below it are gone already.
    pub log_start: Offset,
    /// Records from here on are copied as they are: the map does not know their keys.
    pub upto: Offset,
    /// A tombstone whose horizon is at or below this goes.
    pub now_ms: i64,
    /// Horizon of tombstones that are compacted for the first time.
    pub horizon_ms: i64,
    /// Records that were appended at this time or before are expired; `None`: nothing expires.
    pub expired_ms: Option<i64>,
}

/// What is left of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// `None`: nothing.
    pub batch: Option<StoredBatch>,
    /// Records that stay.
    pub kept: u32,
    /// Records that do not.
    pub dropped: u32,
    /// Delete horizon of the batch, when it has tombstones.
    pub horizon_ms: Option<i64>,
}

/// Takes batches in order of offsets.
pub struct Filter<S = RandomState> {
    keys: KeyMap<S>,
    bounds: Bounds,
    limits: Limits,
    compactor: Compactor,
}

/// Whether compaction leaves a batch as it is: markers, and what belongs to a transaction, whose outcome decides what its
/// records mean.
#[must_use]
pub fn is_untouched(header: &BatchHeader) -> bool {
    header.attributes.is_control() || header.attributes.is_transactional()
}

impl<S: BuildHasher> Filter<S> {
    /// A filter with the keys of everything dirty below `bounds.upto`.
    #[must_use]
    pub fn new(keys: KeyMap<S>, bounds: Bounds, limits: Limits) -> Self {
        Self { keys, bounds, limits, compactor: Compactor::default() }
    }

    /// What stays of a batch.
    ///
    /// # Errors
    /// [`BatchError`]: it cannot be opened.
    pub fn filter(&mut self, batch: &StoredBatch) -> Result<Filtered, BatchError> {
        let header = BatchHeader::parse(&batch.bytes)?;
        let count = header.count.unsigned_abs();
        let whole = |bytes| Filtered {
            batch: Some(StoredBatch { bytes, ..*batch }),
            kept: count,
            dropped: 0,
            horizon_ms: header.delete_horizon(),
        };
        let end = batch.base_offset.0 + i64::from(header.last_offset_delta) + 1;
        if end <= self.bounds.log_start.0 {
            return Ok(Filtered { batch: None, kept: 0, dropped: count, horizon_ms: None });
        }
        if batch.base_offset >= self.bounds.upto || is_untouched(&header) {
            return Ok(whole(tidemill_record::compact::with_base_offset(&batch.bytes, batch.base_offset)));
        }
        if self.bounds.expired_ms.is_some_and(|t| batch.append_time_ms <= t) {
            return Ok(Filtered { batch: None, kept: 0, dropped: count, horizon_ms: None });
        }
        let (keys, bounds) = (&self.keys, self.bounds);
        let left = self.compactor.compact(
            &batch.bytes,
            batch.base_offset,
            bounds.horizon_ms,
            &self.limits,
            |h, r| stays(keys, &bounds, h, r, batch.base_offset),
        )?;
        Ok(match left {
            Compacted::Empty => Filtered { batch: None, kept: 0, dropped: count, horizon_ms: None },
            Compacted::Batch { bytes, kept, dropped } => {
                let horizon_ms = BatchHeader::parse(&bytes)?.delete_horizon();
                Filtered { batch: Some(StoredBatch { bytes, ..*batch }), kept, dropped, horizon_ms }
            }
        })
    }
}

fn stays<S: BuildHasher>(
    keys: &KeyMap<S>,
    bounds: &Bounds,
    header: &BatchHeader,
    record: &Record,
    base: Offset,
) -> bool {
    let offset = Offset(base.0 + i64::from(record.offset_delta));
    if offset < bounds.log_start {
        return false;
    }
    // Written before the topic was compacted: nothing says what it is about, so nothing replaces it.
    let Some(key) = &record.key else { return true };
    if keys.is_replaced(key, offset) {
        return false;
    }
    record.value.is_some() || header.delete_horizon().is_none_or(|h| h > bounds.now_ms)
}

#[cfg(test)]
mod tests {
    use tidemill_record::{BatchBuilder, Compression, batches, records};

    use super::*;

    const APPENDED: i64 = 1_000;

    fn batch(base: i64, pairs: &[(Option<&str>, Option<&str>)]) -> StoredBatch {
        let mut b = BatchBuilder::new(Limits::DEFAULT);
        for (k, v) in pairs {
            b.append(APPENDED, k.map(str::as_bytes), v.map(str::as_bytes), &[]).unwrap();
        }
        let bytes = b.finish(Compression::None, None).unwrap();
        StoredBatch { base_offset: Offset(base), append_time_ms: APPENDED, bytes }
    }

    /// Nothing is replaced, expired or deleted.
    const BOUNDS: Bounds = Bounds {
        log_start: Offset(0),
        upto: Offset(1_000),
        now_ms: APPENDED,
        horizon_ms: 2 * APPENDED,
        expired_ms: None,
    };

    fn filter(bounds: Bounds, keys: &[(&str, i64)], batch: &StoredBatch) -> (Vec<i64>, Filtered) {
        let mut map = KeyMap::new(1 << 20, 10);
        for (key, at) in keys {
            map.put(key.as_bytes(), Offset(*at));
        }
        let left = Filter::new(map, bounds, Limits::DEFAULT).filter(batch).unwrap();
        let offsets = left.batch.iter().flat_map(|b| batches(b.bytes.clone())).flat_map(|b| {
            let b = b.unwrap();
            let base = b.header.base_offset.0;
            records(&b.bytes, &Limits::DEFAULT)
                .unwrap()
                .map(move |r| base + i64::from(r.unwrap().offset_delta))
        });
        (offsets.collect(), left)
    }

    #[test]
    fn records_without_a_key_stay() {
        let b = batch(10, &[(None, Some("1")), (Some("a"), Some("2")), (None, Some("3"))]);
        let (left, count) = filter(BOUNDS, &[("a", 50)], &b);
        assert_eq!((left, count.kept, count.dropped), (vec![10, 12], 2, 1));
    }

    #[test]
    fn what_is_below_the_log_start_goes_in_the_middle_of_a_batch_too() {
        let b = batch(10, &[(Some("a"), Some("1")), (Some("b"), Some("2")), (Some("c"), Some("3"))]);
        for (log_start, rest) in [(10, vec![10, 11, 12]), (12, vec![12]), (13, vec![]), (14, vec![])] {
            let bounds = Bounds { log_start: Offset(log_start), ..BOUNDS };
            let (left, count) = filter(bounds, &[], &b);
            assert_eq!(
                (&left, count.kept as usize, count.dropped as usize),
                (&rest, rest.len(), 3 - rest.len())
            );
        }
        // Also where keys are not known any more.
        let bounds = Bounds { log_start: Offset(13), upto: Offset(5), ..BOUNDS };
        assert_eq!(filter(bounds, &[], &b).1.batch, None);
    }

    #[test]
    fn expired_records_go_whether_replaced_or_not() {
        let b = batch(10, &[(Some("a"), Some("1")), (None, Some("2"))]);
        for (expired_ms, rest) in [(None, 2), (Some(APPENDED - 1), 2), (Some(APPENDED), 0)] {
            let (left, count) = filter(Bounds { expired_ms, ..BOUNDS }, &[], &b);
            assert_eq!(
                (left.len(), count.dropped),
                (rest, 2 - u32::try_from(rest).unwrap()),
                "{expired_ms:?}"
            );
        }
    }

    #[test]
    fn from_the_bound_on_a_batch_is_copied_whatever_is_known() {
        let b = batch(10, &[(Some("a"), Some("1")), (Some("a"), Some("2"))]);
        assert_eq!(filter(Bounds { upto: Offset(10), ..BOUNDS }, &[("a", 11)], &b).0, [10, 11]);
        assert_eq!(filter(Bounds { upto: Offset(11), ..BOUNDS }, &[("a", 11)], &b).0, [11]);
    }
}
