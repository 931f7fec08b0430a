//! An entry in memory.

use std::hash::{Hash, Hasher};

use tidemill_types::Entry;

/// Indexes are bits.
#[derive(Clone, Debug)]
pub(super) struct Op {
    /// `None` once it may leave memory; the slot stays until it is the oldest.
    pub(super) entry: Option<Entry>,
    /// Envelope and body bytes up to and with this entry.
    pub(super) cumulative: u64,
    /// Bytes on the wire.
    pub(super) len: u64,
    /// Indexes whose valid attempt was acknowledged.
    pub(super) acks: u8,
    /// Indexes that are not waited for any more: the entry is in `under`.
    pub(super) given_up: u8,
}

impl Op {
    /// Waits for this index.
    pub(super) fn misses(&self, bit: u8) -> bool {
        (self.acks | self.given_up) & bit == 0
    }
}

impl Hash for Op {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.entry.as_ref().map(|e| (e.header().entry, e.header().head_crc)).hash(h);
        (self.cumulative, self.acks, self.given_up).hash(h);
    }
}
