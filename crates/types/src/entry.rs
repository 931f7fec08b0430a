//! A ledger entry as it stands on the wire and on disk: encoded once in its life (R12).
//!
//! | offset | size | field |
//! | ---: | ---: | --- |
//! | 0 | 2 | magic `0x5445` ("TE"), big-endian like every number here |
//! | 2 | 1 | version, 1 |
//! | 3 | 1 | flags, 0 |
//! | 4 | 4 | envelope length |
//! | 8 | 8 | ledger |
//! | 16 | 8 | entry |
//! | 24 | 8 | LAC of the writer when it sent the entry first; -1 = none |
//! | 32 | 8 | cumulative length: envelope and body bytes of all entries up to and with this one |
//! | 40 | 4 | body length |
//! | 44 | 4 | CRC-32C of the body |
//! | 48 | 4 | CRC-32C of bytes 0..48 and of the envelope |
//! | 52 | | envelope, then body |
//!
//! The head CRC covers the body CRC, so it covers everything; a header-only read returns bytes `0..52 + envelope length`
//! and can be checked without the body.

use bytes::{BufMut, Bytes, BytesMut};
use crc_fast::CrcAlgorithm;

use crate::{EntryId, LedgerId};

/// Bytes in front of the envelope.
pub const HEADER_LEN: usize = 52;
/// Longest envelope, bytes.
pub const MAX_ENVELOPE_LEN: u32 = 1 << 20;
/// Largest body, bytes (the configured maximum of a bookie is usually lower).
pub const MAX_BODY_LEN: u32 = 64 << 20;
const MAGIC: u16 = 0x5445;
const VERSION: u8 = 1;

/// Why bytes are not a valid entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Fewer bytes than the header or than the lengths in it say.
    #[error("entry is cut off: {have} bytes, {need} needed")]
    Truncated {
        /// Bytes present.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
    /// Wrong magic, version or flags.
    #[error("entry header is not known (magic, version or flags)")]
    BadHeader,
    /// A length above its ceiling.
    #[error("entry length field {field} is {value}, at most {max} allowed")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// The ceiling.
        max: u32,
    },
    /// Bytes behind the end that the lengths name.
    #[error("{extra} bytes follow the end of the entry")]
    TrailingBytes {
        /// How many.
        extra: usize,
    },
    /// A CRC does not match.
    #[error("entry digest does not match its bytes")]
    BadDigest,
    /// Negative entry id, or a LAC at or above the entry.
    #[error("entry id or LAC is out of range")]
    BadPosition,
}

/// The fixed part in front of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// The ledger.
    pub ledger: LedgerId,
    /// The entry.
    pub entry: EntryId,
    /// LAC of the writer at the first send.
    pub lac: EntryId,
    /// Envelope and body bytes of all entries up to and with this one.
    pub cumulative_length: u64,
    /// Envelope bytes.
    pub envelope_len: u32,
    /// Body bytes.
    pub body_len: u32,
    /// CRC-32C of the body.
    pub body_crc: u32,
    /// CRC-32C of the first 48 header bytes and of the envelope.
    pub head_crc: u32,
}

/// An entry: its header and its bytes, reference-counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    header: EntryHeader,
    bytes: Bytes,
}

/// CRC-32C (Castagnoli).
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "a 32-bit CRC in a 64-bit return type")]
pub fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut d = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    for p in parts {
        d.update(p);
    }
    d.finalize() as u32
}

fn be<const N: usize>(b: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&b[at..at + N]);
    out
}

impl EntryHeader {
    /// Reads the header at the start of `b` and checks magic, version, ranges and ceilings, not the digests.
    ///
    /// # Errors
    /// [`EntryError`] except `TrailingBytes` and `BadDigest`.
    pub fn parse(b: &[u8]) -> Result<Self, EntryError> {
        if b.len() < HEADER_LEN {
            return Err(EntryError::Truncated { have: b.len(), need: HEADER_LEN });
        }
        if u16::from_be_bytes(be(b, 0)) != MAGIC || b[2] != VERSION || b[3] != 0 {
            return Err(EntryError::BadHeader);
        }
        let h = Self {
            envelope_len: u32::from_be_bytes(be(b, 4)),
            ledger: LedgerId(u64::from_be_bytes(be(b, 8))),
            entry: EntryId(i64::from_be_bytes(be(b, 16))),
            lac: EntryId(i64::from_be_bytes(be(b, 24))),
            cumulative_length: u64::from_be_bytes(be(b, 32)),
            body_len: u32::from_be_bytes(be(b, 40)),
            body_crc: u32::from_be_bytes(be(b, 44)),
            head_crc: u32::from_be_bytes(be(b, 48)),
        };
        if h.envelope_len > MAX_ENVELOPE_LEN {
            return Err(EntryError::TooLong {
                field: "envelope",
                value: h.envelope_len,
                max: MAX_ENVELOPE_LEN,
            });
        }
        if h.body_len > MAX_BODY_LEN {
            return Err(EntryError::TooLong { field: "body", value: h.body_len, max: MAX_BODY_LEN });
        }
        if h.entry.0 < 0 || h.lac.0 < -1 || h.lac >= h.entry {
            return Err(EntryError::BadPosition);
        }
        Ok(h)
    }

    /// Header and envelope bytes together: what a header-only read returns.
    #[must_use]
    pub fn head_len(&self) -> usize {
        HEADER_LEN + self.envelope_len as usize
    }

    /// Length of the whole entry.
    #[must_use]
    pub fn total_len(&self) -> usize {
        self.head_len() + self.body_len as usize
    }

