//! 128-bit fingerprints of states, and parts of a state that keep theirs.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    sync::Arc,
};

/// Two lanes of multiply-and-fold; the same in every process.
#[derive(Clone, Copy, Debug)]
pub struct Print {
    a: u64,
    b: u64,
}

impl Default for Print {
    fn default() -> Self {
        Self { a: 0x243f_6a88_85a3_08d3, b: 0x1319_8a2e_0370_7344 }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the fold takes both halves")]
fn fold(x: u64, y: u64) -> u64 {
    let p = u128::from(x) * u128::from(y);
    (p as u64) ^ ((p >> 64) as u64)
}

impl Print {
    /// The fingerprint of everything written.
    #[must_use]
    pub fn value(&self) -> u128 {
        let a = fold(self.a ^ 0xa409_3822_299f_31d0, 0x9e37_79b9_7f4a_7c15);
        let b = fold(self.b ^ 0x082e_fa98_ec4e_6c89, 0xc2b2_ae3d_27d4_eb4f);
        (u128::from(a) << 64) | u128::from(b)
    }

    /// Of one value.
    pub fn of<T: Hash + ?Sized>(t: &T) -> u128 {
        let mut p = Self::default();
        t.hash(&mut p);
        p.value()
    }
}

impl Hasher for Print {
    fn write(&mut self, bytes: &[u8]) {
        for c in bytes.chunks(8) {
            let mut w = [0; 8];
            w[..c.len()].copy_from_slice(c);
            self.write_u64(u64::from_le_bytes(w) ^ ((c.len() as u64) << 56));
        }
    }

    fn write_u64(&mut self, v: u64) {
        self.a = fold(self.a ^ v, 0x9fb2_1c65_1e98_df25).wrapping_add(self.b.rotate_left(17));
        self.b =
            fold(self.b ^ v.rotate_left(32), 0xd6e8_feb8_6659_fd93).wrapping_add(v ^ 0x5851_f42d_4c95_7f2d);
    }

    fn write_u8(&mut self, v: u8) {
        self.write_u64(u64::from(v) | 1 << 40);
    }

    fn write_u32(&mut self, v: u32) {
        self.write_u64(u64::from(v) | 1 << 41);
    }

    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }

    fn finish(&self) -> u64 {
        (self.value() >> 64) as u64
    }
}

/// For maps whose keys are fingerprints already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prehashed;

/// Takes the lower half of the key as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lower(u64);

impl BuildHasher for Prehashed {
    type Hasher = Lower;

    fn build_hasher(&self) -> Lower {
        Lower(0)
    }
}

impl Hasher for Lower {
    fn write(&mut self, bytes: &[u8]) {
        for c in bytes.chunks(8) {
            let mut w = [0; 8];
            w[..c.len()].copy_from_slice(c);
            self.0 ^= u64::from_le_bytes(w);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "half of a fingerprint is enough for a bucket")]
    fn write_u128(&mut self, v: u128) {
        self.0 = v as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A part of a state: shared until changed, with its fingerprint.
#[derive(Clone, Debug)]
pub struct Part<T> {
    value: Arc<T>,
    print: u128,
}

impl<T: Hash + Clone> Part<T> {
    /// A part.
    pub fn new(value: T) -> Self {
        Self { print: Print::of(&value), value: Arc::new(value) }
    }

    /// Changes it.
    pub fn edit<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let v = Arc::make_mut(&mut self.value);
        let r = f(v);
        self.print = Print::of(v);
        r
    }

    /// Its fingerprint.
    #[must_use]
    pub fn print(&self) -> u128 {
        self.print
    }
}

impl<T> std::ops::Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn fingerprints_of_small_values_differ() {
        let mut seen = HashSet::new();
        for a in 0u64..200 {
            for b in 0u8..50 {
                for c in [false, true] {
                    assert!(seen.insert(Print::of(&(a, b, c))));
                }
            }
        }
        assert_ne!(Print::of(&(1u64, 2u64)), Print::of(&(2u64, 1u64)));
        assert_ne!(Print::of(&vec![0u8; 3]), Print::of(&vec![0u8; 4]));
    }
}
