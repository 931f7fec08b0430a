//! One record of a batch, and how its fields are read.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::{BatchError, Limits};

/// Bytes of the smallest record: length, attributes, timestamp delta, offset delta, key length, value length and
/// header count of one byte each.
pub(crate) const MIN_RECORD_BYTES: usize = 7;
/// Bytes of the smallest header: the lengths of key and value.
const MIN_HEADER_BYTES: usize = 2;

/// A record. The bytes are slices of the batch, or of its inflated form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset less the base offset of the batch.
    pub offset_delta: i32,
    /// ms since 1970; -1 for none. The append time if the batch has that.
    pub timestamp: i64,
    /// What it is about; decides the partition and what compaction keeps.
    pub key: Option<Bytes>,
    /// What it says; `None` is a tombstone in a compacted topic.
    pub value: Option<Bytes>,
    /// In the producer's order; names may repeat.
    pub headers: Vec<Header>,
}

/// A header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name. UTF-8 by agreement, not by check.
    pub key: Bytes,
    /// The value.
    pub value: Option<Bytes>,
}

impl Header {
    /// The name as text; bytes that are not UTF-8 show as U+FFFD.
    #[must_use]
    pub fn key_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.key)
    }
}

/// A record before its timestamp is resolved.
pub(crate) struct RawRecord {
    pub(crate) offset_delta: i32,
    pub(crate) timestamp_delta: i64,
    pub(crate) key: Option<Bytes>,
    pub(crate) value: Option<Bytes>,
    pub(crate) headers: Vec<Header>,
}

/// The fixed fields of a record, and where its bytes lie.
pub(crate) struct Layout {
    pub(crate) offset_delta: i32,
    pub(crate) timestamp_delta: i64,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    /// Position behind the record.
    pub(crate) end: usize,
}

impl Layout {
    /// Walks through the record at `at` of `data` without a copy or an allocation. `count` is told the number of headers
    /// before `header` is told where name and value of each one lie.
    #[inline]
    pub(crate) fn read<T>(
        data: &[u8],
        at: usize,
        limits: &Limits,
        headers: &mut T,
        count: impl FnOnce(&mut T, usize),
        header: impl FnMut(&mut T, Range<usize>, Option<Range<usize>>),
    ) -> Result<Self, BatchError> {
        let mut outer = Cursor::new(data, at);
        let length = outer.varint("record length")?;
        let min = (MIN_RECORD_BYTES - 1) as i64;
        let Some(bytes) = usize::try_from(length).ok().filter(|n| *n as i64 >= min) else {
            let max = i32::MAX.into();
            return Err(BatchError::Length { field: "record length", found: length.into(), min, max });
        };
        let body = outer.take("record", bytes)?;
        let mut c = Cursor::new(data.get(..body.end).unwrap_or_default(), body.start);
        // No attribute of a record has a meaning yet; readers have to skip what they do not know.
        c.byte("record attributes")?;
        let timestamp_delta = c.varlong("timestamp delta")?;
        let offset_delta = c.varint("offset delta")?;
        let key = nullable(&mut c, "key length", "key")?;
        let value = nullable(&mut c, "value length", "value")?;
        walk_headers(&mut c, limits, headers, count, header)?;
        match c.remaining() {
            0 => Ok(Self { offset_delta, timestamp_delta, key, value, end: body.end }),
            rest => Err(BatchError::Trailing { field: "record", bytes: rest as u64 }),
        }
    }

    /// The same without a look at the headers beyond their form.
    #[inline]
    pub(crate) fn check(data: &[u8], at: usize, limits: &Limits) -> Result<Self, BatchError> {
        Self::read(data, at, limits, &mut (), |(), _| {}, |(), _, _| {})
    }
}

impl RawRecord {
    /// Reads the record at `at` of `data` and gives the position behind it.
    pub(crate) fn read(data: &Bytes, at: usize, limits: &Limits) -> Result<(Self, usize), BatchError> {
        let slice = |range: Range<usize>| data.slice(range);
        let mut headers = Vec::new();
        let layout =
            Layout::read(data, at, limits, &mut headers, Vec::reserve_exact, |headers, key, value| {
                headers.push(Header { key: slice(key), value: value.map(slice) });
            })?;
        let Layout { offset_delta, timestamp_delta, key, value, end } = layout;
        let (key, value) = (key.map(slice), value.map(slice));
        Ok((Self { offset_delta, timestamp_delta, key, value, headers }, end))
    }
}

#[inline]
fn nullable(
    c: &mut Cursor<'_>,
    length: &'static str,
    field: &'static str,
) -> Result<Option<Range<usize>>, BatchError> {
    c.nullable_length(length)?.map(|n| c.take(field, n)).transpose()
}

#[inline]
fn walk_headers<T>(
    c: &mut Cursor<'_>,
    limits: &Limits,
    into: &mut T,
    told: impl FnOnce(&mut T, usize),
    mut header: impl FnMut(&mut T, Range<usize>, Option<Range<usize>>),
) -> Result<(), BatchError> {
    const COUNT: &str = "header count";
    let found = c.varint(COUNT)?;
    if found == 0 {
        return Ok(());
    }
    let fitting = c.remaining() / MIN_HEADER_BYTES;
    let Ok(count) = usize::try_from(found) else {
        return Err(BatchError::Count { field: COUNT, found: found.into(), min: 0, max: fitting as i64 });
    };
    if count > limits.headers {
        return Err(BatchError::Headers { found: count as u64, max: limits.headers as u64 });
    }
    if count > fitting {
        return Err(BatchError::Count { field: COUNT, found: found.into(), min: 0, max: fitting as i64 });
    }
    told(into, count);
    for _ in 0..count {
        let length = c.varint("header key length")?;
        let Ok(length) = usize::try_from(length) else {
            let max = i32::MAX.into();
            return Err(BatchError::Length { field: "header key length", found: length.into(), min: 0, max });
        };
        let key = c.take("header key", length)?;
        let value = nullable(c, "header value length", "header value")?;
        header(into, key, value);
    }
    Ok(())
}
