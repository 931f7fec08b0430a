//! The control file of a lane: which segments it is made of. A segment that is named and not there is a loss; one that is there and not named
//! is left over from a crash. Replaced by a durable rename.

use std::collections::BTreeMap;

use tidemill_types::MemberId;
use uuid::Uuid;

use super::codec::{BadFrame, Reader, frame, unframe};

pub(crate) const NAME: &str = "control";
/// Longest control file: two million segments.
pub(crate) const MAX_LEN: u64 = 64 << 20;
const MAGIC: [u8; 4] = *b"TMCT";
const VERSION: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) uuid: Uuid,
    /// Its footer is durable: one that cannot be read is damage.
    pub(crate) sealed: bool,
    /// Made by rewriting: its groups stand outside the numbering of the lane.
    pub(crate) rewritten: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) lane: MemberId,
    /// Numbers below this were given away.
    pub(crate) next_number: u32,
    pub(crate) segments: BTreeMap<u32, Listed>,
}

impl Control {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = Vec::new();
        b.extend_from_slice(self.lane.0.as_bytes());
        b.extend_from_slice(&self.next_number.to_be_bytes());
        b.extend_from_slice(&u32::try_from(self.segments.len()).unwrap_or(u32::MAX).to_be_bytes());
        for (number, s) in &self.segments {
            b.extend_from_slice(&number.to_be_bytes());
            b.extend_from_slice(s.uuid.as_bytes());
            b.push(u8::from(s.sealed) | u8::from(s.rewritten) << 1);
        }
        frame(MAGIC, VERSION, &b)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadFrame> {
        Self::body(unframe(MAGIC, VERSION, bytes)?).ok_or(BadFrame::Body)
    }

    fn body(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        let lane = MemberId(r.uuid()?);
        let next_number = r.u32()?;
        let count = r.u32()?;
        let mut segments = BTreeMap::new();
        for _ in 0..count {
            let number = r.u32()?;
            let uuid = r.uuid()?;
            let flags = r.u8()?;
            if flags > 3 || number >= next_number {
                return None;
            }
            let listed = Listed { uuid, sealed: flags & 1 != 0, rewritten: flags & 2 != 0 };
            segments.insert(number, listed);
        }
        r.0.is_empty().then_some(Self { lane, next_number, segments })
    }
}

/// File name of a segment.
pub(crate) fn segment_name(number: u32) -> String {
    format!("{number:08x}.seg")
}

/// The number in a segment's file name.
pub(crate) fn segment_number(name: &str) -> Option<u32> {
    let hex = name.strip_suffix(".seg")?;
    if hex.len() != 8 {
        return None;
    }
    u32::from_str_radix(hex, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let listed = |n, sealed, rewritten| Listed { uuid: Uuid::from_u128(n), sealed, rewritten };
        let c = Control {
            lane: MemberId(Uuid::from_u128(9)),
            next_number: 8,
            segments: BTreeMap::from([(1, listed(1, true, true)), (7, listed(2, false, false))]),
        };
        assert_eq!(Control::decode(&c.encode()), Ok(c));
        assert_eq!(segment_number(&segment_name(0x1234)), Some(0x1234));
        assert_eq!(segment_number("cookie"), None);
    }
}
