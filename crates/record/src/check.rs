//! What is checked of a batch without opening it.
//!
//! One pass over the bytes for the CRC, and of uncompressed records one over their lengths; no allocation, never a
//! decompression.

use crate::header::crc_of;
use crate::record::{Layout, MIN_RECORD_BYTES};
use crate::{BatchError, BatchHeader, Compression, HEADER_BYTES, Limits, TimestampType};

/// Checks a batch that a producer sent: `batch` is exactly one batch. In this order: size limit and length, magic,
/// CRC, attributes (known compression, create time, no control bit, nothing that only a broker sets), record count
/// (at least 1, one per offset, and fitting into the bytes), producer fields, timestamps, and of an uncompressed batch the
/// form of every record: lengths, varints, headers, offsets without a gap. What a compressed batch holds is found by those
/// who open it.
///
/// Without a producer id the epoch and the sequence are ignored as long as they are -1 or 0: clients differ there.
///
/// # Errors
/// The first [`BatchError`] of that list.
pub fn check(batch: &[u8], limits: &Limits) -> Result<BatchHeader, BatchError> {
    let header = intact(batch, limits)?;
    check_attributes(&header)?;
    let max = i64::from(header.last_offset_delta) + 1;
    check_count(&header, limits, max.max(1), max)?;
    check_producer(&header)?;
    check_times(&header)?;
    if header.attributes.compression()? == Compression::None {
        check_records(batch, &header, limits)?;
    }
    Ok(header)
}

/// Walks over uncompressed records: as many as the header says, one per offset, none beyond the batch.
fn check_records(batch: &[u8], header: &BatchHeader, limits: &Limits) -> Result<(), BatchError> {
    let mut at = HEADER_BYTES;
    for expected in 0..header.count {
        let record = Layout::check(batch, at, limits)?;
        if record.offset_delta != expected {
            let (found, only) = (record.offset_delta.into(), expected.into());
            return Err(BatchError::OffsetDelta { field: "offset delta", found, min: only, max: only });
        }
        create_time(header, record.timestamp_delta)?;
        at = record.end;
    }
    match batch.len() - at {
        0 => Ok(()),
        rest => Err(BatchError::Trailing { field: "last record", bytes: rest as u64 }),
    }
}

/// The timestamp of a record, ms.
pub(crate) fn create_time(header: &BatchHeader, delta: i64) -> Result<i64, BatchError> {
    header.base_timestamp.checked_add(delta).ok_or(BatchError::Timestamp {
        field: "timestamp delta",
        found: delta,
        allowed: "base timestamp plus delta fits 64 bits",
    })
}

/// Checks a batch that comes from a log: as [`check()`], but it may be a control batch, have append time and a delete
/// horizon, and compaction may have taken records out of it, even all.
///
/// # Errors
/// As [`check()`].
pub fn check_stored(batch: &[u8], limits: &Limits) -> Result<BatchHeader, BatchError> {
    let header = intact(batch, limits)?;
    header.attributes.compression()?;
    let base = header.base_offset.0;
    let max = i64::MAX - i64::from(i32::MAX);
    if !(0..=max).contains(&base) {
        return Err(BatchError::OffsetDelta { field: "base offset", found: base, min: 0, max });
    }
    check_count(&header, limits, 0, i64::from(header.last_offset_delta) + 1)?;
    check_producer(&header)?;
    Ok(header)
}

/// Size limit, length and CRC.
fn intact(batch: &[u8], limits: &Limits) -> Result<BatchHeader, BatchError> {
    let header = BatchHeader::parse(batch)?;
    let size = header.size();
    if size > limits.batch {
        return Err(BatchError::TooLarge { field: "batch", bytes: size as u64, max: limits.batch as u64 });
    }
    framing(&header, batch.len())?;
    let computed = crc_of(batch);
    if computed != header.crc {
        return Err(BatchError::Crc { stored: header.crc, computed });
    }
    Ok(header)
}

