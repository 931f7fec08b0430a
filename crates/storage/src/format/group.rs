//! The commit group: the unit that is written, synced and replayed as a whole (R19).
//!
//! | offset | size | field |
//! | ---: | ---: | --- |
//! | 0 | 4 | magic "TMGR" |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | flags: 1 = closing group |
//! | 6 | 2 | zero |
//! | 8 | 16 | segment uuid |
//! | 24 | 8 | group number |
//! | 32 | 4 | length of the records, bytes |
//! | 36 | 4 | count of records |
//! | 40 | 4 | zero |
//! | 44 | 4 | CRC-32C of bytes 0..44 and of the records |
//! | 48 | | records, then zeros up to the next multiple of 4096 |

use bytes::Bytes;
use tidemill_types::entry::crc32c;
use uuid::Uuid;

use super::{BLOCK_LEN, codec::Reader, record};

pub(crate) const MAGIC: [u8; 4] = *b"TMGR";
const VERSION: u8 = 1;
/// Bytes in front of the records.
pub(crate) const GROUP_HEAD: usize = 48;
const CRC_AT: usize = 44;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) uuid: Uuid,
    pub(crate) number: u64,
    pub(crate) body_len: u32,
    pub(crate) records: u32,
    pub(crate) closing: bool,
    crc: u32,
}

impl GroupHeader {
    /// `None` when the bytes do not start with a group header. The digest is not checked yet.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        if r.take(4)? != MAGIC || r.u8()? != VERSION {
            return None;
        }
        let flags = r.u8()?;
        r.u16()?;
        let uuid = r.uuid()?;
        let number = r.u64()?;
        let body_len = r.u32()?;
        let records = r.u32()?;
        r.u32()?;
        let crc = r.u32()?;
        Some(Self { uuid, number, body_len, records, closing: flags & 1 != 0, crc })
    }

    /// Bytes on disk, padding included.
    pub(crate) fn disk_len(&self) -> u64 {
        super::block_up(GROUP_HEAD as u64 + u64::from(self.body_len))
    }

    /// Whether the digest fits; `bytes` start with the header.
    pub(crate) fn check(&self, bytes: &[u8]) -> bool {
        let end = GROUP_HEAD + self.body_len as usize;
        bytes.len() >= end && crc32c(&[&bytes[..CRC_AT], &bytes[GROUP_HEAD..end]]) == self.crc
    }
}

/// Entries from this size on are written from where they lie; smaller ones are copied together.
const SHARED_FROM: usize = 4 << 10;

/// Builds one group. Its own buffer is used again; large entries are only referred to.
#[derive(Debug, Default)]
pub(crate) struct GroupBuilder {
    /// Room for the header, small records, and the heads of large ones.
    own: Vec<u8>,
    /// Large entries, each with the length of `own` in front of it.
    shared: Vec<(usize, Bytes)>,
    shared_len: usize,
    records: u32,
}

impl GroupBuilder {
    pub(crate) fn clear(&mut self) {
        self.own.clear();
        self.own.resize(GROUP_HEAD, 0);
        self.shared.clear();
        self.shared_len = 0;
        self.records = 0;
    }

    /// Appends a record; answers the offset in the group at which its bytes start.
    pub(crate) fn push(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> usize {
        let at = self.len() + record::RECORD_HEAD;
        put(&mut self.own);
        self.records += 1;
        at
    }

    /// Appends an entry, as [`Self::push`].
    pub(crate) fn push_entry(&mut self, kind: u8, entry: &Bytes) -> usize {
        if entry.len() < SHARED_FROM {
            return self.push(|b| record::put_entry(b, kind, entry));
        }
        let at = self.push(|b| record::put_head(b, kind, entry.len()));
        self.shared.push((self.own.len(), entry.clone()));
        self.shared_len += entry.len();
        at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.own.len() + self.shared_len
    }

    /// Fills in the header and pads; the bytes to write, in order.
    pub(crate) fn finish(&mut self, uuid: Uuid, number: u64, closing: bool) -> Vec<&[u8]> {
        let body_len = u32::try_from(self.len() - GROUP_HEAD).unwrap_or(u32::MAX);
        let mut head = Vec::with_capacity(GROUP_HEAD);
        head.extend_from_slice(&MAGIC);
        head.extend_from_slice(&[VERSION, u8::from(closing), 0, 0]);
        head.extend_from_slice(uuid.as_bytes());
        head.extend_from_slice(&number.to_be_bytes());
        head.extend_from_slice(&body_len.to_be_bytes());
        head.extend_from_slice(&self.records.to_be_bytes());
        head.extend_from_slice(&[0; 4]);
        self.own[..CRC_AT].copy_from_slice(&head);
        let parts = self.parts();
        let mut checked = vec![&head[..], &parts[0][GROUP_HEAD..]];
        checked.extend(&parts[1..]);
        let crc = crc32c(&checked);
        self.own[CRC_AT..GROUP_HEAD].copy_from_slice(&crc.to_be_bytes());
        let padded = self.len().next_multiple_of(BLOCK_LEN) - self.shared_len;
        self.own.resize(padded, 0);
        self.parts()
    }

    /// All bytes in order; the first part is never shorter than the header.
    fn parts(&self) -> Vec<&[u8]> {
        let mut parts = Vec::with_capacity(2 * self.shared.len() + 1);
        let mut from = 0;
        for (at, entry) in &self.shared {
            parts.extend([&self.own[from..*at], &entry[..]]);
            from = *at;
        }
        parts.push(&self.own[from..]);
        parts
    }

    /// Lets go of the entries once they are written.
    pub(crate) fn release(&mut self) {
        self.shared.clear();
        self.shared_len = 0;
    }
}
