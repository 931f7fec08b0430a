//! Idempotent producers of a partition (2.1): pure, no clock, no I/O.
//!
//! ```text
//!   offset ->        high watermark           as_of                end of what was judged
//!      | persisted batches | pushed, in a ledger | pushed, handed to no ledger |
//! ```
//! One list of batches per producer serves both levels: a batch below the high watermark is *persisted*, any other is
//! *pushed*, and a retry of a pushed one waits for its outcome (2.1.2). A snapshot is taken as of a place in the log and
//! leaves out everything that stands behind it, because that may never be written: claiming it would turn the retry of a
//! lost batch into a "duplicate".

mod codec;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use tidemill_record::BatchHeader;
use tidemill_runtime::defaults::PRODUCER_BATCHES;
use tidemill_types::Offset;

pub use codec::{MAX_PIECE_BYTES, MAX_PIECES, SnapshotError, SnapshotReader};

/// Most producers of one partition.
pub const MAX_PRODUCERS: usize = 1 << 20;

/// Identity and sequence numbers of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequenced {
    /// Producer id, from 0.
    pub id: i64,
    /// Epoch of the id.
    pub epoch: i16,
    /// Sequence of the first record.
    pub first: i32,
    /// Sequence of the last record; wraps from 2^31 - 1 to 0.
    pub last: i32,
}

impl Sequenced {
    /// Of a checked batch; `None` without a producer id, and for control batches.
    #[must_use]
    pub fn of(header: &BatchHeader) -> Option<Self> {
        let p = header.producer()?;
        (p.base_sequence >= 0).then(|| Self {
            id: p.id,
            epoch: p.epoch,
            first: p.base_sequence,
            last: p.last_sequence(header.last_offset_delta),
        })
    }
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It follows: append it.
    Append,
    /// It is in the log.
    Duplicate {
        /// Its offset of the first time.
        offset: Offset,
        /// Its append time of the first time, ms.
        append_time_ms: i64,
        /// Known from the log of an earlier owner.
        rebuilt: bool,
    },
    /// It was pushed and is not decided: wait for the batch that begins at `pushed`, then answer with `offset`.
    WaitFor {
        /// Offset of the pushed batch that holds it.
        pushed: Offset,
        /// Its offset, if that is written.
        offset: Offset,
        /// Its append time.
        append_time_ms: i64,
    },
    /// Written before; the offset is not remembered any more.
    OldDuplicate,
    /// A gap, or a part of a batch that was written.
    OutOfOrder {
        /// The sequence that is expected.
        expected: i32,
    },
    /// A newer epoch exists.
    Fenced {
        /// The newest.
        current: i16,
    },
    /// Nothing is known of the id (any more) and the sequence is not 0.
    UnknownProducer,
    /// It would follow, but somebody was told that it is not written and never will be.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    offset: i64,
    append_time_ms: i64,
    first: i32,
    last: i32,
    epoch: i16,
    rebuilt: bool,
}

/// All producers of a partition.
#[derive(Clone, Debug, Default)]
pub struct Producers {
    /// Never an empty list; batches in order of offset.
    map: HashMap<i64, VecDeque<Known>>,
    /// Newest epoch of producers from which nothing new is taken, and when that was said. Only in memory: a batch that another
    /// owner could still take was never sent to it.
    #[expect(
        clippy::box_collection,
        reason = "almost always absent: 8 bytes instead of 48 in every idle partition"
    )]
    closed: Option<Box<HashMap<i64, (i16, i64)>>>,
}

/// The sequence after `sequence`.
fn next(sequence: i32) -> i32 {
    sequence.wrapping_add(1) & i32::MAX
}

/// How far `b` is ahead of `a` on the ring of 2^31 sequences, in -2^30..2^30.
fn ahead(b: i32, a: i32) -> i32 {
    let d = b.wrapping_sub(a) & i32::MAX;
    if d > 1 << 30 { d.wrapping_sub(i32::MAX).wrapping_sub(1) } else { d }
}

impl Producers {
    /// Known producers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Judges a batch. `high_watermark` parts persisted from pushed; `expired_before` is the append time (ms) at or below
    /// which a producer's last batch makes it forgotten.
    #[must_use]
    pub fn judge(&self, b: &Sequenced, high_watermark: Offset, expired_before: i64) -> Verdict {
        match self.judge_open(b, high_watermark, expired_before) {
            Verdict::Append if self.is_closed(b) => Verdict::Closed,
            verdict => verdict,
        }
    }

    fn is_closed(&self, b: &Sequenced) -> bool {
        self.closed.as_ref().and_then(|c| c.get(&b.id)).is_some_and(|(epoch, _)| b.epoch <= *epoch)
    }

