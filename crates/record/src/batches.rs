//! A produce payload: one or more batches, one behind the other.

use std::iter::FusedIterator;

use bytes::Bytes;

use crate::{BatchError, BatchHeader, Limits, Records, check, records};

/// One batch of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its header, not checked beyond [`BatchHeader::parse`].
    pub header: BatchHeader,
    /// Its bytes, header included: a slice of the payload, not a copy.
    pub bytes: Bytes,
}

impl Batch {
    /// What a broker checks before it appends: [`crate::check()`].
    ///
    /// # Errors
    /// As [`crate::check()`].
    pub fn check(&self, limits: &Limits) -> Result<BatchHeader, BatchError> {
        check(&self.bytes, limits)
    }

    /// Opens the batch: [`crate::records()`].
    ///
    /// # Errors
    /// As [`crate::records()`].
    pub fn records(&self, limits: &Limits) -> Result<Records, BatchError> {
        records(&self.bytes, limits)
    }
}

/// The batches of `payload` in order, without copying. After an error the iterator ends, because where the next batch
/// would start is then unknown. An empty payload has no batches.
#[must_use]
pub fn batches(payload: Bytes) -> Batches {
    Batches { rest: payload }
}

/// Iterator of [`batches()`].
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
}

impl Iterator for Batches {
    type Item = Result<Batch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let next = split(&mut self.rest);
        if next.is_err() {
            self.rest = Bytes::new();
        }
        Some(next)
    }
}

impl FusedIterator for Batches {}

fn split(rest: &mut Bytes) -> Result<Batch, BatchError> {
    let header = BatchHeader::parse(rest)?;
    let size = header.size();
    if size > rest.len() {
        return Err(BatchError::Truncated { field: "batch", needed: size as u64, have: rest.len() as u64 });
    }
    Ok(Batch { header, bytes: rest.split_to(size) })
}
