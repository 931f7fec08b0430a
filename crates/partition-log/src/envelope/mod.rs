//! The envelope: what stands in front of the body of every ledger entry of a partition, readable without the body.
//!
//! All numbers are big-endian; `docs/formats/envelope.md` is this table with the reasons.
//!
//! | offset | size | field |
//! | ---: | ---: | --- |
//! | 0 | 1 | version, 1 |
//! | 1 | 1 | kind: 1 `data`, 2 `state`, 3 `barrier`, 4 `index` |
//! | 2 | 2 | flags: bit 0 compacted, bit 1 clean (only with bit 0), the rest 0 |
//! | 4 | 4 | record count; 0 unless `data`; compacted: offsets from the first record to the last |
//! | 8 | 8 | base offset; unless `data`: the offset that the next record gets |
//! | 16 | 8 | append time, ms since the Unix epoch |
//! | 24 | 8 | largest timestamp of the entry's records, ms; -1 none |
//! | 32 | 8 | largest timestamp of all records of the partition up to and with this entry, ms; -1 none |
//! | 40 | 8 | entry id of the newest complete `state` snapshot before this entry in this ledger (its first piece); -1 none |
//! | 48 | 4 | length of the hashes, bytes; 0 (reserved for FIFO and dedup topics) |
//! | 52 | | hashes |

#[cfg(test)]
mod tests;

use bytes::Bytes;
use tidemill_types::{EntryId, Offset};

/// Bytes in front of the hashes.
pub const ENVELOPE_LEN: usize = 52;
/// Most bytes of hashes: 16 per record, and an envelope has at most [`tidemill_types::entry::MAX_ENVELOPE_LEN`].
pub const MAX_HASHES_LEN: u32 = tidemill_types::entry::MAX_ENVELOPE_LEN - 52;
/// Most records of one entry.
pub const MAX_RECORDS: u32 = i32::MAX.cast_unsigned();
const VERSION: u8 = 1;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Batches of producers.
    Data,
    /// A piece of a snapshot of the partition's state.
    State,
    /// Proof of ownership; no content.
    Barrier,
    /// Sparse index of the ledger.
    Index,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Self::Data => 1,
            Self::State => 2,
            Self::Barrier => 3,
            Self::Index => 4,
        }
    }

    fn from_byte(b: u8) -> Option<Self> {
        match b {
            1 => Some(Self::Data),
            2 => Some(Self::State),
            3 => Some(Self::Barrier),
            4 => Some(Self::Index),
            _ => None,
        }
    }
}

/// What key compaction made of the ledger that an entry stands in (2.7). All entries of a ledger say the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compaction {
    /// It is as it was written: every offset has its record.
    #[default]
    None,
    /// Written by a compaction, but behind the place up to which it looked for keys: to be looked through once more. Batches
    /// carry their own base offsets, as in all that a compaction writes.
    Rest,
    /// Of each key only the last record up to the end of the clean ledgers is there.
    Clean,
}

impl Compaction {
    fn flags(self) -> u16 {
        match self {
            Self::None => 0,
            Self::Rest => 1,
            Self::Clean => 3,
        }
    }

    fn from_flags(flags: u16) -> Option<Self> {
        [Self::None, Self::Rest, Self::Clean].into_iter().find(|c| c.flags() == flags)
    }
}

/// Why bytes are no envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Fewer bytes than the fields need.
    #[error("envelope has {have} bytes, {need} are needed")]
    Truncated {
        /// Bytes there.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
    /// Bytes behind the hashes.
    #[error("{0} bytes follow the envelope")]
    Trailing(usize),
    /// A version that this code does not know.
    #[error("envelope version {0} is not known")]
    Version(u8),
    /// A kind that this code does not know.
    #[error("entry kind {0} is not known")]
    Kind(u8),
    /// A field outside what is allowed.
    #[error("envelope field {field} is {value}")]
    Field {
        /// Which.
        field: &'static str,
        /// Its value.
        value: i64,
    },
}

