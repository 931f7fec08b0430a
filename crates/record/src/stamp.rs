//! What a broker writes into a batch before it appends it, in place.

use tidemill_types::Offset;

use crate::header::{ATTRIBUTES, BASE_OFFSET, LEADER_EPOCH, LENGTH, MAX_TIMESTAMP, put_at, seal};
use crate::{Attributes, BatchError, BatchHeader};

/// Sets the base offset and the epoch of the partition's owner. Neither is covered by the CRC, so no byte of the records
/// is touched.
///
/// # Errors
/// As [`BatchHeader::parse`].
pub fn assign_offset(batch: &mut [u8], base_offset: Offset, leader_epoch: i32) -> Result<(), BatchError> {
    BatchHeader::parse(batch)?;
    put_at(batch, BASE_OFFSET..LENGTH, &base_offset.0.to_be_bytes());
    put_at(batch, LEADER_EPOCH..LEADER_EPOCH + 4, &leader_epoch.to_be_bytes());
    Ok(())
}

/// Makes the batch one of append time: every record then has `append_time` (ms since 1970). Computes the CRC anew, so
/// `batch` must be the whole batch, checked before.
///
/// # Errors
/// As [`BatchHeader::parse`], and [`BatchError::Truncated`] or [`BatchError::Trailing`] if `batch` is not one whole batch.
pub fn set_append_time(batch: &mut [u8], append_time: i64) -> Result<(), BatchError> {
    let header = BatchHeader::parse(batch)?;
    crate::check::framing(&header, batch.len())?;
    let attributes = Attributes(header.attributes.0 | Attributes::APPEND_TIME);
    put_at(batch, ATTRIBUTES..ATTRIBUTES + 2, &attributes.0.to_be_bytes());
    put_at(batch, MAX_TIMESTAMP..MAX_TIMESTAMP + 8, &append_time.to_be_bytes());
    seal(batch);
    Ok(())
}
