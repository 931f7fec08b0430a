//! Control batches: the markers that end a transaction in a partition.
//!
//! A control batch holds one record. All numbers are big-endian.
//!
//! | part | field | type |
//! | --- | --- | --- |
//! | key | version, 0 | i16 |
//! | key | type: 0 abort, 1 commit | i16 |
//! | value | version, 0 | i16 |
//! | value | epoch of the transaction coordinator | i32 |
//!
//! Later versions may only add fields at the end; what follows is skipped.

use bytes::Bytes;
use tidemill_types::Offset;

use crate::{BatchBuilder, BatchError, BatchOptions, Limits, ProducerFields, records};

const VERSION: i16 = 0;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkerKind {
    /// Its records are never shown to readers of committed data.
    Abort,
    /// Its records count.
    Commit,
}

impl MarkerKind {
    /// The type in the key.
    #[must_use]
    pub fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
        }
    }
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// How it ended.
    pub kind: MarkerKind,
    /// Epoch of the coordinator that decided, from 0.
    pub coordinator_epoch: i32,
}

/// What a control batch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// A transaction ended.
    EndOfTransaction(Marker),
    /// A type that this version does not know. Readers skip it.
    Unknown {
        /// The type in the key.
        kind: i16,
    },
}

/// Makes the control batch of the end of a transaction. `timestamp` is in ms since 1970.
///
/// # Errors
/// [`BatchError::Control`], [`BatchError::Producer`] or [`BatchError::Timestamp`] if an epoch, the id or the time is
/// below what it may be.
pub fn marker_batch(
    marker: Marker,
    producer_id: i64,
    producer_epoch: i16,
    timestamp: i64,
    base_offset: Offset,
    leader_epoch: i32,
) -> Result<Bytes, BatchError> {
    if marker.coordinator_epoch < 0 {
        let found = marker.coordinator_epoch.into();
        return Err(BatchError::Control { field: "coordinator epoch", found, allowed: "from 0" });
    }
    let mut key = [0; 4];
    key[..2].copy_from_slice(&VERSION.to_be_bytes());
    key[2..].copy_from_slice(&marker.kind.id().to_be_bytes());
    let mut value = [0; 6];
    value[..2].copy_from_slice(&VERSION.to_be_bytes());
    value[2..].copy_from_slice(&marker.coordinator_epoch.to_be_bytes());
    let mut builder = BatchBuilder::new(Limits::DEFAULT);
    builder.append(timestamp, Some(&key), Some(&value), &[])?;
    builder.finish_with(&BatchOptions {
        producer: Some(ProducerFields { id: producer_id, epoch: producer_epoch, base_sequence: -1 }),
        transactional: true,
        control: true,
        base_offset,
        leader_epoch,
        ..BatchOptions::default()
    })
}

/// Reads a control batch. The CRC is not computed here, see [`crate::check_stored`].
///
/// # Errors
/// [`BatchError::Control`] if it is no control batch or its record is not of the form above, [`BatchError::Count`] if
/// it has not one record, and what [`records()`] refuses.
pub fn parse(batch: &Bytes, limits: &Limits) -> Result<ControlRecord, BatchError> {
    let mut records = records(batch, limits)?;
    let header = *records.header();
    if !header.attributes.is_control() {
        return Err(BatchError::Control { field: "control bit", found: 0, allowed: "1" });
    }
    let (1, Some(record)) = (header.count, records.next()) else {
        return Err(BatchError::Count { field: "record count", found: header.count.into(), min: 1, max: 1 });
    };
    let record = record?;
    let key = record.key.unwrap_or_default();
    let Some(&[v0, v1, k0, k1]) = key.first_chunk() else {
        let found = key.len() as i64;
        return Err(BatchError::Control { field: "bytes of the key", found, allowed: "at least 4" });
    };
    version("version of the key", i16::from_be_bytes([v0, v1]))?;
    let kind = match i16::from_be_bytes([k0, k1]) {
        0 => MarkerKind::Abort,
        1 => MarkerKind::Commit,
        kind => return Ok(ControlRecord::Unknown { kind }),
    };
    let value = record.value.unwrap_or_default();
    let Some(&[v0, v1, e0, e1, e2, e3]) = value.first_chunk() else {
        let found = value.len() as i64;
        return Err(BatchError::Control { field: "bytes of the value", found, allowed: "at least 6" });
    };
    version("version of the value", i16::from_be_bytes([v0, v1]))?;
    let coordinator_epoch = i32::from_be_bytes([e0, e1, e2, e3]);
    Ok(ControlRecord::EndOfTransaction(Marker { kind, coordinator_epoch }))
}

fn version(field: &'static str, found: i16) -> Result<(), BatchError> {
    if found < VERSION {
        return Err(BatchError::Control { field, found: found.into(), allowed: "from 0" });
    }
    Ok(())
}
