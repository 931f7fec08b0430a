//! Which partition a key belongs to.

use std::num::NonZeroU32;

/// Murmur2 in 32 bits with the seed of Kafka's default partitioner, so that keyed data lands alike.
///
/// Source: Austin Appleby's MurmurHash2; seed 0x9747b28c, words little-endian.
#[must_use]
pub fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;

    // The length enters as 32 bits, also for more than 4 GiB.
    #[expect(clippy::cast_possible_truncation, reason = "the algorithm takes the low 32 bits of the length")]
    let mut h = SEED ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (i, b) in rest.iter().enumerate() {
            h ^= u32::from(*b) << (8 * i);
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

/// The partition of a key in a topic of so many partitions: the hash without its sign bit, modulo the count.
#[must_use]
pub fn partition_for_key(key: &[u8], partitions: NonZeroU32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partitions
}
