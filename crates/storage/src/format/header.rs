//! First block of a segment.
//!
//! | offset | size | field |
//! | ---: | ---: | --- |
//! | 0 | 4 | magic "TMSG" |
//! | 4 | 2 | version, 1 |
//! | 6 | 1 | kind: 1 log, 2 rewritten |
//! | 7 | 1 | zero |
//! | 8 | 16 | lane uuid |
//! | 24 | 16 | segment uuid |
//! | 40 | 4 | segment number |
//! | 44 | 4 | zero |
//! | 48 | 8 | number of the first group in it |
//! | 56 | 4 | CRC-32C of bytes 0..56 |
//! | 60 | | zeros up to 4096 |

use tidemill_types::{MemberId, entry::crc32c};
use uuid::Uuid;

use super::{BLOCK_LEN, codec::Reader};

const MAGIC: [u8; 4] = *b"TMSG";
const VERSION: u16 = 1;
const CRC_AT: usize = 56;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) lane: MemberId,
    pub(crate) uuid: Uuid,
    pub(crate) number: u32,
    pub(crate) rewritten: bool,
    pub(crate) first_group: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = Vec::with_capacity(BLOCK_LEN);
        b.extend_from_slice(&MAGIC);
        b.extend_from_slice(&VERSION.to_be_bytes());
        b.extend_from_slice(&[1 + u8::from(self.rewritten), 0]);
        b.extend_from_slice(self.lane.0.as_bytes());
        b.extend_from_slice(self.uuid.as_bytes());
        b.extend_from_slice(&self.number.to_be_bytes());
        b.extend_from_slice(&[0; 4]);
        b.extend_from_slice(&self.first_group.to_be_bytes());
        let crc = crc32c(&[&b]);
        b.extend_from_slice(&crc.to_be_bytes());
        b.resize(BLOCK_LEN, 0);
        b
    }

    /// `None` when the bytes are not a valid header.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        if r.take(4)? != MAGIC || r.u16()? != VERSION {
            return None;
        }
        let kind = r.u8()?;
        r.u8()?;
        let lane = MemberId(r.uuid()?);
        let uuid = r.uuid()?;
        let number = r.u32()?;
        r.u32()?;
        let first_group = r.u64()?;
        let crc = r.u32()?;
        if !(1..=2).contains(&kind) || crc32c(&[&bytes[..CRC_AT]]) != crc {
            return None;
        }
        Some(Self { lane, uuid, number, rewritten: kind == 2, first_group })
    }
}
