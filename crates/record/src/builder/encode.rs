//! A record as bytes.
//!
//! | field | type |
//! | --- | --- |
//! | length of what follows | varint |
//! | attributes | 1 byte, 0 |
//! | timestamp less the base timestamp | varlong |
//! | offset less the base offset | varint |
//! | key length, key | varint (-1 = null), bytes |
//! | value length, value | varint (-1 = null), bytes |
//! | header count | varint |
//! | each: key length, key, value length (-1 = null), value | varint, bytes, varint, bytes |

use bytes::BytesMut;

use crate::varint::{MAX_BYTES, put, size};

/// A header to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderRef<'a> {
    /// The name.
    pub key: &'a str,
    /// The value.
    pub value: Option<&'a [u8]>,
}

/// What is known of a record before it is encoded: its length, which stands first.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    timestamp_delta: i64,
    offset_delta: i64,
    length: usize,
}

impl Plan {
    #[inline]
    pub(super) fn new(
        timestamp_delta: i64,
        offset_delta: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) -> Self {
        let offset_delta = i64::from(offset_delta);
        let mut length = 1 + size(timestamp_delta) + size(offset_delta);
        length = length.saturating_add(field_size(key)).saturating_add(field_size(value));
        length = length.saturating_add(size(headers.len() as i64));
        for h in headers {
            length =
                length.saturating_add(field_size(Some(h.key.as_bytes()))).saturating_add(field_size(h.value));
        }
        Self { timestamp_delta, offset_delta, length }
    }

    /// Bytes of the whole record.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.length.saturating_add(size(i64::try_from(self.length).unwrap_or(i64::MAX)))
    }

    /// Appends the record of which this is the plan.
    #[inline]
    pub(super) fn encode(
        &self,
        buf: &mut BytesMut,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        buf.reserve(self.size());
        // The numbers in front of the key in one write.
        let mut head = [0; 4 * MAX_BYTES + 1];
        let mut n = put(&mut head, 0, self.length as i64);
        n = put(&mut head, n + 1, self.timestamp_delta);
        n = put(&mut head, n, self.offset_delta);
        n = put(&mut head, n, wire_length(key));
        buf.extend_from_slice(&head[..n]);
        buf.extend_from_slice(key.unwrap_or_default());
        number(buf, wire_length(value));
        buf.extend_from_slice(value.unwrap_or_default());
        number(buf, headers.len() as i64);
        for h in headers {
            number(buf, h.key.len() as i64);
            buf.extend_from_slice(h.key.as_bytes());
            number(buf, wire_length(h.value));
            buf.extend_from_slice(h.value.unwrap_or_default());
        }
    }
}

#[inline]
fn wire_length(field: Option<&[u8]>) -> i64 {
    field.map_or(-1, |f| f.len() as i64)
}

#[inline]
fn field_size(field: Option<&[u8]>) -> usize {
    size(wire_length(field)).saturating_add(field.map_or(0, <[u8]>::len))
}

#[inline]
fn number(buf: &mut BytesMut, v: i64) {
    let mut bytes = [0; MAX_BYTES];
    let n = put(&mut bytes, 0, v);
    buf.extend_from_slice(&bytes[..n]);
}
