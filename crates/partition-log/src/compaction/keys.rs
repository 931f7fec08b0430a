//! The last offset of each key, within a byte budget.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use tidemill_types::Offset;

/// Longest key that stands in the map itself.
const INLINE: usize = 15;
/// First byte of a slot with a hash; those with a key have its length there.
const HASHED: u8 = 0xff;
/// Bytes of the table per slot: 16 of the key, 8 of the offset, 1 of control.
const SLOT_BYTES: u64 = 25;
/// Smallest table.
const LEAST_SLOTS: u64 = 64;

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is in the map.
    Known,
    /// The map is full, and it is a new key.
    Full,
}

/// The last offset of each key. Keys up to 15 bytes stand in the map as they are. Of longer ones it has 120 bits of two
/// SipHashes whose secret keys are drawn anew for every map: nobody can look for keys that collide, and among 10^9 keys a
/// chance collision has a probability below 10^-18. A short key never meets a hash: the first byte tells them apart.
#[derive(Debug)]
pub struct KeyMap<S = RandomState> {
    slots: HashMap<[u8; INLINE + 1], i64>,
    most: usize,
    hashers: [S; 2],
}

impl KeyMap {
    /// A map of at most `budget` bytes for about `expected` keys.
    #[must_use]
    pub fn new(budget: u64, expected: u64) -> Self {
        Self::with_hashers(budget, expected, [RandomState::new(), RandomState::new()])
    }
}

impl<S: BuildHasher> KeyMap<S> {
    /// As [`KeyMap::new`], with given secrets.
    #[must_use]
    pub fn with_hashers(budget: u64, expected: u64, hashers: [S; 2]) -> Self {
        let most = usize::try_from(most_keys(budget)).unwrap_or(usize::MAX);
        let expected = usize::try_from(expected).unwrap_or(usize::MAX).min(most);
        // Room at once: a table that grows has the old and the new one for a while.
        Self { slots: HashMap::with_capacity(expected), most, hashers }
    }

    fn slot(&self, key: &[u8]) -> [u8; INLINE + 1] {
        let mut slot = [0; INLINE + 1];
        if let Some(place) = slot.get_mut(1..=key.len()) {
            place.copy_from_slice(key);
            slot[0] = u8::try_from(key.len()).unwrap_or(HASHED);
        } else {
            let [a, b] = [0, 1].map(|i| self.hashers[i].hash_one(key).to_be_bytes());
            slot[..8].copy_from_slice(&a);
            slot[8..].copy_from_slice(&b);
            slot[0] = HASHED;
        }
        slot
    }

    /// Notes that `key` stands at `offset`. Offsets rise.
    pub fn put(&mut self, key: &[u8], offset: Offset) -> Put {
        let slot = self.slot(key);
        if let Some(last) = self.slots.get_mut(&slot) {
            *last = (*last).max(offset.0);
            return Put::Known;
        }
        if self.slots.len() >= self.most {
            return Put::Full;
        }
        self.slots.insert(slot, offset.0);
        Put::Known
    }

    /// Whether so many more keys surely fit. An empty map takes any batch: one batch is never split.
    #[must_use]
    pub fn has_room(&self, keys: usize) -> bool {
        self.slots.is_empty() || self.slots.len().saturating_add(keys) <= self.most
    }

    /// Lets the map pass its budget by these keys: those of one batch that came first.
    pub fn admit(&mut self, keys: usize) {
        self.most = self.most.max(self.slots.len().saturating_add(keys));
    }

    /// Whether a record with this key stands behind `offset`.
    #[must_use]
    pub fn is_replaced(&self, key: &[u8], offset: Offset) -> bool {
        self.slots.get(&self.slot(key)).is_some_and(|last| *last > offset.0)
    }

    /// Keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Keys that fit into so many bytes: the table has a power of two of slots, seven eighths of which are used.
fn most_keys(budget: u64) -> u64 {
    let fitting = (budget / SLOT_BYTES).max(LEAST_SLOTS);
    let slots = 1u64 << fitting.ilog2();
    slots / 8 * 7
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasherDefault, Hasher};

    use super::*;

    /// Every key has the same hash.
    #[derive(Default)]
    struct Same;

    impl Hasher for Same {
        fn finish(&self) -> u64 {
            7
        }
        fn write(&mut self, _: &[u8]) {}
    }

    #[test]
    fn the_last_offset_counts() {
        let mut m = KeyMap::new(1 << 20, 10);
        for (key, at) in [("a", 1), ("b", 2), ("a", 3), ("a longer key than fits a slot", 4)] {
            assert_eq!(m.put(key.as_bytes(), Offset(at)), Put::Known);
        }
        assert!(m.is_replaced(b"a", Offset(1)) && !m.is_replaced(b"a", Offset(3)));
        assert!(!m.is_replaced(b"b", Offset(2)) && !m.is_replaced(b"c", Offset(0)));
        assert!(!m.is_replaced(b"a longer key than fits a slot", Offset(4)));
        assert!(m.is_replaced(b"a longer key than fits a slot", Offset(0)));
        // Other lengths of the same bytes are other keys.
        assert!(!m.is_replaced(b"a\0", Offset(0)) && !m.is_replaced(b"", Offset(0)));
    }

    #[test]
    fn short_keys_need_no_hash_at_all() {
        let same = || BuildHasherDefault::<Same>::default();
        let mut m = KeyMap::with_hashers(1 << 20, 10, [same(), same()]);
        for n in 0..1_000u32 {
            m.put(n.to_string().as_bytes(), Offset(n.into()));
        }
        assert_eq!(m.len(), 1_000);
        assert!((0..1_000u32).all(|n| !m.is_replaced(n.to_string().as_bytes(), Offset(n.into()))));
        // A hash never looks like a short key.
        m.put(b"a longer key than fits a slot", Offset(5_000));
        assert_eq!(m.len(), 1_001);
    }

    #[test]
    fn the_budget_holds() {
        let mut m = KeyMap::new(25 * 1_024, 1 << 40);
        let most = 1_024 / 8 * 7;
        assert!((0..most).all(|n: u32| m.put(&n.to_be_bytes(), Offset(0)) == Put::Known));
        assert_eq!(m.put(b"new", Offset(1)), Put::Full);
        assert_eq!(m.put(&3u32.to_be_bytes(), Offset(9)), Put::Known, "a known key needs no room");
        assert!(!m.has_room(1) && m.slots.capacity() <= most as usize);
    }
}