/// That so many bytes are exactly the batch.
pub(crate) fn framing(header: &BatchHeader, have: usize) -> Result<(), BatchError> {
    let size = header.size();
    if size > have {
        return Err(BatchError::Truncated { field: "batch", needed: size as u64, have: have as u64 });
    }
    if size < have {
        return Err(BatchError::Trailing { field: "batch", bytes: (have - size) as u64 });
    }
    Ok(())
}

fn check_attributes(header: &BatchHeader) -> Result<(), BatchError> {
    let attributes = header.attributes;
    attributes.compression()?;
    let refuse = |allowed| Err(BatchError::Attributes { found: attributes.0, allowed });
    if attributes.is_control() {
        return refuse("no control bit from a producer");
    }
    if attributes.timestamp_type() == TimestampType::Append {
        return refuse("create time from a producer");
    }
    if attributes.has_delete_horizon() {
        return refuse("no delete horizon from a producer");
    }
    if attributes.has_unused() {
        return refuse("bits 7 to 15 are 0");
    }
    Ok(())
}

/// That the count lies in a range and that so many records can come out of the bytes.
pub(crate) fn check_count(
    header: &BatchHeader,
    limits: &Limits,
    min: i64,
    max: i64,
) -> Result<(), BatchError> {
    let last = header.last_offset_delta;
    if last < 0 {
        let max = i32::MAX.into();
        return Err(BatchError::Count { field: "last offset delta", found: last.into(), min: 0, max });
    }
    let payload = header.size().saturating_sub(HEADER_BYTES);
    let inflated = match header.attributes.compression()?.max_ratio() {
        1 => payload,
        ratio => payload.saturating_mul(ratio).min(limits.inflated),
    };
    let fitting = i64::try_from(inflated / MIN_RECORD_BYTES).unwrap_or(i64::MAX);
    let found: i64 = header.count.into();
    if found > fitting {
        return Err(BatchError::CountForBytes { found, bytes: payload as u64, fitting });
    }
    if (min..=max).contains(&found) {
        return Ok(());
    }
    // A range in which nothing lies says nothing: then the two fields contradict each other.
    Err(BatchError::Count { field: "record count", found, min, max })
}

fn check_producer(header: &BatchHeader) -> Result<(), BatchError> {
    let refuse = |field, found, allowed| Err(BatchError::Producer { field, found, allowed });
    let (id, epoch, sequence) = (header.producer_id, header.producer_epoch, header.base_sequence);
    if id < 0 {
        if id != -1 {
            return refuse("producer id", id, "-1 for none, or from 0");
        }
        if header.attributes.is_transactional() {
            return refuse("producer id", id, "from 0 in a transaction");
        }
        if !(-1..=0).contains(&epoch) {
            return refuse("producer epoch", epoch.into(), "-1 or 0 without a producer id");
        }
        if !(-1..=0).contains(&sequence) {
            return refuse("base sequence", sequence.into(), "-1 or 0 without a producer id");
        }
        return Ok(());
    }
    if epoch < 0 {
        return refuse("producer epoch", epoch.into(), "from 0 with a producer id");
    }
    if header.attributes.is_control() {
        if sequence != -1 {
            return refuse("base sequence", sequence.into(), "-1 in a control batch");
        }
    } else if sequence < 0 {
        return refuse("base sequence", sequence.into(), "from 0 with a producer id");
    }
    Ok(())
}

fn check_times(header: &BatchHeader) -> Result<(), BatchError> {
    let (base, max) = (header.base_timestamp, header.max_timestamp);
    if base < -1 {
        return Err(BatchError::Timestamp {
            field: "base timestamp",
            found: base,
            allowed: "-1 for none, or from 0",
        });
    }
    if max < base {
        return Err(BatchError::Timestamp {
            field: "max timestamp",
            found: max,
            allowed: "not before the base timestamp",
        });
    }
    Ok(())
}