/// The envelope of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What the entry is.
    pub kind: Kind,
    /// What key compaction made of the entry's ledger.
    pub compaction: Compaction,
    /// Records of a `data` entry, else 0. In a compacted ledger: offsets from its first record's place to its last one's.
    pub count: u32,
    /// Offset of the first record; without records the offset that the next record gets.
    pub base_offset: Offset,
    /// Append time, ms since the Unix epoch; never decreases along the chain.
    pub append_time_ms: i64,
    /// Largest timestamp of the entry's records, ms; -1 none.
    pub max_timestamp_ms: i64,
    /// Largest timestamp of all records up to and with this entry, ms; -1 none. Never decreases, so a search by time is a
    /// binary search whatever timestamps producers send.
    pub max_timestamp_so_far_ms: i64,
    /// First piece of the newest complete `state` snapshot before this entry in this ledger.
    pub state_entry: EntryId,
    /// Reserved: hashes of group and dedup ids of FIFO and dedup topics.
    pub hashes: Bytes,
}

impl Envelope {
    /// The offset behind the entry's records.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        Offset(self.base_offset.0.saturating_add(i64::from(self.count)))
    }

    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut b = Vec::with_capacity(ENVELOPE_LEN + self.hashes.len());
        b.extend_from_slice(&[VERSION, self.kind.byte()]);
        b.extend_from_slice(&self.compaction.flags().to_be_bytes());
        b.extend_from_slice(&self.count.to_be_bytes());
        for field in [
            self.base_offset.0,
            self.append_time_ms,
            self.max_timestamp_ms,
            self.max_timestamp_so_far_ms,
            self.state_entry.0,
        ] {
            b.extend_from_slice(&field.to_be_bytes());
        }
        let hashes = u32::try_from(self.hashes.len()).unwrap_or(u32::MAX);
        b.extend_from_slice(&hashes.to_be_bytes());
        b.extend_from_slice(&self.hashes);
        b.into()
    }

    /// Reads an envelope and checks every field.
    ///
    /// # Errors
    /// [`EnvelopeError`].
    pub fn decode(bytes: &Bytes) -> Result<Self, EnvelopeError> {
        let have = bytes.len();
        let Some((head, _)) = bytes.split_first_chunk::<ENVELOPE_LEN>() else {
            return Err(EnvelopeError::Truncated { have, need: ENVELOPE_LEN });
        };
        if head[0] != VERSION {
            return Err(EnvelopeError::Version(head[0]));
        }
        let kind = Kind::from_byte(head[1]).ok_or(EnvelopeError::Kind(head[1]))?;
        let flags = u16::from_be_bytes([head[2], head[3]]);
        let count = u32::from_be_bytes(at(head, 4));
        let number = |from| i64::from_be_bytes(at(head, from));
        let field = |field, value| Err(EnvelopeError::Field { field, value });
        let hashes_len = u32::from_be_bytes(at(head, 48));
        let Some(compaction) = Compaction::from_flags(flags) else { return field("flags", flags.into()) };
        if count > MAX_RECORDS || (kind == Kind::Data) != (count > 0) {
            return field("record count", count.into());
        }
        let base = number(8);
        if base < 0 || base > i64::MAX - i64::from(count) {
            return field("base offset", base);
        }
        if number(16) < 0 {
            return field("append time", number(16));
        }
        let (own, so_far) = (number(24), number(32));
        if own < -1 || (kind != Kind::Data && own != -1) {
            return field("max timestamp", own);
        }
        if so_far < own {
            return field("max timestamp so far", so_far);
        }
        if number(40) < -1 {
            return field("state entry", number(40));
        }
        if hashes_len > MAX_HASHES_LEN {
            return field("hashes", hashes_len.into());
        }
        let need = ENVELOPE_LEN + hashes_len as usize;
        if have < need {
            return Err(EnvelopeError::Truncated { have, need });
        }
        if have > need {
            return Err(EnvelopeError::Trailing(have - need));
        }
        Ok(Self {
            kind,
            compaction,
            count,
            base_offset: Offset(base),
            append_time_ms: number(16),
            max_timestamp_ms: own,
            max_timestamp_so_far_ms: so_far,
            state_entry: EntryId(number(40)),
            hashes: bytes.slice(ENVELOPE_LEN..),
        })
    }
}

fn at<const N: usize>(b: &[u8; ENVELOPE_LEN], from: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&b[from..from + N]);
    out
}
