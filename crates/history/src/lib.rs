//! The history checker: what was sent and acknowledged, what was read, and what must not be.
//!
//! It is pure: whoever writes and reads records what it did in a [`History`], and [`check()`] names every contradiction.
//!
//! | what must hold | violation |
//! | --- | --- |
//! | an acknowledged record is read at the end | [`Fault::Lost`] |
//! | a record is there at most once, an unknown outcome included | [`Fault::Duplicate`] |
//! | a record that is surely not written is not there | [`Fault::Unwritten`] |
//! | records of one producer keep their order within a partition | [`Fault::Reordered`] |
//! | a record acknowledged before another was sent lies before it within a partition | [`Fault::Inverted`] |
//! | an acknowledgement names the place where the record is read | [`Fault::Elsewhere`] |
//! | every record that is read was sent | [`Fault::Phantom`] |
//! | the bytes of a record are those that were sent | [`Fault::Damaged`] |
//! | two reads of an offset give the same bytes | [`Fault::Differs`] |
//! | what one read passed over, the other does not find | [`Fault::Skipped`] |
//! | offsets rise within a read | [`Fault::Unordered`] |
//! | no offset is lost by the system's own account | [`Fault::Gap`] |
//! | a read comes to the end | [`Fault::Stuck`] |

mod check;
mod fault;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use check::{Report, check};
pub use fault::{Fault, Violation};

/// A record by its producer and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// Number of the producer, from 0.
    pub producer: u32,
    /// Number of its record, from 0.
    pub sequence: u32,
}

/// What became of a record that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written; the offset is absent when the system only remembers that it was.
    Acked {
        /// Where it was acknowledged.
        partition: u32,
        /// Where in the partition, when that is known.
        offset: Option<i64>,
        /// Taken after the acknowledgement came.
        at_ns: u64,
    },
    /// Surely not written.
    NotWritten,
    /// Perhaps written, at most once.
    Unknown,
}

/// A record that was sent. Times are of one monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Where it was sent to.
    pub partition: u32,
    /// Taken before it was sent.
    pub sent_ns: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What the bytes of a record that was read say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// They are those of this record.
    Intact(Id),
    /// They claim to be this record and are not its bytes.
    Damaged(Id),
    /// They are of no record of this history.
    Foreign,
}

/// A record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where.
    pub offset: i64,
    /// What its bytes say.
    pub body: Body,
    /// Of all its bytes, key, headers and times.
    pub digest: u64,
}

/// One reader's view of a partition, in the order in which it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What came.
    pub seen: Vec<Seen>,
    /// Offsets from 0 to here (exclusive) were read or passed over.
    pub end: i64,
    /// Lost by the system's own account: from, to (exclusive).
    pub gaps: Vec<(i64, i64)>,
    /// The read got nothing more although the partition goes on to here (exclusive). What lies behind `end` is then
    /// not known to be lost.
    pub stuck: Option<i64>,
}

/// All that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// By producer, by sequence.
    pub sent: Vec<Vec<Sent>>,
    /// By partition: what was read while it was written.
    pub live: BTreeMap<u32, View>,
    /// By partition: what was read from the start when all was written.
    pub last: BTreeMap<u32, View>,
}

impl History {
    fn get(&self, id: Id) -> Option<&Sent> {
        self.sent.get(id.producer as usize)?.get(id.sequence as usize)
    }

    fn all(&self) -> impl Iterator<Item = (Id, &Sent)> {
        (0u32..).zip(&self.sent).flat_map(|(producer, list)| {
            (0u32..).zip(list).map(move |(sequence, sent)| (Id { producer, sequence }, sent))
        })
    }
}
