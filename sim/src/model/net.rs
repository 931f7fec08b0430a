//! Messages under way: a set, in no order.

use std::{hash::Hash, sync::Arc};

use tidemill_ledger::core::writer::Attempt;
use tidemill_types::{
    Entry, EntryId,
    meta::{CloseLedger, EnsembleChange},
};

use crate::hash::Print;

/// Number of a bookie.
pub type Who = u8;

/// A message.
#[derive(Clone, Debug)]
pub enum Msg {
    /// Writer to bookie.
    Add {
        /// To.
        bookie: Who,
        /// Index.
        index: u8,
        /// Attempt.
        attempt: Attempt,
        /// What.
        entry: Entry,
    },
    /// Bookie to writer.
    Added {
        /// From.
        bookie: Who,
        /// Index.
        index: u8,
        /// Attempt.
        attempt: Attempt,
        /// Which.
        entry: EntryId,
        /// Ok, or fenced.
        ok: bool,
    },
    /// Recoverer to bookie.
    Fence {
        /// Recoverer.
        r: u8,
        /// To.
        bookie: Who,
        /// Index.
        index: u8,
    },
    /// Bookie to recoverer.
    Fenced {
        /// Recoverer.
        r: u8,
        /// Index.
        index: u8,
        /// LAC.
        lac: EntryId,
    },
    /// Recoverer to bookie.
    Read {
        /// Recoverer.
        r: u8,
        /// To.
        bookie: Who,
        /// Index.
        index: u8,
        /// Which.
        entry: EntryId,
        /// With the fence flag.
        fence: bool,
    },
    /// Bookie to recoverer.
    Data {
        /// Recoverer.
        r: u8,
        /// Index.
        index: u8,
        /// Which.
        entry: EntryId,
        /// `None`: an explicit negative.
        found: Option<Entry>,
    },
    /// Recoverer to bookie: a recovery add.
    Write {
        /// Recoverer.
        r: u8,
        /// To.
        bookie: Who,
        /// Index.
        index: u8,
        /// Attempt.
        attempt: u32,
        /// What.
        entry: Entry,
    },
    /// Bookie to recoverer.
    Written {
        /// Recoverer.
        r: u8,
        /// Index.
        index: u8,
        /// Attempt.
        attempt: u32,
        /// Which.
        entry: EntryId,
    },
    /// Writer to the metadata. `detached`: nobody hears the answer.
    Change {
        /// What.
        change: EnsembleChange,
        /// Its outcome is unknown to the writer.
        detached: bool,
    },
    /// Writer to the metadata.
    WriterClose {
        /// What.
        close: CloseLedger,
        /// Its outcome is unknown to the writer.
        detached: bool,
    },
    /// Recoverer to the metadata.
    RecoverClose {
        /// Recoverer.
        r: u8,
        /// What.
        close: CloseLedger,
    },
}

impl Msg {
    /// Equal for equal messages.
    #[must_use]
    pub fn print(&self) -> u128 {
        let crc = |e: &Entry| (e.header().entry, e.header().head_crc);
        match self {
            Self::Add { bookie, index, attempt, entry } => {
                Print::of(&(0u8, bookie, index, attempt, crc(entry)))
            }
            Self::Added { bookie, index, attempt, entry, ok } => {
                Print::of(&(1u8, bookie, index, attempt, entry, ok))
            }
            Self::Fence { r, bookie, index } => Print::of(&(2u8, r, bookie, index)),
            Self::Fenced { r, index, lac } => Print::of(&(3u8, r, index, lac)),
            Self::Read { r, bookie, index, entry, fence } => {
                Print::of(&(4u8, r, bookie, index, entry, fence))
            }
            Self::Data { r, index, entry, found } => {
                Print::of(&(5u8, r, index, entry, found.as_ref().map(crc)))
            }
            Self::Write { r, bookie, index, attempt, entry } => {
                Print::of(&(6u8, r, bookie, index, attempt, crc(entry)))
            }
            Self::Written { r, index, attempt, entry } => Print::of(&(7u8, r, index, attempt, entry)),
            Self::Change { change: c, detached } => {
                Print::of(&(8u8, detached, c.version, c.first_entry, &c.ensemble))
            }
            Self::WriterClose { close: c, detached } => Print::of(&(9u8, detached, c.version, c.last_entry)),
            Self::RecoverClose { r, close: c } => {
                Print::of(&(10u8, r, c.version, c.last_entry, &c.fragments))
            }
        }
    }
}

/// The set.
#[derive(Clone, Debug, Default)]
pub struct Net(Vec<(u128, Arc<Msg>)>);

impl Net {
    /// Sends; the same message again changes nothing.
    pub fn send(&mut self, m: Msg) {
        let p = m.print();
        if let Err(at) = self.0.binary_search_by_key(&p, |(k, _)| *k) {
            self.0.insert(at, (p, Arc::new(m)));
        }
    }

    /// Takes the n-th out.
    pub fn take(&mut self, n: usize) -> Option<Msg> {
        (n < self.0.len()).then(|| {
            let m = self.0.remove(n).1;
            Arc::try_unwrap(m).unwrap_or_else(|m| (*m).clone())
        })
    }

    /// The n-th.
    #[must_use]
    pub fn get(&self, n: usize) -> Option<&Msg> {
        self.0.get(n).map(|(_, m)| &**m)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Msg> {
        self.0.iter().map(|(_, m)| &**m)
    }

    /// Forgets those that `keep` refuses.
    pub fn retain(&mut self, mut keep: impl FnMut(&Msg) -> bool) {
        self.0.retain(|(_, m)| keep(m));
    }
}

impl Hash for Net {
    fn hash<H: std::hash::Hasher>(&self, h: &mut H) {
        for (p, _) in &self.0 {
            p.hash(h);
        }
        0u8.hash(h);
    }
}
