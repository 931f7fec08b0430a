//! Opening a batch.

use std::iter::FusedIterator;

use bytes::Bytes;

use crate::check::{check_count, create_time, framing};
use crate::compression::inflate;
use crate::record::RawRecord;
use crate::{BatchError, BatchHeader, Compression, HEADER_BYTES, Limits, Record, TimestampType};

/// Opens one whole batch. Uncompressed records are slices of `batch`; others are inflated first, up to
/// [`Limits::inflated`] bytes. The CRC is not computed here: [`crate::check()`] or [`crate::check_stored`] did that.
///
/// # Errors
/// [`BatchError`] if the header or the length is wrong, or the codec refuses the data. What is wrong with a record
/// comes when the iterator reaches it.
pub fn records(batch: &Bytes, limits: &Limits) -> Result<Records, BatchError> {
    let header = BatchHeader::parse(batch)?;
    framing(&header, batch.len())?;
    check_count(&header, limits, 0, i64::from(header.last_offset_delta) + 1)?;
    let payload = batch.slice(HEADER_BYTES..);
    if header.count == 0 && !payload.is_empty() {
        return Err(BatchError::Trailing { field: "empty batch", bytes: payload.len() as u64 });
    }
    let data = match header.attributes.compression()? {
        Compression::None => payload,
        // What compaction leaves of a batch that lost all its records has no payload, not an empty compressed one.
        _ if header.count == 0 => payload,
        how => Bytes::from(inflate(how, &payload, limits.inflated)?),
    };
    Ok(Records { header, data, at: 0, left: header.count.unsigned_abs(), next_delta: 0, limits: *limits })
}

/// Iterator of [`records()`]. Gives as many records as the header says, or ends with the first error. Offset deltas rise
/// and stay within the batch; nothing follows the last record.
#[derive(Clone, Debug)]
pub struct Records {
    header: BatchHeader,
    data: Bytes,
    at: usize,
    left: u32,
    /// Smallest offset delta that the next record may have.
    next_delta: i64,
    limits: Limits,
}

impl Records {
    /// Header of the batch.
    #[must_use]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Bytes of the records after decompression.
    #[must_use]
    pub fn inflated_bytes(&self) -> usize {
        self.data.len()
    }

    fn read(&mut self) -> Result<Record, BatchError> {
        let (raw, end) = RawRecord::read(&self.data, self.at, &self.limits)?;
        let delta = i64::from(raw.offset_delta);
        let last = i64::from(self.header.last_offset_delta);
        if !(self.next_delta..=last).contains(&delta) {
            return Err(BatchError::OffsetDelta {
                field: "offset delta",
                found: delta,
                min: self.next_delta,
                max: last,
            });
        }
        let timestamp = self.timestamp(raw.timestamp_delta)?;
        self.next_delta = delta + 1;
        self.at = end;
        if self.left == 1 && end < self.data.len() {
            return Err(BatchError::Trailing { field: "last record", bytes: (self.data.len() - end) as u64 });
        }
        let RawRecord { offset_delta, key, value, headers, .. } = raw;
        Ok(Record { offset_delta, timestamp, key, value, headers })
    }

    fn timestamp(&self, delta: i64) -> Result<i64, BatchError> {
        match self.header.attributes.timestamp_type() {
            TimestampType::Append => Ok(self.header.max_timestamp),
            TimestampType::Create => create_time(&self.header, delta),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let record = self.read();
        self.left = if record.is_ok() { self.left - 1 } else { 0 };
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left > 0), Some(self.left as usize))
    }
}

impl FusedIterator for Records {}
