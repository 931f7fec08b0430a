//! What is done with arbitrary bytes that claim to be a produce payload.

use bytes::Bytes;
use tidemill_record::{
    BatchBuilder, BatchError, BatchHeader, Compression, HeaderRef, Limits, Record, batches, check,
    check_stored, control, records,
};

/// Small enough that a fuzzer does not spend its time inflating.
const LIMITS: Limits = Limits { batch: 1 << 20, inflated: 1 << 20, headers: 100 };

/// Splits, checks and opens `data`, and holds what the crate promises about the result. Gives the records it read.
pub(crate) fn exercise(data: &[u8]) -> usize {
    let mut read = 0;
    let mut bytes = 0;
    for batch in batches(Bytes::copy_from_slice(data)) {
        let Ok(batch) = batch else { break };
        bytes += batch.bytes.len();
        assert_eq!(BatchHeader::parse(&batch.bytes).as_ref(), Ok(&batch.header));
        read += one(&batch.bytes);
        // A fuzzer does not guess a CRC.
        let mut sealed = batch.bytes.to_vec();
        let crc = crc_fast::crc32_iscsi(&sealed[21..]);
        sealed[17..21].copy_from_slice(&crc.to_be_bytes());
        read += one(&Bytes::from(sealed));
    }
    assert!(bytes <= data.len());
    read
}

fn one(batch: &Bytes) -> usize {
    let taken = check(batch, &LIMITS);
    let stored = check_stored(batch, &LIMITS);
    let marker = control::parse(batch, &LIMITS);
    let Ok(all) = records(batch, &LIMITS) else {
        assert!(marker.is_err());
        return 0;
    };
    let header = *all.header();
    assert!(all.inflated_bytes() <= LIMITS.inflated.max(batch.len()));
    let all: Result<Vec<Record>, BatchError> = all.collect();
    let Ok(all) = all else { return 0 };
    assert_eq!(i64::try_from(all.len()), Ok(i64::from(header.count)));
    assert!(all.is_sorted_by(|a, b| a.offset_delta < b.offset_delta));
    assert!(all.iter().all(|r| (0..=header.last_offset_delta).contains(&r.offset_delta)));
    if taken.is_ok() {
        assert!(all.iter().zip(0..).all(|(r, i)| r.offset_delta == i), "one record per offset");
        if header.base_offset.0 >= 0 && header.base_offset.0 < 1 << 62 {
            assert!(stored.is_ok(), "what a broker takes it can read again: {stored:?}");
        }
        again(&all);
    }
    all.len()
}

/// What was read can be written, and is read alike.
fn again(all: &[Record]) {
    let mut builder = BatchBuilder::new(Limits { batch: usize::MAX, inflated: usize::MAX, ..LIMITS });
    for r in all {
        let Some(headers) = r.headers.iter().map(header).collect::<Option<Vec<_>>>() else { return };
        if builder.append(r.timestamp, r.key.as_deref(), r.value.as_deref(), &headers).is_err() {
            // A timestamp that a producer of ours refuses to write.
            return;
        }
    }
    let Ok(batch) = builder.finish(Compression::None, None) else { unreachable!("there is a record") };
    let wide = Limits { batch: usize::MAX, inflated: usize::MAX, ..LIMITS };
    assert!(check(&batch, &wide).is_ok());
    let read: Vec<_> = records(&batch, &wide).into_iter().flatten().flatten().collect();
    assert_eq!(read, all);
}

/// A header as the builder takes it; names that are not UTF-8 can be read but not written.
fn header(h: &tidemill_record::Header) -> Option<HeaderRef<'_>> {
    Some(HeaderRef { key: std::str::from_utf8(&h.key).ok()?, value: h.value.as_deref() })
}
