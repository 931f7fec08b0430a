//! Taking records out of a batch, as key compaction does.
//!
//! The base offset, the last offset delta and the fields of the producer stay, so that every record keeps its offset; count,
//! length and CRC are made anew, the records are compressed as they were. A batch with tombstones gets a *delete horizon* when it
//! is first compacted: the attribute bit says that the base timestamp is that time, and the records' timestamp deltas count
//! from it.

use bytes::{Bytes, BytesMut};
use tidemill_types::Offset;

use crate::compression::{Compressor, inflate};
use crate::cursor::Cursor;
use crate::header::{FRAME_BYTES, seal};
use crate::reader::records;
use crate::varint::{MAX_BYTES, put, size};
use crate::{Attributes, BatchError, BatchHeader, Compression, HEADER_BYTES, Limits, Record, TimestampType};

/// What is left of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// Not a record.
    Empty,
    /// These bytes: one batch with the given base offset.
    Batch {
        /// Its bytes.
        bytes: Bytes,
        /// Records in it.
        kept: u32,
        /// Records that were taken out.
        dropped: u32,
    },
}

/// Takes records out of batches. Codecs keep their working memory from batch to batch.
#[derive(Default)]
pub struct Compactor {
    compressor: Compressor,
    scratch: Vec<u8>,
}

impl Compactor {
    /// Keeps the records of `batch`, one whole checked batch, for which `keep` says so, and writes `base` as its base offset.
    /// `horizon` is the delete horizon, ms, that it gets when a tombstone stays and it has none yet.
    ///
    /// # Errors
    /// [`BatchError`]: the batch cannot be opened or written.
    pub fn compact(
        &mut self,
        batch: &Bytes,
        base: Offset,
        horizon: i64,
        limits: &Limits,
        mut keep: impl FnMut(&BatchHeader, &Record) -> bool,
    ) -> Result<Compacted, BatchError> {
        let header = BatchHeader::parse(batch)?;
        let mut kept = Vec::new();
        let mut tombstone = false;
        let mut max_timestamp = i64::MIN;
        let mut total = 0u32;
        for record in records(batch, limits)? {
            let record = record?;
            let keeps = keep(&header, &record);
            kept.push(keeps);
            total += 1;
            if keeps {
                tombstone |= record.value.is_none() && record.key.is_some();
                max_timestamp = max_timestamp.max(record.timestamp);
            }
        }
        let left = kept.iter().filter(|k| **k).count();
        if left == 0 {
            return Ok(Compacted::Empty);
        }
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let new_horizon = (tombstone && header.delete_horizon().is_none()).then_some(horizon);
        let dropped = total - left;
        if dropped == 0 && new_horizon.is_none() {
            return Ok(Compacted::Batch { bytes: placed(batch, base), kept: left, dropped });
        }
        let mut new = header;
        new.base_offset = base;
        new.count = i32::try_from(left).unwrap_or(i32::MAX);
        if header.attributes.timestamp_type() == TimestampType::Create {
            new.max_timestamp = max_timestamp;
        }
        if let Some(at) = new_horizon {
            new.attributes = Attributes(header.attributes.0 | Attributes::DELETE_HORIZON);
            new.base_timestamp = at;
        }
        let bytes = self.write(batch, &header, new, &kept, limits)?;
        Ok(Compacted::Batch { bytes, kept: left, dropped })
    }

    fn write(
        &mut self,
        batch: &Bytes,
        old: &BatchHeader,
        mut new: BatchHeader,
        kept: &[bool],
        limits: &Limits,
    ) -> Result<Bytes, BatchError> {
        let codec = old.attributes.compression()?;
        let payload = batch.slice(HEADER_BYTES..);
        let data = match codec {
            Compression::None => payload,
            how => Bytes::from(inflate(how, &payload, limits.inflated)?),
        };
        let mut out = BytesMut::with_capacity(HEADER_BYTES + data.len());
        out.resize(HEADER_BYTES, 0);
        let shift = old.base_timestamp.wrapping_sub(new.base_timestamp);
        let mut at = 0;
        for keep in kept {
            let end = copy(&data, at, *keep, shift, &mut out)?;
            at = end;
        }
        if codec != Compression::None {
            self.scratch.clear();
            self.scratch.resize(HEADER_BYTES, 0);
            let records = out.get(HEADER_BYTES..).unwrap_or_default();
            self.compressor.compress(codec, records, &mut self.scratch)?;
            out = BytesMut::from(&self.scratch[..]);
        }
        let too_large = BatchError::TooLarge {
            field: "batch",
            bytes: out.len() as u64,
            max: i32::MAX.unsigned_abs().into(),
        };
        new.batch_length = i32::try_from(out.len() - FRAME_BYTES).map_err(|_| too_large)?;
        if let Some(head) = out.first_chunk_mut::<HEADER_BYTES>() {
            new.write(head);
        }
        seal(&mut out);
        Ok(out.freeze())
    }
}

