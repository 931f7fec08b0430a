//! Values and keys of a load.

use std::time::{Duration, Instant};

use bytes::Bytes;

/// Bytes that values are cut from.
const POOL: usize = 1 << 20;
/// Run and intended send time.
const STAMP: usize = 16;

/// Makes the values of one sender.
#[derive(Debug)]
pub(super) struct Payload {
    pool: Vec<u8>,
    value: Vec<u8>,
    stamp: Option<Stamp>,
}

/// What `bench e2e` writes into each value: the run and when it was due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    /// Random; records of other runs are not this one's.
    pub(super) run: u64,
    /// Times count from here.
    pub(super) begin: Instant,
}

impl Payload {
    /// Values of so many bytes, at least 16.
    pub(super) fn new(bytes: usize, stamp: Option<Stamp>) -> Self {
        // Xorshift (Marsaglia 2003), 64 bits; the same values in every run.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut digits = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            b"0123456789abcdef"[(state >> 60) as usize]
        };
        let pool = (0..POOL + bytes).map(|_| digits()).collect();
        Self { pool, value: vec![0; bytes], stamp }
    }

    /// The value of record `n`, which is due at `due`.
    pub(super) fn value(&mut self, n: u64, due: Instant) -> &[u8] {
        let bytes = self.value.len();
        let at = usize::try_from(n.wrapping_mul(bytes as u64 + 7) % POOL as u64).unwrap_or(0);
        self.value.copy_from_slice(&self.pool[at..at + bytes]);
        if let Some(stamp) = self.stamp {
            self.value[..STAMP].copy_from_slice(&stamp.bytes(due));
        }
        &self.value
    }
}

impl Stamp {
    fn bytes(&self, due: Instant) -> [u8; STAMP] {
        let ns = u64::try_from(due.saturating_duration_since(self.begin).as_nanos()).unwrap_or(u64::MAX);
        (u128::from(self.run) << 64 | u128::from(ns)).to_be_bytes()
    }

    /// When the record was due, from the beginning on; `None` for another run's.
    pub(super) fn read(&self, value: Option<&Bytes>) -> Option<Duration> {
        let stamp: [u8; STAMP] = value?.get(..STAMP)?.try_into().ok()?;
        let both = u128::from_be_bytes(stamp);
        let ns = u64::try_from(both & u128::from(u64::MAX)).ok()?;
        (both >> 64 == u128::from(self.run)).then(|| Duration::from_nanos(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_back() {
        let begin = Instant::now();
        let stamp = Stamp { run: u64::MAX - 1, begin };
        let due = Duration::from_nanos(1_234_567_890_123);
        let mut payload = Payload::new(16, Some(stamp));
        let value = Bytes::copy_from_slice(payload.value(9, begin + due));
        assert_eq!(stamp.read(Some(&value)), Some(due));
        assert_eq!(Stamp { run: 1, begin }.read(Some(&value)), None);
        assert_eq!(stamp.read(Some(&value.slice(..15))), None);
        assert_eq!(stamp.read(None), None);
    }

    #[test]
    fn values_have_their_size_and_differ() {
        for bytes in [16, 100, 1 << 20] {
            let mut payload = Payload::new(bytes, None);
            let one = payload.value(1, Instant::now()).to_vec();
            assert_eq!(one.len(), bytes);
            assert_ne!(one, payload.value(2, Instant::now()));
            assert_eq!(payload.value(u64::MAX, Instant::now()).len(), bytes);
        }
    }
}
