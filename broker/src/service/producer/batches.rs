//! The batches of one produce call: found without copying, checked without opening, each CRC once.

use bytes::Bytes;
use tidemill_record::{Batch, Limits, batches};
use tidemill_types::ErrorCode;

use crate::{fault::Fault, limits};

/// Splits and checks a payload. With `keyed` the batches are opened as well, and every record must have a key: a compacted topic
/// could do nothing with it.
///
/// # Errors
/// `INVALID_ARGUMENT` without a batch or with too many, `INVALID_BATCH`, `MESSAGE_TOO_LARGE` and `KEY_REQUIRED` naming the
/// batch.
pub(super) fn split(payload: Bytes, max_batch: usize, keyed: bool) -> Result<Vec<Batch>, Fault> {
    if payload.is_empty() {
        return Err(Fault::invalid("batches", "nothing", "one or more record batches"));
    }
    if payload.len() > limits::MAX_PRODUCE_BYTES {
        return Err(Fault::field(
            ErrorCode::MessageTooLarge,
            "batches",
            &format!("{} bytes", payload.len()),
            &format!("at most {} bytes in one call", limits::MAX_PRODUCE_BYTES),
        ));
    }
    let limits = Limits { batch: max_batch, ..Limits::DEFAULT };
    let mut out = Vec::with_capacity(1);
    for (i, batch) in batches(payload).enumerate() {
        if i == limits::MAX_BATCHES {
            let allowed = format!("at most {} in one call", limits::MAX_BATCHES);
            return Err(Fault::invalid("batches", "more", &allowed));
        }
        let batch = batch.map_err(|e| Fault::batch(i, &e))?;
        batch.check(&limits).map_err(|e| Fault::batch(i, &e))?;
        if keyed {
            check_keys(i, &batch, &limits)?;
        }
        out.push(batch);
    }
    Ok(out)
}

fn check_keys(index: usize, batch: &Batch, limits: &Limits) -> Result<(), Fault> {
    for record in batch.records(limits).map_err(|e| Fault::batch(index, &e))? {
        let record = record.map_err(|e| Fault::batch(index, &e))?;
        if record.key.is_none() {
            return Err(no_key(&format!("batches[{index}].records[{}]", record.offset_delta)));
        }
    }
    Ok(())
}

/// A record without a key for a compacted topic.
pub(super) fn no_key(field: &str) -> Fault {
    Fault::field(
        ErrorCode::KeyRequired,
        &format!("{field}.key"),
        "none",
        "a key: the topic is compacted by it",
    )
}

/// Records in the batches.
pub(super) fn count(batches: &[Batch]) -> u64 {
    batches.iter().map(|b| u64::from(b.header.count.unsigned_abs())).sum()
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use tidemill_record::{BatchBuilder, Compression};
    use tonic::Status;
    use tonic_types::StatusExt;

    use super::*;

    fn batch(bytes: usize) -> BytesMut {
        let mut b = BatchBuilder::new(Limits::DEFAULT);
        b.append(1, None, Some(&vec![7; bytes]), &[]).unwrap();
        BytesMut::from(&b.finish(Compression::None, None).unwrap()[..])
    }

    #[test]
    fn several_batches_share_the_payload() {
        let mut payload = batch(10);
        payload.unsplit(batch(20));
        let payload = payload.freeze();
        let found = split(payload.clone(), 1 << 20, false).unwrap();
        assert_eq!((found.len(), count(&found)), (2, 2));
        assert_eq!(found[0].bytes.as_ptr(), payload.as_ptr());
    }

    #[test]
    fn a_compacted_topic_takes_no_record_without_a_key() {
        for codec in [Compression::None, Compression::Zstd] {
            let mut b = BatchBuilder::new(Limits::DEFAULT);
            b.append(1, Some(b""), Some(b"an empty key is one"), &[]).unwrap();
            b.append(1, Some(b"k"), None, &[]).unwrap();
            let good = b.finish(codec, None).unwrap();
            assert_eq!(split(good.clone(), 1 << 20, true).unwrap().len(), 1);
            b.append(1, Some(b"k"), None, &[]).unwrap();
            b.append(1, None, Some(b"v"), &[]).unwrap();
            let bad = b.finish(codec, None).unwrap();
            assert_eq!(split(bad.clone(), 1 << 20, false).unwrap().len(), 1);
            let both = Bytes::from([&good[..], &bad[..]].concat());
            let e = split(both, 1 << 20, true).unwrap_err();
            assert_eq!(e.code(), ErrorCode::KeyRequired);
            assert_eq!(e.wrong_field().unwrap().0, "batches[1].records[1].key");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let flip = |at: usize| {
            let mut b = batch(10);
            b[at] ^= 1;
            b.freeze()
        };
        let mut counts = batch(10);
        counts[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
        for (payload, code, field) in [
            (Bytes::new(), ErrorCode::InvalidArgument, "batches"),
            (flip(70), ErrorCode::InvalidBatch, "batches[0]"),
            (flip(16), ErrorCode::InvalidBatch, "batches[0]"),
            (batch(10).freeze().slice(..40), ErrorCode::InvalidBatch, "batches[0]"),
            (batch(10).freeze().slice(..70), ErrorCode::InvalidBatch, "batches[0]"),
            (counts.freeze(), ErrorCode::InvalidBatch, "batches[0]"),
            (batch(3_000).freeze(), ErrorCode::MessageTooLarge, "batches[0]"),
            (vec![0; limits::MAX_PRODUCE_BYTES + 1].into(), ErrorCode::MessageTooLarge, "batches"),
        ] {
            let e = split(payload, 2_048, false).unwrap_err();
            assert_eq!(e.code(), code);
            let v = Status::from(e).get_details_bad_request().unwrap().field_violations;
            assert_eq!(v[0].field, field);
        }
    }
}
