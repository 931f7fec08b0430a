//! The checkpoint in a footer: every ledger state that is not the default one, and the deletions that still hide records (R21).
//!
//! State, 24 bytes: ledger (8), flags (1; 1 = fenced), zeros (7), explicit LAC (8, -1 = none).
//! Deletion, 24 bytes: ledger (8), bound (4), home (4), zeros (8).

use std::collections::BTreeMap;

use super::codec::Reader;

/// Bytes of a state and of a deletion.
pub(crate) const ROW: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateRow {
    pub(crate) fenced: bool,
    pub(crate) explicit_lac: i64,
}

/// A collected ledger whose bytes still lie in segments below `bound`, `home` excepted: the segment that holds the collect record has
/// an index without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deletion {
    pub(crate) bound: u32,
    pub(crate) home: u32,
}

impl Deletion {
    pub(crate) fn hides(&self, segment: u32) -> bool {
        segment < self.bound && segment != self.home
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct States {
    pub(crate) ledgers: BTreeMap<u64, StateRow>,
    pub(crate) deletions: BTreeMap<u64, Deletion>,
}

impl States {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = Vec::with_capacity((self.ledgers.len() + self.deletions.len()) * ROW);
        for (ledger, s) in &self.ledgers {
            b.extend_from_slice(&ledger.to_be_bytes());
            b.extend_from_slice(&[u8::from(s.fenced), 0, 0, 0, 0, 0, 0, 0]);
            b.extend_from_slice(&s.explicit_lac.to_be_bytes());
        }
        for (ledger, d) in &self.deletions {
            b.extend_from_slice(&ledger.to_be_bytes());
            b.extend_from_slice(&d.bound.to_be_bytes());
            b.extend_from_slice(&d.home.to_be_bytes());
            b.extend_from_slice(&[0; 8]);
        }
        b
    }

    pub(crate) fn decode(bytes: &[u8], ledgers: u32, deletions: u32) -> Option<Self> {
        let mut r = Reader(bytes);
        let mut out = Self::default();
        for _ in 0..ledgers {
            let ledger = r.u64()?;
            let flags = r.u8()?;
            r.take(7)?;
            out.ledgers.insert(ledger, StateRow { fenced: flags & 1 != 0, explicit_lac: r.i64()? });
        }
        for _ in 0..deletions {
            let ledger = r.u64()?;
            out.deletions.insert(ledger, Deletion { bound: r.u32()?, home: r.u32()? });
            r.take(8)?;
        }
        r.0.is_empty().then_some(out)
    }
}
