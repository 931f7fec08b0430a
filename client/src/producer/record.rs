//! A record to send.

use tidemill_record::HeaderRef;

/// A record as the caller holds it; its bytes are copied once, into the batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendRecord<'a> {
    /// The partition; `None`: by murmur2 of the key as Kafka does, and for records without key one partition until its
    /// batch is closed, then another.
    pub partition: Option<u32>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// Headers in order.
    pub headers: &'a [HeaderRef<'a>],
    /// ms since the Unix epoch; `None`: now.
    pub timestamp: Option<i64>,
}

impl<'a> SendRecord<'a> {
    /// Key and value; everything else by default.
    #[must_use]
    pub fn new(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Self {
        Self { key, value, ..Self::default() }
    }
}