/// The batch with another base offset, which no checksum covers; the same bytes when it has it.
fn placed(batch: &Bytes, base: Offset) -> Bytes {
    if BatchHeader::parse(batch).is_ok_and(|h| h.base_offset == base) {
        return batch.clone();
    }
    let mut copy = BytesMut::from(&batch[..]);
    if let Some(field) = copy.first_chunk_mut::<8>() {
        *field = base.0.to_be_bytes();
    }
    copy.freeze()
}

/// Writes `base` into a batch that stays as it is otherwise.
#[must_use]
pub fn with_base_offset(batch: &Bytes, base: Offset) -> Bytes {
    placed(batch, base)
}

/// Copies the record at `at` with its timestamp delta moved by `shift`, or passes over it; gives the position behind it.
fn copy(data: &[u8], at: usize, keep: bool, shift: i64, out: &mut BytesMut) -> Result<usize, BatchError> {
    let mut c = Cursor::new(data, at);
    let length = c.varint("record length")?;
    let length = usize::try_from(length).unwrap_or(0);
    let body = c.take("record", length)?;
    if !keep {
        return Ok(body.end);
    }
    if shift == 0 {
        out.extend_from_slice(data.get(at..body.end).unwrap_or_default());
        return Ok(body.end);
    }
    let mut inner = Cursor::new(data.get(..body.end).unwrap_or_default(), body.start);
    let attributes = inner.byte("record attributes")?;
    let delta = inner.varlong("timestamp delta")?.wrapping_add(shift);
    let rest = inner.take("record", inner.remaining())?;
    let length = 1 + size(delta) + rest.len();
    let mut head = [0; 2 * MAX_BYTES + 1];
    let mut n = put(&mut head, 0, i64::try_from(length).unwrap_or(i64::MAX));
    if let Some(b) = head.get_mut(n) {
        *b = attributes;
    }
    n = put(&mut head, n + 1, delta);
    out.extend_from_slice(head.get(..n).unwrap_or_default());
    out.extend_from_slice(data.get(rest).unwrap_or_default());
    Ok(body.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, HeaderRef, ProducerFields, check_stored};

    fn built(codec: Compression) -> Bytes {
        let mut b = BatchBuilder::new(Limits::DEFAULT);
        let headers = [HeaderRef { key: "h", value: Some(b"x") }];
        b.append(1_000, Some(b"a"), Some(b"1"), &headers).unwrap();
        b.append(5_000, Some(b"b"), None, &[]).unwrap();
        b.append(3_000, Some(b"a"), Some(b"2"), &[]).unwrap();
        b.append(2_000, None, Some(b"no key"), &[]).unwrap();
        b.finish(codec, Some(ProducerFields { id: 7, epoch: 1, base_sequence: 40 })).unwrap()
    }

    fn all(bytes: &Bytes) -> Vec<Record> {
        records(bytes, &Limits::DEFAULT).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn what_stays_keeps_offset_time_key_and_headers() {
        for codec in
            [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd]
        {
            let batch = built(codec);
            let before = all(&batch);
            let mut c = Compactor::default();
            let left =
                c.compact(&batch, Offset(500), 99_000, &Limits::DEFAULT, |_, r| r.offset_delta != 0).unwrap();
            let Compacted::Batch { bytes, kept: 3, dropped: 1 } = left else { panic!("{left:?}") };
            let h = check_stored(&bytes, &Limits::DEFAULT).unwrap();
            assert_eq!((h.base_offset, h.last_offset_delta, h.count), (Offset(500), 3, 3));
            assert_eq!((h.producer_id, h.producer_epoch, h.base_sequence), (7, 1, 40));
            assert_eq!(h.attributes.compression().unwrap(), codec);
            assert_eq!((h.delete_horizon(), h.max_timestamp), (Some(99_000), 5_000));
            assert_eq!(all(&bytes), before[1..]);
            // A second pass keeps the horizon of the first.
            let again = c.compact(&bytes, Offset(500), 200_000, &Limits::DEFAULT, |_, r| r.offset_delta == 1);
            let Compacted::Batch { bytes, kept: 1, .. } = again.unwrap() else { panic!() };
            let h = check_stored(&bytes, &Limits::DEFAULT).unwrap();
            assert_eq!((h.delete_horizon(), h.last_offset_delta), (Some(99_000), 3));
            assert_eq!(all(&bytes), before[1..2]);
            let none = c.compact(&bytes, Offset(500), 1, &Limits::DEFAULT, |_, _| false).unwrap();
            assert_eq!(none, Compacted::Empty);
        }
    }

    #[test]
    fn a_batch_of_which_everything_stays_is_not_written_anew() {
        let mut b = BatchBuilder::new(Limits::DEFAULT);
        b.append(1_000, Some(b"a"), Some(b"1"), &[]).unwrap();
        let batch = b.finish(Compression::Zstd, None).unwrap();
        let left = Compactor::default().compact(&batch, Offset(9), 5, &Limits::DEFAULT, |_, _| true).unwrap();
        let Compacted::Batch { bytes, .. } = left else { panic!() };
        assert_eq!(bytes[8..], batch[8..]);
        assert_eq!(BatchHeader::parse(&bytes).unwrap().base_offset, Offset(9));
    }
}