    /// Takes nothing new from this epoch of the producer and older ones any more. False when too many are closed.
    pub(crate) fn close(&mut self, id: i64, epoch: i16, now_ms: i64) -> bool {
        let closed = self.closed.get_or_insert_default();
        if closed.len() >= MAX_PRODUCERS && !closed.contains_key(&id) {
            return false;
        }
        let entry = closed.entry(id).or_insert((epoch, now_ms));
        *entry = (entry.0.max(epoch), now_ms);
        true
    }

    /// Whether something of the producer is remembered.
    pub(crate) fn knows(&self, id: i64, expired_before: i64) -> bool {
        self.map.get(&id).is_some_and(|k| last_time(k) > expired_before)
    }

    fn judge_open(&self, b: &Sequenced, high_watermark: Offset, expired_before: i64) -> Verdict {
        let known = self.map.get(&b.id).filter(|k| last_time(k) > expired_before);
        let Some(last) = known.and_then(VecDeque::back) else {
            return if b.first == 0 { Verdict::Append } else { Verdict::UnknownProducer };
        };
        if b.epoch < last.epoch {
            return Verdict::Fenced { current: last.epoch };
        }
        if b.epoch > last.epoch {
            return if b.first == 0 { Verdict::Append } else { Verdict::OutOfOrder { expected: 0 } };
        }
        let length = ahead(b.last, b.first);
        for k in known.into_iter().flatten().rev().take_while(|k| k.epoch == b.epoch) {
            let skip = ahead(b.first, k.first);
            if skip >= 0 && skip + length <= ahead(k.last, k.first) {
                let offset = Offset(k.offset + i64::from(skip));
                return if k.offset < high_watermark.0 {
                    Verdict::Duplicate { offset, append_time_ms: k.append_time_ms, rebuilt: k.rebuilt }
                } else {
                    Verdict::WaitFor { pushed: Offset(k.offset), offset, append_time_ms: k.append_time_ms }
                };
            }
        }
        let expected = next(last.last);
        if b.first == expected {
            Verdict::Append
        } else if ahead(b.first, expected) < 0 && ahead(b.last, expected) < 0 {
            Verdict::OldDuplicate
        } else {
            Verdict::OutOfOrder { expected }
        }
    }

    /// Notes a batch that is pushed at `offset`.
    pub fn push(&mut self, b: &Sequenced, offset: Offset, append_time_ms: i64, high_watermark: Offset) {
        self.note(b, offset, append_time_ms, high_watermark, false);
    }

    /// Notes a batch that stands in the log of an earlier owner (or of this one, before a restart).
    pub fn replay(&mut self, b: &Sequenced, offset: Offset, append_time_ms: i64) {
        self.note(b, offset, append_time_ms, Offset(i64::MAX), true);
    }

    fn note(&mut self, b: &Sequenced, offset: Offset, append_time_ms: i64, hwm: Offset, rebuilt: bool) {
        let known = self.map.entry(b.id).or_default();
        known.push_back(Known {
            offset: offset.0,
            append_time_ms,
            first: b.first,
            last: b.last,
            epoch: b.epoch,
            rebuilt,
        });
        let persisted = known.iter().take_while(|k| k.offset < hwm.0).count();
        let Some(epoch) = persisted.checked_sub(1).and_then(|i| known.get(i)).map(|k| k.epoch) else {
            return;
        };
        let older = known.iter().take_while(|k| k.epoch != epoch).count();
        known.drain(..older.max(persisted.saturating_sub(PRODUCER_BATCHES)));
    }

    /// Puts back what [`Producers::saved`] gave: a call of several batches was refused in its middle.
    pub(crate) fn restore(&mut self, saved: Saved) {
        for (id, known) in saved.0 {
            match known {
                Some(k) => self.map.insert(id, k),
                None => self.map.remove(&id),
            };
        }
    }

    /// What is known of these producers.
    pub(crate) fn saved(&self, ids: impl Iterator<Item = i64>) -> Saved {
        Saved(ids.map(|id| (id, self.map.get(&id).cloned())).collect())
    }

    /// Whether one more producer may be known.
    pub(crate) fn has_room_for(&self, id: i64) -> bool {
        self.map.len() < MAX_PRODUCERS || self.map.contains_key(&id)
    }

    /// Forgets producers whose last batch has an append time at or below `expired_before` (ms).
    pub fn expire(&mut self, expired_before: i64) {
        self.map.retain(|_, k| last_time(k) > expired_before);
        if let Some(closed) = &mut self.closed {
            closed.retain(|_, (_, at)| *at > expired_before);
            if closed.is_empty() {
                self.closed = None;
            }
        }
        if self.map.is_empty() {
            self.map = HashMap::new();
        }
    }
}

/// State of some producers at a moment.
pub(crate) struct Saved(Vec<(i64, Option<VecDeque<Known>>)>);

fn last_time(known: &VecDeque<Known>) -> i64 {
    known.back().map_or(i64::MIN, |k| k.append_time_ms)
}
