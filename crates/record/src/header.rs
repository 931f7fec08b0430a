//! The fixed header of a batch, readable without the rest.

use std::ops::Range;

use tidemill_types::Offset;

use crate::{Attributes, BatchError, ProducerFields};

/// Bytes of the header: from the base offset to the record count. The records follow.
pub const HEADER_BYTES: usize = 61;
/// Bytes in front of what the length field counts: the base offset and the length field itself.
pub(crate) const FRAME_BYTES: usize = 12;
/// The only format version.
pub const MAGIC: i8 = 2;

pub(crate) const BASE_OFFSET: usize = 0;
pub(crate) const LENGTH: usize = 8;
pub(crate) const LEADER_EPOCH: usize = 12;
const MAGIC_AT: usize = 16;
pub(crate) const CRC: usize = 17;
/// The CRC covers everything from here on.
pub(crate) const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const BASE_TIMESTAMP: usize = 27;
pub(crate) const MAX_TIMESTAMP: usize = 35;
const PRODUCER_ID: usize = 43;
const PRODUCER_EPOCH: usize = 51;
const BASE_SEQUENCE: usize = 53;
const COUNT: usize = 57;

/// The header fields as they stand on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record; the broker sets it. Not covered by the CRC.
    pub base_offset: Offset,
    /// Bytes after the length field: 49 plus the bytes of the records.
    pub batch_length: i32,
    /// Epoch of the partition's owner at the append, -1 before. Not covered by the CRC.
    pub leader_epoch: i32,
    /// CRC32C over everything from the attributes to the end.
    pub crc: u32,
    /// Compression, kind of timestamps, transactional, control.
    pub attributes: Attributes,
    /// Offset of the last record less the base offset.
    pub last_offset_delta: i32,
    /// Timestamp of the first record, ms since 1970, -1 for none; the delete horizon if the attribute says so.
    pub base_timestamp: i64,
    /// Largest timestamp of the records, or the append time, ms since 1970.
    pub max_timestamp: i64,
    /// Producer id, -1 for none.
    pub producer_id: i64,
    /// Epoch of the producer id, -1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, -1 for none.
    pub base_sequence: i32,
    /// Records in the batch.
    pub count: i32,
}

impl BatchHeader {
    /// Reads the header from the first 61 of `bytes`; the records need not be there. Checks the magic and that the
    /// length can be one, nothing else: see [`crate::check()`].
    ///
    /// # Errors
    /// [`BatchError::Magic`], [`BatchError::Truncated`], [`BatchError::Length`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        if let Some(&magic) = bytes.get(MAGIC_AT)
            && magic.cast_signed() != MAGIC
        {
            return Err(BatchError::Magic { found: magic.cast_signed() });
        }
        let Some(b) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(BatchError::Truncated {
                field: "batch header",
                needed: HEADER_BYTES as u64,
                have: bytes.len() as u64,
            });
        };
        let header = Self {
            base_offset: Offset(i64::from_be_bytes(at(b, BASE_OFFSET))),
            batch_length: i32::from_be_bytes(at(b, LENGTH)),
            leader_epoch: i32::from_be_bytes(at(b, LEADER_EPOCH)),
            crc: u32::from_be_bytes(at(b, CRC)),
            attributes: Attributes(u16::from_be_bytes(at(b, ATTRIBUTES))),
            last_offset_delta: i32::from_be_bytes(at(b, LAST_OFFSET_DELTA)),
            base_timestamp: i64::from_be_bytes(at(b, BASE_TIMESTAMP)),
            max_timestamp: i64::from_be_bytes(at(b, MAX_TIMESTAMP)),
            producer_id: i64::from_be_bytes(at(b, PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(at(b, PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(at(b, BASE_SEQUENCE)),
            count: i32::from_be_bytes(at(b, COUNT)),
        };
        let min = (HEADER_BYTES - FRAME_BYTES) as i64;
        if i64::from(header.batch_length) < min {
            return Err(BatchError::Length {
                field: "batch length",
                found: header.batch_length.into(),
                min,
                max: i32::MAX.into(),
            });
        }
        Ok(header)
    }

    /// Bytes of the whole batch on the wire.
    #[must_use]
    pub fn size(&self) -> usize {
        FRAME_BYTES + usize::try_from(self.batch_length).unwrap_or(0)
    }

    /// Offset of the last record.
    #[must_use]
    pub fn last_offset(&self) -> Offset {
        Offset(self.base_offset.0.saturating_add(self.last_offset_delta.into()))
    }

    /// Offset that follows the batch.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().0.saturating_add(1))
    }

    /// The producer, if the batch has one.
    #[must_use]
    pub fn producer(&self) -> Option<ProducerFields> {
        (self.producer_id >= 0).then_some(ProducerFields {
            id: self.producer_id,
            epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
        })
    }

    /// Time from which compaction may drop the batch's tombstones and markers, ms since 1970.
    #[must_use]
    pub fn delete_horizon(&self) -> Option<i64> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// Writes all fields but the CRC, which needs the records: see [`seal`].
    pub(crate) fn write(&self, b: &mut [u8; HEADER_BYTES]) {
        put(b, BASE_OFFSET, self.base_offset.0.to_be_bytes());
        put(b, LENGTH, self.batch_length.to_be_bytes());
        put(b, LEADER_EPOCH, self.leader_epoch.to_be_bytes());
        put(b, MAGIC_AT, MAGIC.to_be_bytes());
        put(b, ATTRIBUTES, self.attributes.0.to_be_bytes());
        put(b, LAST_OFFSET_DELTA, self.last_offset_delta.to_be_bytes());
        put(b, BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        put(b, MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(b, PRODUCER_ID, self.producer_id.to_be_bytes());
        put(b, PRODUCER_EPOCH, self.producer_epoch.to_be_bytes());
        put(b, BASE_SEQUENCE, self.base_sequence.to_be_bytes());
        put(b, COUNT, self.count.to_be_bytes());
    }
}

/// CRC32C of a whole batch: from the attributes to the end.
pub(crate) fn crc_of(batch: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(batch.get(ATTRIBUTES..).unwrap_or_default())
}

/// Computes the CRC of a whole batch and writes it into the header.
pub(crate) fn seal(batch: &mut [u8]) {
    let crc = crc_of(batch).to_be_bytes();
    put_at(batch, CRC..ATTRIBUTES, &crc);
}

/// Overwrites a header field. A batch whose header was parsed has the bytes.
pub(crate) fn put_at(batch: &mut [u8], field: Range<usize>, value: &[u8]) {
    if let Some(field) = batch.get_mut(field) {
        field.copy_from_slice(value);
    }
}

/// The `N` bytes at a constant position of the header.
fn at<const N: usize>(b: &[u8; HEADER_BYTES], from: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&b[from..from + N]);
    out
}

fn put<const N: usize>(b: &mut [u8; HEADER_BYTES], from: usize, value: [u8; N]) {
    b[from..from + N].copy_from_slice(&value);
}
