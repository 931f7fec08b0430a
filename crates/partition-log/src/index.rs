//! The `index` entry: sparse positions of a ledger's `data` entries, written when it is closed in order.
//!
//! All numbers are big-endian: version 1 (1 byte), flags 0 (1), number of positions (4), then each position in order:
//! entry id (8), base offset (8), largest timestamp of the partition up to and with that entry in ms (8). The first
//! position is the first `data` entry.

use bytes::Bytes;
use tidemill_types::{EntryId, Offset};

/// Most positions; above that every second one is left out.
pub const MAX_POSITIONS: usize = 16_384;
const VERSION: u8 = 1;
const HEAD: usize = 6;
const POSITION: usize = 24;
/// A position after so many bytes of data, at first.
const SPACING: u64 = 64 << 10;

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The entry.
    pub entry: EntryId,
    /// Offset of its first record.
    pub offset: Offset,
    /// Largest timestamp of all records up to and with it.
    pub max_timestamp_so_far_ms: i64,
}

/// Why bytes are no index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index entry is not readable: {0}")]
pub struct IndexError(&'static str);

/// Collects positions while a ledger is written.
#[derive(Clone, Debug)]
pub struct IndexBuilder {
    positions: Vec<Position>,
    spacing: u64,
    since: u64,
}

impl Default for IndexBuilder {
    fn default() -> Self {
        Self { positions: Vec::new(), spacing: SPACING, since: SPACING }
    }
}

impl IndexBuilder {
    /// Notes a `data` entry of so many bytes.
    pub fn note(&mut self, position: Position, bytes: u64) {
        if self.since >= self.spacing {
            if self.positions.len() == MAX_POSITIONS {
                let mut keep = false;
                self.positions.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.spacing *= 2;
            }
            self.positions.push(position);
            self.since = 0;
        }
        self.since += bytes;
    }

    /// Whether no `data` entry was noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The body of the entry.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut b = Vec::with_capacity(HEAD + POSITION * self.positions.len());
        b.extend_from_slice(&[VERSION, 0]);
        b.extend_from_slice(&u32::try_from(self.positions.len()).unwrap_or(u32::MAX).to_be_bytes());
        for p in &self.positions {
            for field in [p.entry.0, p.offset.0, p.max_timestamp_so_far_ms] {
                b.extend_from_slice(&field.to_be_bytes());
            }
        }
        b.into()
    }
}

/// A decoded index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    positions: Vec<Position>,
}

impl Index {
    /// Reads the body of an `index` entry.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn decode(body: &[u8]) -> Result<Self, IndexError> {
        let (head, rest) = body.split_first_chunk::<HEAD>().ok_or(IndexError("cut off"))?;
        if head[0] != VERSION || head[1] != 0 {
            return Err(IndexError("unknown version or flags"));
        }
        let count = u32::from_be_bytes([head[2], head[3], head[4], head[5]]) as usize;
        if count > MAX_POSITIONS || rest.len() != count * POSITION {
            return Err(IndexError("wrong length"));
        }
        let mut positions: Vec<Position> = Vec::with_capacity(count);
        for p in rest.as_chunks::<POSITION>().0 {
            let field = |i: usize| {
                let mut n = [0; 8];
                n.copy_from_slice(&p[i * 8..i * 8 + 8]);
                i64::from_be_bytes(n)
            };
            let p = Position {
                entry: EntryId(field(0)),
                offset: Offset(field(1)),
                max_timestamp_so_far_ms: field(2),
            };
            let follows = positions.last().is_none_or(|l| {
                l.entry < p.entry
                    && l.offset < p.offset
                    && l.max_timestamp_so_far_ms <= p.max_timestamp_so_far_ms
            });
            if p.entry.0 < 0 || p.offset.0 < 0 || !follows {
                return Err(IndexError("positions out of order"));
            }
            positions.push(p);
        }
        Ok(Self { positions })
    }

    /// Entries between which the first one with an end above `offset` lies: `low..=high`, `high` `None` for the ledger's
    /// end.
    #[must_use]
    pub fn around_offset(&self, offset: Offset) -> (EntryId, Option<EntryId>) {
        self.around(self.positions.partition_point(|p| p.offset <= offset))
    }

    /// Entries between which the first one lies up to which a timestamp is at or above `ms`.
    #[must_use]
    pub fn around_time(&self, ms: i64) -> (EntryId, Option<EntryId>) {
        self.around(self.positions.partition_point(|p| p.max_timestamp_so_far_ms < ms))
    }

    fn around(&self, behind: usize) -> (EntryId, Option<EntryId>) {
        let low =
            behind.checked_sub(1).and_then(|i| self.positions.get(i)).map_or(EntryId::FIRST, |p| p.entry);
        (low, self.positions.get(behind).map(|p| p.entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(n: i64) -> Position {
        Position { entry: EntryId(n + 1), offset: Offset(n * 10), max_timestamp_so_far_ms: n / 2 }
    }

    fn index(n: i64) -> (IndexBuilder, Index) {
        let mut b = IndexBuilder::default();
        for i in 0..n {
            b.note(position(i), SPACING);
        }
        let i = Index::decode(&b.encode()).unwrap();
        (b, i)
    }

    #[test]
    fn golden_bytes_and_refusals() {
        let (b, _) = index(1);
        let hex: String = b.encode().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "010000000001000000000000000100000000000000000000000000000000");
        assert!(Index::decode(&b.encode()[1..]).is_err());
        assert!(Index::decode(&[2, 0, 0, 0, 0, 0]).is_err());
        let twice = [&[1, 0, 0, 0, 0, 2], &b.encode()[6..], &b.encode()[6..]].concat();
        assert!(Index::decode(&twice).is_err());
    }

    #[test]
    fn finds_the_entries_around() {
        let (_, i) = index(4);
        assert_eq!(i.around_offset(Offset(0)), (EntryId(1), Some(EntryId(2))));
        assert_eq!(i.around_offset(Offset(19)), (EntryId(2), Some(EntryId(3))));
        assert_eq!(i.around_offset(Offset(500)), (EntryId(4), None));
        assert_eq!(i.around_time(0), (EntryId(0), Some(EntryId(1))));
        assert_eq!(i.around_time(1), (EntryId(2), Some(EntryId(3))));
        assert_eq!(i.around_time(9), (EntryId(4), None));
    }

    #[test]
    fn stays_bounded() {
        let (b, i) = index(100_000);
        assert!(b.positions.len() <= MAX_POSITIONS && i.positions[0] == position(0));
    }
}