    /// Checks the head digest over header and envelope; `head` is at least [`Self::head_len`] long.
    ///
    /// # Errors
    /// `Truncated` or `BadDigest`.
    pub fn check_head(&self, head: &[u8]) -> Result<(), EntryError> {
        if head.len() < self.head_len() {
            return Err(EntryError::Truncated { have: head.len(), need: self.head_len() });
        }
        if crc32c(&[&head[..48], &head[HEADER_LEN..self.head_len()]]) == self.head_crc {
            Ok(())
        } else {
            Err(EntryError::BadDigest)
        }
    }
}

impl Entry {
    /// Encodes an entry. `body` may come in several parts that are written one behind the other.
    ///
    /// `cumulative_before` is the cumulative length of the entry before it (0 for the first).
    ///
    /// # Errors
    /// `TooLong` above a ceiling, `BadPosition` when `lac >= entry` or `entry < 0`.
    pub fn encode(
        ledger: LedgerId,
        entry: EntryId,
        lac: EntryId,
        cumulative_before: u64,
        envelope: &[u8],
        body: &[Bytes],
    ) -> Result<Self, EntryError> {
        let body_len: usize = body.iter().map(Bytes::len).sum();
        let envelope_len = fits("envelope", envelope.len(), MAX_ENVELOPE_LEN)?;
        let body_len = fits("body", body_len, MAX_BODY_LEN)?;
        if entry.0 < 0 || lac.0 < -1 || lac >= entry {
            return Err(EntryError::BadPosition);
        }
        let parts: Vec<&[u8]> = body.iter().map(AsRef::as_ref).collect();
        let body_crc = crc32c(&parts);
        let cumulative_length = cumulative_before + u64::from(envelope_len) + u64::from(body_len);
        let mut b = BytesMut::with_capacity(HEADER_LEN + envelope.len() + body_len as usize);
        b.put_u16(MAGIC);
        b.put_u8(VERSION);
        b.put_u8(0);
        b.put_u32(envelope_len);
        b.put_u64(ledger.0);
        b.put_i64(entry.0);
        b.put_i64(lac.0);
        b.put_u64(cumulative_length);
        b.put_u32(body_len);
        b.put_u32(body_crc);
        let head_crc = crc32c(&[&b[..48], envelope]);
        b.put_u32(head_crc);
        b.put_slice(envelope);
        for p in parts {
            b.put_slice(p);
        }
        let header =
            EntryHeader { ledger, entry, lac, cumulative_length, envelope_len, body_len, body_crc, head_crc };
        Ok(Self { header, bytes: b.freeze() })
    }

    /// Takes encoded bytes and checks everything, digests included.
    ///
    /// # Errors
    /// Any [`EntryError`].
    pub fn decode(bytes: Bytes) -> Result<Self, EntryError> {
        let header = EntryHeader::parse(&bytes)?;
        let need = header.total_len();
        if bytes.len() < need {
            return Err(EntryError::Truncated { have: bytes.len(), need });
        }
        if bytes.len() > need {
            return Err(EntryError::TrailingBytes { extra: bytes.len() - need });
        }
        header.check_head(&bytes)?;
        if crc32c(&[&bytes[header.head_len()..]]) != header.body_crc {
            return Err(EntryError::BadDigest);
        }
        Ok(Self { header, bytes })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &EntryHeader {
        &self.header
    }

    /// The encoded bytes, shared.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The envelope, shared.
    #[must_use]
    pub fn envelope(&self) -> Bytes {
        self.bytes.slice(HEADER_LEN..self.header.head_len())
    }

    /// The body, shared.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.bytes.slice(self.header.head_len()..)
    }
}

fn fits(field: &'static str, len: usize, max: u32) -> Result<u32, EntryError> {
    match u32::try_from(len) {
        Ok(v) if v <= max => Ok(v),
        Ok(value) => Err(EntryError::TooLong { field, value, max }),
        Err(_) => Err(EntryError::TooLong { field, value: u32::MAX, max }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Entry {
        Entry::encode(
            LedgerId(7),
            EntryId(3),
            EntryId(1),
            100,
            b"env",
            &[Bytes::from_static(b"bo"), "dy".into()],
        )
        .unwrap()
    }

    #[test]
    fn golden_bytes() {
        let hex: String = sample().bytes().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            &hex[..96],
            "54450100000000030000000000000007000000000000000300000000000000010000000000000 06b00000004"
                .replace(' ', "")
                .as_str()
                .to_owned()
                + &hex[88..96]
        );
        assert_eq!(sample().envelope(), "env");
        assert_eq!(sample().body(), "body");
        assert_eq!(sample().header().cumulative_length, 107);
    }

    #[test]
    fn known_crc() {
        assert_eq!(crc32c(&[b"1234", b"56789"]), 0xE306_9283);
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_found(bit in 0usize..(HEADER_LEN + 7) * 8) {
            let mut b = sample().bytes().to_vec();
            b[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Entry::decode(b.into()).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(b in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Entry::decode(b.into());
        }

        #[test]
        fn round_trip(env in proptest::collection::vec(any::<u8>(), 0..50), body in proptest::collection::vec(any::<u8>(), 0..500), id in 0i64..1000) {
            let e = Entry::encode(LedgerId(1), EntryId(id), EntryId(id - 1), 0, &env, &[Bytes::from(body.clone())]).unwrap();
            let d = Entry::decode(e.bytes().clone()).unwrap();
            prop_assert_eq!(&d, &e);
            prop_assert_eq!(d.body(), body);
        }
    }
}
