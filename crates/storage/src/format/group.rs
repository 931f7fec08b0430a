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

use tidemill_types::entry::crc32c;
use uuid::Uuid;

use super::{BLOCK_LEN, codec::Reader};

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

/// Builds one group in a buffer that is used again.
#[derive(Debug, Default)]
pub(crate) struct GroupBuilder {
    buf: Vec<u8>,
    records: u32,
}

impl GroupBuilder {
    pub(crate) fn clear(&mut self) {
        self.buf.clear();
        self.buf.resize(GROUP_HEAD, 0);
        self.records = 0;
    }

    /// Appends a record; answers the offset in the group at which its bytes start.
    pub(crate) fn push(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> usize {
        let at = self.buf.len() + super::record::RECORD_HEAD;
        put(&mut self.buf);
        self.records += 1;
        at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.buf.len()
    }

    /// Fills in the header and pads; the bytes to write.
    pub(crate) fn finish(&mut self, uuid: Uuid, number: u64, closing: bool) -> &[u8] {
        let body_len = u32::try_from(self.buf.len() - GROUP_HEAD).unwrap_or(u32::MAX);
        let mut head = Vec::with_capacity(GROUP_HEAD);
        head.extend_from_slice(&MAGIC);
        head.extend_from_slice(&[VERSION, u8::from(closing), 0, 0]);
        head.extend_from_slice(uuid.as_bytes());
        head.extend_from_slice(&number.to_be_bytes());
        head.extend_from_slice(&body_len.to_be_bytes());
        head.extend_from_slice(&self.records.to_be_bytes());
        head.extend_from_slice(&[0; 4]);
        let crc = crc32c(&[&head, &self.buf[GROUP_HEAD..]]);
        head.extend_from_slice(&crc.to_be_bytes());
        self.buf[..GROUP_HEAD].copy_from_slice(&head);
        self.buf.resize(self.buf.len().next_multiple_of(BLOCK_LEN), 0);
        &self.buf
    }
}
