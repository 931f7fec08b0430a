//! Fetched batches as records, for clients without a codec. Opening costs time and memory: it is done on a thread for
//! blocking work, batch by batch, each with a cap on its inflated size.

use bytes::Bytes;
use tidemill_proto::v1;
use tidemill_record::{Limits, records};

use super::items::Item;
use crate::{convert::record::decode, fault::Fault};

/// The answer with decoded records, of about `max_bytes` at most.
pub(super) async fn answer(items: Vec<Item>, max_bytes: usize) -> Result<v1::FetchResponse, Fault> {
    let open = move || {
        let mut left = max_bytes;
        let mut partitions = Vec::with_capacity(items.len());
        for item in items {
            let from = item.asked.offset;
            let mut p = item.answer();
            unpack(&mut p, from, &mut left);
            partitions.push(p);
        }
        v1::FetchResponse { partitions }
    };
    tidemill_runtime::work::blocking(open)
        .await
        .map_err(|e| Fault::internal("decode records", &e.to_string()))
}

/// Replaces the batches by their records from `from` on, until `left` is used up; the first record always goes.
fn unpack(p: &mut v1::FetchedPartition, from: i64, left: &mut usize) {
    for stored in std::mem::take(&mut p.batches) {
        if *left == 0 && !p.records.is_empty() {
            p.next_offset = stored.base_offset.max(from);
            return;
        }
        let whole = unpack_batch(p, &stored, from, left);
        if let Err(e) = &whole {
            if p.records.is_empty() {
                let fault =
                    Fault::new(e.error_code(), format!("batch at offset {}: {e}", stored.base_offset));
                p.error = Some(fault.with("batch_error", e.code()).to_proto());
                p.next_offset = from;
            } else {
                // What came before it is good; the next fetch begins with the bad one and says so.
                p.next_offset = stored.base_offset.max(from);
            }
        }
        if !matches!(whole, Ok(true)) {
            return;
        }
    }
}

/// True when the whole batch went; false when the limit ended inside of it.
fn unpack_batch(
    p: &mut v1::FetchedPartition,
    stored: &v1::FetchedBatch,
    from: i64,
    left: &mut usize,
) -> Result<bool, tidemill_record::BatchError> {
    let all = records(&stored.batch, &Limits { batch: usize::MAX, ..Limits::DEFAULT })?;
    if all.header().attributes.is_control() {
        return Ok(true);
    }
    for record in all {
        let record = record?;
        let offset = stored.base_offset + i64::from(record.offset_delta);
        if offset < from {
            continue;
        }
        let size = 64
            + record.key.as_ref().map_or(0, Bytes::len)
            + record.value.as_ref().map_or(0, Bytes::len)
            + record
                .headers
                .iter()
                .map(|h| h.key.len() + h.value.as_ref().map_or(0, Bytes::len))
                .sum::<usize>();
        if size > *left && !p.records.is_empty() {
            *left = 0;
            p.next_offset = offset;
            return Ok(false);
        }
        *left = left.saturating_sub(size);
        p.records.push(decode(record, offset));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use tidemill_record::{BatchBuilder, Compression};

    use super::*;

    fn batch(base: i64, values: &[&str], compression: Compression) -> v1::FetchedBatch {
        let mut b = BatchBuilder::new(Limits::DEFAULT);
        for v in values {
            b.append(5, None, Some(v.as_bytes()), &[]).unwrap();
        }
        v1::FetchedBatch { base_offset: base, append_time_ms: 0, batch: b.finish(compression, None).unwrap() }
    }

    fn fetched(batches: Vec<v1::FetchedBatch>) -> v1::FetchedPartition {
        v1::FetchedPartition { batches, next_offset: 100, ..v1::FetchedPartition::default() }
    }

    fn offsets(p: &v1::FetchedPartition) -> Vec<i64> {
        p.records.iter().map(|r| r.offset).collect()
    }

    #[test]
    fn records_begin_at_the_asked_offset() {
        let mut p = fetched(vec![
            batch(10, &["a", "b", "c"], Compression::Zstd),
            batch(13, &["d"], Compression::None),
        ]);
        unpack(&mut p, 11, &mut 10_000);
        assert_eq!((offsets(&p), p.next_offset, p.batches.len()), (vec![11, 12, 13], 100, 0));
    }

    #[test]
    fn the_limit_ends_inside_of_a_batch_and_reading_goes_on_there() {
        let mut p =
            fetched(vec![batch(0, &["a", "b", "c"], Compression::None), batch(3, &["d"], Compression::None)]);
        unpack(&mut p, 0, &mut 140);
        assert_eq!((offsets(&p), p.next_offset), (vec![0, 1], 2));
        let mut p = fetched(vec![batch(0, &["a", "b", "c"], Compression::None)]);
        unpack(&mut p, 2, &mut 1);
        assert_eq!(offsets(&p), [2], "one record always goes");
    }

    #[test]
    fn a_batch_that_cannot_be_opened_is_told_after_what_is_good() {
        let mut bad = batch(1, &["x"], Compression::Gzip);
        let mut bytes = bad.batch.to_vec();
        let last = bytes.len() - 12;
        bytes[last] ^= 0xff;
        bad.batch = bytes.into();
        let mut p = fetched(vec![batch(0, &["a"], Compression::None), bad.clone()]);
        unpack(&mut p, 0, &mut 10_000);
        assert_eq!((offsets(&p), p.next_offset, p.error.is_none()), (vec![0], 1, true));
        let mut p = fetched(vec![bad]);
        unpack(&mut p, 1, &mut 10_000);
        assert_eq!((p.error.unwrap().code, p.next_offset), ("INVALID_BATCH".to_owned(), 1));
    }
}
