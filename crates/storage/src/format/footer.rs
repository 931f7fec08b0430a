//! Last block of a sealed segment; index, directory and checkpoint lie before it, one behind the other from `index_at` on.
//!
//! | offset | size | field |
//! | ---: | ---: | --- |
//! | 0 | 4 | magic "TMFT" |
//! | 4 | 2 | version, 1 |
//! | 6 | 2 | zero |
//! | 8 | 16 | segment uuid |
//! | 24 | 4 | segment number |
//! | 28 | 4 | count of index rows |
//! | 32 | 8 | number of the first group |
//! | 40 | 8 | number of the last group (first - 1 when there is none) |
//! | 48 | 8 | end of the last group = offset of the first index page |
//! | 56 | 4 | count of runs in the directory |
//! | 60 | 4 | count of states in the checkpoint |
//! | 64 | 4 | count of deletions in the checkpoint |
//! | 68 | 4 | CRC-32C of the segment's uuid and of the directory |
//! | 72 | 4 | CRC-32C of the segment's uuid and of the checkpoint |
//! | 76 | 1 | 1 = the checkpoint is one (log segments), 0 = there is none |
//! | 77 | 3 | zero |
//! | 80 | 4 | CRC-32C of bytes 0..80 |
//! | 84 | | zeros up to 4096 |

use tidemill_types::entry::crc32c;
use uuid::Uuid;

use super::{BLOCK, BLOCK_LEN, block_up, codec::Reader, index, states};

const MAGIC: [u8; 4] = *b"TMFT";
const VERSION: u16 = 1;
const CRC_AT: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) uuid: Uuid,
    pub(crate) number: u32,
    pub(crate) rows: u32,
    pub(crate) first_group: u64,
    pub(crate) last_group: u64,
    pub(crate) index_at: u64,
    pub(crate) runs: u32,
    pub(crate) states: u32,
    pub(crate) deletions: u32,
    pub(crate) runs_crc: u32,
    pub(crate) states_crc: u32,
    pub(crate) has_states: bool,
}

impl Footer {
    pub(crate) fn runs_at(&self) -> u64 {
        self.index_at + u64::from(self.rows.div_ceil(index::ROWS_PER_PAGE)) * BLOCK
    }

    pub(crate) fn runs_len(&self) -> u64 {
        u64::from(self.runs) * index::RUN as u64
    }

    pub(crate) fn states_at(&self) -> u64 {
        self.runs_at() + self.runs_len()
    }

    pub(crate) fn states_len(&self) -> u64 {
        (u64::from(self.states) + u64::from(self.deletions)) * states::ROW as u64
    }

    /// Offset of the footer itself.
    pub(crate) fn at(&self) -> u64 {
        block_up(self.states_at() + self.states_len())
    }

    /// Length of the sealed file.
    pub(crate) fn file_len(&self) -> u64 {
        self.at() + BLOCK
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = Vec::with_capacity(BLOCK_LEN);
        b.extend_from_slice(&MAGIC);
        b.extend_from_slice(&VERSION.to_be_bytes());
        b.extend_from_slice(&[0; 2]);
        b.extend_from_slice(self.uuid.as_bytes());
        b.extend_from_slice(&self.number.to_be_bytes());
        b.extend_from_slice(&self.rows.to_be_bytes());
        b.extend_from_slice(&self.first_group.to_be_bytes());
        b.extend_from_slice(&self.last_group.to_be_bytes());
        b.extend_from_slice(&self.index_at.to_be_bytes());
        b.extend_from_slice(&self.runs.to_be_bytes());
        b.extend_from_slice(&self.states.to_be_bytes());
        b.extend_from_slice(&self.deletions.to_be_bytes());
        b.extend_from_slice(&self.runs_crc.to_be_bytes());
        b.extend_from_slice(&self.states_crc.to_be_bytes());
        b.extend_from_slice(&[u8::from(self.has_states), 0, 0, 0]);
        let crc = crc32c(&[&b]);
        b.extend_from_slice(&crc.to_be_bytes());
        b.resize(BLOCK_LEN, 0);
        b
    }

    /// `None` when the bytes are not a footer of this segment that ends at `file_len`.
    pub(crate) fn decode(bytes: &[u8], uuid: Uuid, number: u32, file_len: u64) -> Option<Self> {
        let mut r = Reader(bytes);
        if r.take(4)? != MAGIC || r.u16()? != VERSION {
            return None;
        }
        r.u16()?;
        let footer = Self {
            uuid: r.uuid()?,
            number: r.u32()?,
            rows: r.u32()?,
            first_group: r.u64()?,
            last_group: r.u64()?,
            index_at: r.u64()?,
            runs: r.u32()?,
            states: r.u32()?,
            deletions: r.u32()?,
            runs_crc: r.u32()?,
            states_crc: r.u32()?,
            has_states: r.u8()? & 1 != 0,
        };
        r.take(3)?;
        let crc = r.u32()?;
        let fits = crc == crc32c(&[&bytes[..CRC_AT]])
            && footer.uuid == uuid
            && footer.number == number
            && footer.index_at <= file_len
            && footer.file_len() == file_len;
        fits.then_some(footer)
    }
}
