//! The cookie: whose lane this is (R16). Replaced by a durable rename.

use tidemill_types::{BookieId, ClusterId, Incarnation, MemberId};

use super::codec::{BadFrame, Reader, frame, unframe};

pub(crate) const NAME: &str = "cookie";
/// Longest cookie file, bytes.
pub(crate) const MAX_LEN: u64 = 64 << 10;
const MAGIC: [u8; 4] = *b"TMCK";
const VERSION: u16 = 1;
/// Most lanes of a bookie.
pub(crate) const MAX_LANES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) cluster: ClusterId,
    pub(crate) bookie: BookieId,
    /// The lane that this file stands in.
    pub(crate) lane: MemberId,
    /// Confirmed; `None` before the first boot got that far.
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) pending: Option<Incarnation>,
    pub(crate) limbo: bool,
    /// All lanes of the bookie, this one included.
    pub(crate) lanes: Vec<MemberId>,
}

impl Cookie {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = Vec::new();
        b.extend_from_slice(self.cluster.0.as_bytes());
        b.extend_from_slice(self.bookie.0.as_bytes());
        b.extend_from_slice(self.lane.0.as_bytes());
        b.extend_from_slice(&self.incarnation.map_or(0, |i| i.0).to_be_bytes());
        b.extend_from_slice(&self.pending.map_or(0, |i| i.0).to_be_bytes());
        b.push(u8::from(self.limbo));
        b.push(0);
        b.extend_from_slice(&u16::try_from(self.lanes.len()).unwrap_or(u16::MAX).to_be_bytes());
        for lane in &self.lanes {
            b.extend_from_slice(lane.0.as_bytes());
        }
        frame(MAGIC, VERSION, &b)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadFrame> {
        Self::body(unframe(MAGIC, VERSION, bytes)?).ok_or(BadFrame::Body)
    }

    fn body(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        let some = |i: u64| (i != 0).then_some(Incarnation(i));
        let cluster = ClusterId(r.uuid()?);
        let bookie = MemberId(r.uuid()?);
        let lane = MemberId(r.uuid()?);
        let incarnation = some(r.u64()?);
        let pending = some(r.u64()?);
        let flags = r.u8()?;
        let zero = r.u8()?;
        let count = usize::from(r.u16()?);
        if flags > 1 || zero != 0 || count > MAX_LANES {
            return None;
        }
        let lanes = (0..count).map(|_| r.uuid().map(MemberId)).collect::<Option<Vec<_>>>()?;
        r.0.is_empty().then_some(Self {
            cluster,
            bookie,
            lane,
            incarnation,
            pending,
            limbo: flags == 1,
            lanes,
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn round_trip_and_golden_length() {
        let id = |n| Uuid::from_u128(n);
        let c = Cookie {
            cluster: ClusterId(id(1)),
            bookie: MemberId(id(2)),
            lane: MemberId(id(3)),
            incarnation: Some(Incarnation(7)),
            pending: None,
            limbo: true,
            lanes: vec![MemberId(id(3)), MemberId(id(4))],
        };
        let bytes = c.encode();
        assert_eq!(bytes.len(), 12 + 68 + 2 * 16 + 4);
        assert_eq!(&bytes[..4], b"TMCK");
        assert_eq!(Cookie::decode(&bytes), Ok(c));
    }
}
