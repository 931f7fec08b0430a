//! What a record of a run carries: who wrote it, its number, bytes that follow from both, and a checksum.
//!
//! | offset | bytes | field, big-endian |
//! | --- | --- | --- |
//! | 0 | 8 | run |
//! | 8 | 4 | producer |
//! | 12 | 4 | sequence |
//! | 16 | n | filler, pseudo-random from the three; its length too |
//! | 16 + n | 8 | FNV-1a of all before |
//!
//! The key is the eight bytes of producer and sequence. Who reads a record makes its bytes again and compares them all.

use tidemill_client::ConsumedRecord;

use tidemill_history::{Body, Id};

/// Bytes of the checksum.
const SUM: usize = 8;
/// Smallest value.
pub(super) const MIN_BYTES: usize = 32;

/// Makes and recognises the values of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    /// Random, so that no other run's records are taken for this one's.
    pub(super) run: u64,
    /// Largest value, at least [`MIN_BYTES`].
    pub(super) max_bytes: usize,
}

/// The key of a record.
pub(super) fn key(id: Id) -> [u8; 8] {
    (u64::from(id.producer) << 32 | u64::from(id.sequence)).to_be_bytes()
}

impl Values {
    /// Replaces `out` by the value of a record.
    pub(super) fn make(&self, id: Id, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.run.to_be_bytes());
        out.extend_from_slice(&key(id));
        let mut state = self.run ^ u64::from_be_bytes(key(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let range = (self.max_bytes.saturating_sub(MIN_BYTES) as u64).saturating_add(1);
        let total = MIN_BYTES + usize::try_from(mix(&mut state) % range).unwrap_or(0);
        while out.len() < total - SUM {
            let bytes = mix(&mut state).to_be_bytes();
            let room = (total - SUM - out.len()).min(bytes.len());
            out.extend_from_slice(&bytes[..room]);
        }
        out.extend_from_slice(&fnv(FNV_BASIS, out).to_be_bytes());
    }

    /// What a record that was read is. `scratch` is overwritten.
    pub(super) fn recognise(&self, record: &ConsumedRecord, scratch: &mut Vec<u8>) -> Body {
        let value = record.value.as_deref().unwrap_or_default();
        let field = |from: usize| -> Option<[u8; 4]> { value.get(from..from + 4)?.try_into().ok() };
        let (Some(producer), Some(sequence)) = (field(8), field(12)) else { return Body::Foreign };
        if value[..8] != self.run.to_be_bytes() {
            return Body::Foreign;
        }
        let id = Id { producer: u32::from_be_bytes(producer), sequence: u32::from_be_bytes(sequence) };
        self.make(id, scratch);
        if scratch == value && record.key.as_deref() == Some(&key(id)[..]) && record.headers.is_empty() {
            Body::Intact(id)
        } else {
            Body::Damaged(id)
        }
    }
}

/// Digest of everything that a reader gets of a record.
pub(super) fn digest(record: &ConsumedRecord, append_time: i64) -> u64 {
    let mut sum = FNV_BASIS;
    for part in [record.key.as_deref(), record.value.as_deref()] {
        // None and empty differ, and no byte moves from one part to the next unseen.
        let length = part.map_or(u64::MAX, |p| p.len() as u64);
        sum = fnv(fnv(sum, &length.to_be_bytes()), part.unwrap_or_default());
    }
    for h in &record.headers {
        sum = fnv(fnv(sum, &(h.key.len() as u64).to_be_bytes()), &h.key);
        let length = h.value.as_ref().map_or(u64::MAX, |v| v.len() as u64);
        sum = fnv(fnv(sum, &length.to_be_bytes()), h.value.as_deref().unwrap_or_default());
    }
    fnv(fnv(sum, &record.timestamp.to_be_bytes()), &append_time.to_be_bytes())
}

/// FNV-1a, 64 bits: offset basis and prime of the published parameters.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn fnv(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, b| (sum ^ u64::from(*b)).wrapping_mul(FNV_PRIME))
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const VALUES: Values = Values { run: 77, max_bytes: 100 };

    fn record(id: Id) -> ConsumedRecord {
        let mut value = Vec::new();
        VALUES.make(id, &mut value);
        ConsumedRecord {
            offset: 0,
            timestamp: 1,
            key: Some(Bytes::copy_from_slice(&key(id))),
            value: Some(value.into()),
            headers: Vec::new(),
        }
    }

    fn recognise(record: &ConsumedRecord) -> Body {
        VALUES.recognise(record, &mut Vec::new())
    }

    #[test]
    fn what_was_made_is_recognised() {
        let mut lengths = std::collections::BTreeSet::new();
        for sequence in 0..500 {
            let id = Id { producer: 3, sequence };
            let r = record(id);
            lengths.insert(r.value.as_ref().unwrap().len());
            assert_eq!(recognise(&r), Body::Intact(id));
        }
        assert_eq!((lengths.first(), lengths.last()), (Some(&MIN_BYTES), Some(&100)));
        assert_eq!(fnv(FNV_BASIS, b"foobar"), 0x85944171f73967e8);
    }

    #[test]
    fn every_flipped_bit_shows() {
        let id = Id { producer: 1, sequence: 2 };
        let good = record(id);
        let value = good.value.clone().unwrap();
        for bit in 0..value.len() * 8 {
            let mut bytes = value.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let bad = ConsumedRecord { value: Some(bytes.into()), ..good.clone() };
            assert_ne!(recognise(&bad), Body::Intact(id), "bit {bit}");
            assert!(!matches!(recognise(&bad), Body::Intact(_)), "bit {bit}");
            assert_ne!(digest(&bad, 5), digest(&good, 5), "bit {bit}");
        }
    }

    #[test]
    fn keys_times_and_lengths_show() {
        let id = Id { producer: 1, sequence: 2 };
        let good = record(id);
        let no_key = ConsumedRecord { key: None, ..good.clone() };
        let short = ConsumedRecord { value: good.value.as_ref().map(|v| v.slice(..20)), ..good.clone() };
        assert_eq!((recognise(&no_key), recognise(&short)), (Body::Damaged(id), Body::Damaged(id)));
        let none = ConsumedRecord { value: None, ..good.clone() };
        let empty = ConsumedRecord { value: Some(Bytes::new()), ..good.clone() };
        assert_eq!((recognise(&none), recognise(&empty)), (Body::Foreign, Body::Foreign));
        let other = Values { run: 78, ..VALUES };
        assert_eq!(other.recognise(&good, &mut Vec::new()), Body::Foreign);
        let digests = [
            digest(&good, 5),
            digest(&good, 6),
            digest(&ConsumedRecord { timestamp: 2, ..good.clone() }, 5),
            digest(&none, 5),
            digest(&empty, 5),
            digest(&no_key, 5),
        ];
        let distinct: std::collections::HashSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
    }
}
