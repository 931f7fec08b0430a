//! Bytes on disk: `docs/formats/segment.md` and `docs/formats/bookie-directory.md`, in code. Numbers are big-endian.

pub(crate) mod codec;
pub(crate) mod control;
pub(crate) mod cookie;
pub(crate) mod footer;
pub(crate) mod group;
pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod record;
pub(crate) mod scan;
pub(crate) mod states;
#[cfg(test)]
mod tests;

/// Everything that is synced apart starts on a block of its own, so that no write touches a block that holds synced bytes.
pub(crate) const BLOCK: u64 = 4096;
/// The same as a length in memory.
pub(crate) const BLOCK_LEN: usize = 4096;

/// The next block boundary at or above `at`.
pub(crate) fn block_up(at: u64) -> u64 {
    at.next_multiple_of(BLOCK)
}
