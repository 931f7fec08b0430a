//! How the bytes of one fetch are shared by its partitions. Pure.

use tidemill_partition_log::ReadResult;

/// No partition gets a share below this while bytes are left: a share too small for one batch helps nobody.
const LEAST: usize = 16 << 10;

/// What the next partition may read, when so many are still to come.
pub(super) fn next(left_bytes: usize, left_partitions: usize, asked: usize) -> usize {
    asked.min((left_bytes / left_partitions.max(1)).max(LEAST)).min(left_bytes)
}

/// Cuts what was read to `left_bytes`, whole batches only. `first`: the answer has no batch yet, so one goes in any case.
/// Returns the bytes kept.
pub(super) fn cut(read: &mut ReadResult, left_bytes: usize, first: bool) -> usize {
    let mut kept = 0;
    let mut count = 0;
    for b in &read.batches {
        let fits = kept + b.bytes.len() <= left_bytes || (first && count == 0);
        if !fits {
            break;
        }
        kept += b.bytes.len();
        count += 1;
    }
    if let Some(dropped) = read.batches.get(count) {
        // The gap in front of the first batch stays true, and so does the place to read on.
        read.next_offset = dropped.base_offset;
        read.batches.truncate(count);
    }
    kept
}

#[cfg(test)]
mod tests {
    use tidemill_partition_log::StoredBatch;
    use tidemill_types::Offset;

    use super::*;

    #[test]
    fn shares_are_even_and_what_is_left_over_goes_on() {
        assert_eq!(next(1 << 20, 4, usize::MAX), 256 << 10);
        assert_eq!(next(1 << 20, 1, 1_000), 1_000);
        assert_eq!(next(1 << 20, 1_000, usize::MAX), LEAST);
        assert_eq!(next(100, 10, usize::MAX), 100);
        assert_eq!(next(0, 10, usize::MAX), 0);
    }

    fn read(sizes: &[usize]) -> ReadResult {
        let batch = |(i, n): (usize, &usize)| StoredBatch {
            base_offset: Offset(i64::try_from(i).unwrap()),
            append_time_ms: 0,
            bytes: vec![0; *n].into(),
        };
        ReadResult {
            batches: sizes.iter().enumerate().map(batch).collect(),
            high_watermark: Offset(9),
            log_start: Offset(0),
            next_offset: Offset(i64::try_from(sizes.len()).unwrap()),
            gap: None,
        }
    }

    #[test]
    fn whole_batches_within_the_limit_but_the_first_always() {
        for (limit, first, kept, next) in
            [(100, false, 90, 3), (60, false, 60, 2), (29, false, 0, 0), (29, true, 30, 1), (0, true, 30, 1)]
        {
            let mut r = read(&[30, 30, 30]);
            assert_eq!(cut(&mut r, limit, first), kept, "limit {limit}");
            assert_eq!(r.next_offset, Offset(next), "limit {limit}");
        }
    }
}
