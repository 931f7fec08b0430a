//! The file `scrub`: magic `TMSC`, version 1, in the frame of the small files. Body: lane uuid (16, zeros before the first segment), next
//! segment number (4), start of the pass (8, ms since the Unix epoch), 1 when the pass is done (1).

use std::{io, path::Path};

use tidemill_runtime::io::{Disk, read_all, replace_durably};
use tidemill_types::MemberId;
use uuid::Uuid;

use crate::format::codec::{Reader, frame, unframe};

pub(crate) const NAME: &str = "scrub";
const MAGIC: [u8; 4] = *b"TMSC";
const VERSION: u16 = 1;
const MAX_LEN: u64 = 4096;

/// Where a pass stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubPosition {
    /// Lane of the segment that is next; `None`: the first one.
    pub lane: Option<MemberId>,
    /// Number of the segment that is next, or below it.
    pub segment: u32,
    /// When the pass began, ms since the Unix epoch.
    pub started_ms: i64,
    /// Everything was read.
    pub done: bool,
}

impl ScrubPosition {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = Vec::with_capacity(29);
        b.extend_from_slice(self.lane.map_or(Uuid::nil(), |l| l.0).as_bytes());
        b.extend_from_slice(&self.segment.to_be_bytes());
        b.extend_from_slice(&self.started_ms.to_be_bytes());
        b.push(u8::from(self.done));
        frame(MAGIC, VERSION, &b)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(unframe(MAGIC, VERSION, bytes).ok()?);
        let lane = r.uuid()?;
        let position = Self {
            lane: (!lane.is_nil()).then_some(MemberId(lane)),
            segment: r.u32()?,
            started_ms: r.i64()?,
            done: r.u8()? == 1,
        };
        r.0.is_empty().then_some(position)
    }
}

/// `None`: there is none, or it cannot be understood; a pass then begins at the first segment.
pub(super) fn load(disk: &dyn Disk, dir: &Path) -> Option<ScrubPosition> {
    match read_all(disk, &dir.join(NAME), MAX_LEN) {
        Ok(bytes) => ScrubPosition::decode(&bytes?),
        Err(error) => {
            tracing::debug!(%error, "the position of the scrub cannot be read");
            None
        }
    }
}

pub(super) fn save(disk: &dyn Disk, dir: &Path, at: &ScrubPosition) -> io::Result<()> {
    replace_durably(disk, &dir.join(NAME), &at.encode()).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let lane = Some(MemberId(Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10)));
        let p = ScrubPosition { lane, segment: 7, started_ms: 9, done: true };
        let bytes = p.encode();
        let hex: String = bytes[..41].iter().map(|b| format!("{b:02x}")).collect();
        let head = "544d5343000100000000001d";
        assert_eq!(hex, format!("{head}0102030405060708090a0b0c0d0e0f1000000007000000000000000901"));
        assert_eq!(ScrubPosition::decode(&bytes), Some(p));
        let none = ScrubPosition::default();
        assert_eq!(ScrubPosition::decode(&none.encode()), Some(none));
        for cut in 0..bytes.len() {
            assert_eq!(ScrubPosition::decode(&bytes[..cut]), None);
        }
    }
}
