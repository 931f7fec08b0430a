//! Snapshot of the producers: the body of `state` entries, in bounded pieces.
//!
//! All numbers are big-endian. A piece:
//!
//! | size | field |
//! | ---: | --- |
//! | 1 | version, 1 |
//! | 1 | flags, 0 |
//! | 4 | index of the piece, from 0 |
//! | 4 | number of pieces, at least 1 |
//! | 4 | producers in this piece, then each of them |
//!
//! A producer: id (8), epoch (2), number of batches 1..=5 (1), then each batch in order: first sequence (4), last
//! sequence (4), offset (8), append time in ms (8). Producers stand in order of their ids over all pieces.

use bytes::Bytes;
use tidemill_runtime::defaults::PRODUCER_BATCHES;
use tidemill_types::Offset;

use super::{Known, MAX_PRODUCERS, Producers};

/// Most bytes of a piece.
pub const MAX_PIECE_BYTES: usize = 256 << 10;
/// Most pieces of a snapshot: the most producers of the largest encoding.
pub const MAX_PIECES: u32 = 1_024;
const VERSION: u8 = 1;
const HEAD: usize = 14;
const PRODUCER: usize = 11;
const BATCH: usize = 24;

/// Why bytes are no snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes end too early.
    #[error("state entry is cut off")]
    Truncated,
    /// Bytes behind the last producer.
    #[error("bytes follow the end of the state entry")]
    Trailing,
    /// Not known.
    #[error("state entry version {0} is not known")]
    Version(u8),
    /// A field outside what is allowed.
    #[error("state entry field {field} is {value}")]
    Field {
        /// Which.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// Pieces that do not belong together.
    #[error("piece {found} of a snapshot stands where piece {expected} was expected")]
    Order {
        /// Index that follows.
        expected: u32,
        /// Index that came.
        found: u32,
    },
}

impl Producers {
    /// The snapshot as of `as_of`: only batches below it. At least one piece, each at most [`MAX_PIECE_BYTES`] long.
    #[must_use]
    pub fn snapshot(&self, as_of: Offset) -> Vec<Bytes> {
        let mut ids: Vec<i64> = self.map.keys().copied().collect();
        ids.sort_unstable();
        let mut pieces: Vec<(u32, Vec<u8>)> = vec![(0, vec![0; HEAD])];
        for id in ids {
            let Some(known) = self.map.get(&id) else { continue };
            let below = known.iter().take_while(|k| k.offset < as_of.0).count();
            let Some(epoch) = below.checked_sub(1).and_then(|i| known.get(i)).map(|k| k.epoch) else {
                continue;
            };
            let from = below.saturating_sub(PRODUCER_BATCHES);
            let batches: Vec<&Known> =
                known.iter().skip(from).take(below - from).filter(|k| k.epoch == epoch).collect();
            if pieces.last().is_none_or(|(_, p)| p.len() + PRODUCER + BATCH * batches.len() > MAX_PIECE_BYTES)
            {
                pieces.push((0, vec![0; HEAD]));
            }
            let Some((count, piece)) = pieces.last_mut() else { continue };
            *count += 1;
            piece.extend_from_slice(&id.to_be_bytes());
            piece.extend_from_slice(&epoch.to_be_bytes());
            piece.push(u8::try_from(batches.len()).unwrap_or(u8::MAX));
            for k in batches {
                piece.extend_from_slice(&k.first.to_be_bytes());
                piece.extend_from_slice(&k.last.to_be_bytes());
                piece.extend_from_slice(&k.offset.to_be_bytes());
                piece.extend_from_slice(&k.append_time_ms.to_be_bytes());
            }
        }
        let of = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        let seal = |(index, (count, mut piece)): (usize, (u32, Vec<u8>))| {
            piece[0] = VERSION;
            piece[2..6].copy_from_slice(&u32::try_from(index).unwrap_or(u32::MAX).to_be_bytes());
            piece[6..10].copy_from_slice(&of.to_be_bytes());
            piece[10..14].copy_from_slice(&count.to_be_bytes());
            Bytes::from(piece)
        };
        pieces.into_iter().enumerate().map(seal).collect()
    }
}

/// Puts pieces together.
#[derive(Debug, Default)]
pub struct SnapshotReader {
    producers: Producers,
    next: u32,
    of: u32,
    last_id: Option<i64>,
}

impl SnapshotReader {
    /// Index of a piece, and how many there are.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn place(piece: &[u8]) -> Result<(u32, u32), SnapshotError> {
        let mut c = Cursor(piece);
        let [version, _] = c.take()?;
        let (index, of) = (u32::from_be_bytes(c.take()?), u32::from_be_bytes(c.take()?));
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        if index < of { Ok((index, of)) } else { Err(SnapshotError::Order { expected: 0, found: index }) }
    }

    /// Takes the next piece; true when it was the last one.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn add(&mut self, piece: &[u8]) -> Result<bool, SnapshotError> {
        let mut c = Cursor(piece);
        let [version, flags] = c.take()?;
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let field = |field, value| Err(SnapshotError::Field { field, value });
        if flags != 0 {
            return field("flags", flags.into());
        }
        let index = u32::from_be_bytes(c.take()?);
        let of = u32::from_be_bytes(c.take()?);
        let count = u32::from_be_bytes(c.take()?);
        if of == 0 || of > MAX_PIECES || (self.next > 0 && of != self.of) {
            return field("pieces", of.into());
        }
        if index != self.next || index >= of {
            return Err(SnapshotError::Order { expected: self.next, found: index });
        }
        if self.producers.len() + count as usize > MAX_PRODUCERS {
            return field("producers", count.into());
        }
        self.of = of;
        self.next += 1;
        for _ in 0..count {
            self.producer(&mut c)?;
        }
        if c.0.is_empty() { Ok(self.next == of) } else { Err(SnapshotError::Trailing) }
    }

    /// The producers, once [`SnapshotReader::add`] said that the last piece was there.
    #[must_use]
    pub fn finish(self) -> Producers {
        self.producers
    }

    fn producer(&mut self, c: &mut Cursor<'_>) -> Result<(), SnapshotError> {
        let field = |field, value| Err(SnapshotError::Field { field, value });
        let id = i64::from_be_bytes(c.take()?);
        let epoch = i16::from_be_bytes(c.take()?);
        let [n] = c.take()?;
        if id < 0 || self.last_id.is_some_and(|last| last >= id) {
            return field("producer id", id);
        }
        if epoch < 0 {
            return field("producer epoch", epoch.into());
        }
        if n == 0 || usize::from(n) > PRODUCER_BATCHES {
            return field("batches", n.into());
        }
        let mut known = std::collections::VecDeque::with_capacity(usize::from(n));
        for _ in 0..n {
            let first = i32::from_be_bytes(c.take()?);
            let last = i32::from_be_bytes(c.take()?);
            let offset = i64::from_be_bytes(c.take()?);
            let append_time_ms = i64::from_be_bytes(c.take()?);
            if first < 0 || last < 0 {
                return field("sequence", first.min(last).into());
            }
            if offset < known.back().map_or(0, |k: &Known| k.offset + 1) {
                return field("offset", offset);
            }
            known.push_back(Known { offset, append_time_ms, first, last, epoch, rebuilt: true });
        }
        self.last_id = Some(id);
        self.producers.map.insert(id, known);
        Ok(())
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(SnapshotError::Truncated)?;
        self.0 = rest;
        Ok(*head)
    }
}
