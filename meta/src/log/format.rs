//! Bytes of a log file.
//!
//! File header, 64 bytes, little-endian:
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | magic `TMMDRLOG` |
//! | 8 | 2 | version, 1 |
//! | 10 | 6 | zero |
//! | 16 | 8 | raft node id |
//! | 24 | 8 | index of the first entry |
//! | 32 | 28 | zero |
//! | 60 | 4 | CRC-32C of bytes 0..60 |
//!
//! Record, at a multiple of 8:
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 4 | length of the payload, at most 8 MiB |
//! | 4 | 4 | CRC-32C of bytes 8..40 and the payload |
//! | 8 | 1 | kind: 1 blank, 2 command, 3 membership, 4 committed |
//! | 9 | 7 | zero |
//! | 16 | 8 | index |
//! | 24 | 8 | term |
//! | 32 | 8 | synced: bytes of this file before this offset were durable when the record was written |
//! | 40 | length | payload, then zeros up to a multiple of 8 |

use tidemill_types::entry::crc32c;

use crate::types::NodeId;

/// Bytes of the file header.
pub(super) const HEADER_LEN: usize = 64;
/// Bytes of a record before its payload.
pub(super) const RECORD_LEN: usize = 40;
/// Largest payload: the largest request with room to spare.
pub(super) const MAX_PAYLOAD: usize = 8 << 20;
/// A file is closed once it has so many bytes.
pub(super) const SEGMENT_BYTES: u64 = 16 << 20;
/// Ceiling of a file: a full one, a group and a largest record.
pub(super) const MAX_FILE: u64 = 64 << 20;

const MAGIC: &[u8; 8] = b"TMMDRLOG";
const VERSION: u16 = 1;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blank = 1,
    Command = 2,
    Membership = 3,
    /// Not an entry: the log id up to which entries are known to be committed.
    Committed = 4,
}

impl Kind {
    fn from_byte(b: u8) -> Option<Self> {
        [Self::Blank, Self::Command, Self::Membership, Self::Committed].into_iter().find(|k| *k as u8 == b)
    }
}

/// A record's fields, its payload as a range of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: Kind,
    pub(super) index: u64,
    pub(super) term: u64,
    pub(super) synced: u64,
    pub(super) payload: std::ops::Range<usize>,
    /// Offset of the next record.
    pub(super) next: usize,
}

/// Length of a record with its padding.
pub(super) fn record_len(payload: usize) -> usize {
    (RECORD_LEN + payload).next_multiple_of(8)
}

pub(super) fn header(node: NodeId, first: u64) -> [u8; HEADER_LEN] {
    let mut h = [0; HEADER_LEN];
    h[..8].copy_from_slice(MAGIC);
    h[8..10].copy_from_slice(&VERSION.to_le_bytes());
    h[16..24].copy_from_slice(&node.to_le_bytes());
    h[24..32].copy_from_slice(&first.to_le_bytes());
    let crc = crc32c(&[&h[..60]]);
    h[60..].copy_from_slice(&crc.to_le_bytes());
    h
}

/// Index of the first entry, or what is wrong with the header.
pub(super) fn parse_header(b: &[u8], node: NodeId) -> Result<u64, String> {
    let Some(h) = b.get(..HEADER_LEN) else { return Err("the header is cut off".to_owned()) };
    if &h[..8] != MAGIC {
        return Err("this is no file of a raft log".to_owned());
    }
    if crc32c(&[&h[..60]]).to_le_bytes() != h[60..] {
        return Err("the checksum of the header does not match".to_owned());
    }
    let version = u16::from_le_bytes([h[8], h[9]]);
    if version != VERSION {
        return Err(format!("version {version}, only {VERSION} is known"));
    }
    let of = u64_at(h, 16);
    if of != node {
        return Err(format!("it is of node {of}, this is node {node}"));
    }
    Ok(u64_at(h, 24))
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    let mut x = [0; 8];
    x.copy_from_slice(&b[at..at + 8]);
    u64::from_le_bytes(x)
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    let mut x = [0; 4];
    x.copy_from_slice(&b[at..at + 4]);
    u32::from_le_bytes(x)
}

/// Appends a record; the caller has checked the payload against [`MAX_PAYLOAD`].
pub(super) fn encode(out: &mut Vec<u8>, kind: Kind, index: u64, term: u64, synced: u64, payload: &[u8]) {
    let mut h = [0; RECORD_LEN];
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    h[..4].copy_from_slice(&len.to_le_bytes());
    h[8] = kind as u8;
    h[16..24].copy_from_slice(&index.to_le_bytes());
    h[24..32].copy_from_slice(&term.to_le_bytes());
    h[32..40].copy_from_slice(&synced.to_le_bytes());
    let crc = crc32c(&[&h[8..], payload]);
    h[4..8].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&h);
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(8), 0);
}

/// The record at `at`; `Ok(None)` at the end of the file.
pub(super) fn parse(b: &[u8], at: usize) -> Result<Option<Record>, &'static str> {
    let rest = b.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(None);
    }
    let record = parse_alone(rest)?;
    if record.synced > at as u64 {
        return Err("a record that speaks of the future");
    }
    let payload = at + record.payload.start..at + record.payload.end;
    Ok(Some(Record { payload, next: at + record.next, ..record }))
}

/// The record at the beginning of `rest`, offsets counted from there.
pub(super) fn parse_alone(rest: &[u8]) -> Result<Record, &'static str> {
    let Some(h) = rest.get(..RECORD_LEN) else { return Err("a record is cut off") };
    let len = u32_at(h, 0) as usize;
    if len > MAX_PAYLOAD {
        return Err("a length above 8 MiB");
    }
    let Some(kind) = Kind::from_byte(h[8]) else { return Err("a kind of record that is not known") };
    if h[9..16] != [0; 7] {
        return Err("bytes that must be zero are not");
    }
    let end = record_len(len);
    let Some(payload) = rest.get(RECORD_LEN..RECORD_LEN + len).filter(|_| rest.len() >= end) else {
        return Err("a record is cut off");
    };
    if crc32c(&[&h[8..], payload]) != u32_at(h, 4) {
        return Err("the checksum of a record does not match");
    }
    Ok(Record {
        kind,
        index: u64_at(h, 16),
        term: u64_at(h, 24),
        synced: u64_at(h, 32),
        payload: RECORD_LEN..RECORD_LEN + len,
        next: end,
    })
}
