//! Building a batch.

mod encode;
mod options;

use bytes::{Bytes, BytesMut};

pub use encode::HeaderRef;
pub use options::BatchOptions;

use crate::compression::Compressor;
use crate::header::{FRAME_BYTES, seal};
use crate::{BatchError, BatchHeader, Compression, HEADER_BYTES, Limits, ProducerFields};

/// Collects records and makes batches of them, one after the other. Each record is encoded once, at
/// [`BatchBuilder::append`], behind room for the header; an uncompressed batch is then that buffer itself. Memory is
/// reused from batch to batch once the earlier [`Bytes`] are dropped, and codecs keep their working memory.
pub struct BatchBuilder {
    limits: Limits,
    /// The header's room, then the records. Empty as long as there is no record.
    buf: BytesMut,
    /// A compressed batch before it gets its final place.
    scratch: Vec<u8>,
    compressor: Compressor,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// A builder whose records obey [`Limits::inflated`] and [`Limits::headers`], and whose batches obey
    /// [`Limits::batch`].
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            buf: BytesMut::new(),
            scratch: Vec::new(),
            compressor: Compressor::default(),
            count: 0,
            base_timestamp: -1,
            max_timestamp: -1,
        }
    }

    /// Makes room for a batch of so many bytes before compression, so that appends need not grow the buffer.
    pub fn reserve(&mut self, bytes: usize) {
        self.buf.reserve(bytes.saturating_sub(self.buf.len()));
    }

    /// Records so far.
    #[must_use]
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Whether there is no record yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Exact bytes of the batch so far without compression, header included.
    #[must_use]
    pub fn size(&self) -> usize {
        HEADER_BYTES.max(self.buf.len())
    }

    /// Exact bytes by which a record would make [`BatchBuilder::size`] grow. Encodes nothing.
    #[must_use]
    pub fn record_size(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) -> usize {
        self.plan(timestamp, key, value, headers).size()
    }

    /// Adds a record and gives its offset delta. `timestamp` is in ms since 1970, -1 for none. After an error nothing
    /// has changed.
    ///
    /// # Errors
    /// [`BatchError::Timestamp`] below -1 or too far from the first record's, [`BatchError::Headers`], [`BatchError::TooLarge`] above
    /// [`Limits::inflated`], [`BatchError::Count`] after 2^31 - 1 records.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) -> Result<i32, BatchError> {
        if timestamp < -1 {
            let allowed = "-1 for none, or from 0";
            return Err(BatchError::Timestamp { field: "timestamp", found: timestamp, allowed });
        }
        if self.count > 0 && timestamp.checked_sub(self.base_timestamp).is_none() {
            let allowed = "less than 2^63 ms after the first record's";
            return Err(BatchError::Timestamp { field: "timestamp", found: timestamp, allowed });
        }
        if headers.len() > self.limits.headers {
            return Err(BatchError::Headers { found: headers.len() as u64, max: self.limits.headers as u64 });
        }
        if self.count == i32::MAX {
            let max = i32::MAX.into();
            return Err(BatchError::Count { field: "record count", found: max + 1, min: 0, max });
        }
        let plan = self.plan(timestamp, key, value, headers);
        let records = (self.size() - HEADER_BYTES).saturating_add(plan.size());
        let max = self.limits.inflated.min(options::MAX_RECORDS_BYTES);
        if records > max {
            return Err(BatchError::TooLarge { field: "records", bytes: records as u64, max: max as u64 });
        }
        if self.count == 0 {
            self.buf.resize(HEADER_BYTES, 0);
            self.base_timestamp = timestamp;
            self.max_timestamp = timestamp;
        }
        plan.encode(&mut self.buf, key, value, headers);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let offset_delta = self.count;
        self.count += 1;
        Ok(offset_delta)
    }

    /// Forgets the records, keeps the memory.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.count = 0;
    }

    /// Makes the batch and begins the next one. `producer` is given by idempotent producers. After an error the
    /// records are still there.
    ///
    /// # Errors
    /// As [`BatchBuilder::finish_with`].
    pub fn finish(
        &mut self,
        compression: Compression,
        producer: Option<ProducerFields>,
    ) -> Result<Bytes, BatchError> {
        self.finish_with(&BatchOptions { compression, producer, ..BatchOptions::default() })
    }

    /// As [`BatchBuilder::finish`], with every field of the header in the caller's hand.
    ///
    /// # Errors
    /// [`BatchError::Count`] without a record, [`BatchError::TooLarge`] above [`Limits::batch`],
    /// [`BatchError::Producer`] if a transactional batch has no producer, [`BatchError::Compressed`] if a codec fails.
    pub fn finish_with(&mut self, options: &BatchOptions) -> Result<Bytes, BatchError> {
        if self.count == 0 {
            let max = i32::MAX.into();
            return Err(BatchError::Count { field: "record count", found: 0, min: 1, max });
        }
        options.check()?;
        let bytes = if options.compression == Compression::None {
            let header = self.header(options, self.buf.len())?;
            write_header(&header, &mut self.buf);
            self.buf.split().freeze()
        } else {
            self.scratch.clear();
            self.scratch.resize(HEADER_BYTES, 0);
            let records = self.buf.get(HEADER_BYTES..).unwrap_or_default();
            self.compressor.compress(options.compression, records, &mut self.scratch)?;
            let header = self.header(options, self.scratch.len())?;
            write_header(&header, &mut self.scratch);
            // The copy has the exact size: a batch may lie in a cache for long, the scratch space does not.
            Bytes::copy_from_slice(&self.scratch)
        };
        self.clear();
        Ok(bytes)
    }

    fn plan(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) -> encode::Plan {
        let timestamp_delta = if self.count == 0 { 0 } else { timestamp.saturating_sub(self.base_timestamp) };
        encode::Plan::new(timestamp_delta, self.count, key, value, headers)
    }

    fn header(&self, options: &BatchOptions, size: usize) -> Result<BatchHeader, BatchError> {
        let max = self.limits.batch.min(i32::MAX as usize);
        let too_large = BatchError::TooLarge { field: "batch", bytes: size as u64, max: max as u64 };
        if size > max {
            return Err(too_large);
        }
        let producer = options.producer.unwrap_or(ProducerFields::NONE);
        Ok(BatchHeader {
            base_offset: options.base_offset,
            batch_length: i32::try_from(size - FRAME_BYTES).map_err(|_| too_large)?,
            leader_epoch: options.leader_epoch,
            crc: 0,
            attributes: options.attributes(),
            last_offset_delta: self.count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: options.append_time.unwrap_or(self.max_timestamp),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: producer.base_sequence,
            count: self.count,
        })
    }
}

impl std::fmt::Debug for BatchBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchBuilder")
            .field("count", &self.count)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

fn write_header(header: &BatchHeader, batch: &mut [u8]) {
    if let Some(head) = batch.first_chunk_mut::<HEADER_BYTES>() {
        header.write(head);
    }
    seal(batch);
}
