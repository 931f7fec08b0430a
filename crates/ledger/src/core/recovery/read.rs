//! 1.6 step 4: which entries may have been acknowledged.

use std::hash::{Hash, Hasher};

use tidemill_types::{BookieId, Entry, EntryId, quorum};

use super::{Abort, Output, Phase, Queue, RecoveryCore, bit, index_u8, ones};
use crate::core::ReadAnswer;

/// Answers about one entry.
#[derive(Clone, Debug, Default)]
struct Op {
    negative: u8,
    unknown: u8,
    found: Option<Entry>,
}

/// Reads under way, oldest undecided first.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The oldest undecided entry.
    next: EntryId,
    ops: Queue<Op>,
}

impl Default for Reading {
    fn default() -> Self {
        Self { next: EntryId::FIRST, ops: Queue::new() }
    }
}

impl Hash for Reading {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.next.hash(h);
        for o in &self.ops {
            (o.negative, o.unknown, o.found.as_ref().map(|e| e.header().head_crc)).hash(h);
        }
    }
}

impl Reading {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl RecoveryCore {
    pub(super) fn enter_read(&mut self, base: EntryId, out: &mut Vec<Output>) {
        self.phase = Phase::Read;
        self.reading.next = base.next();
        self.writing.written = base;
        for _ in 0..self.window {
            self.read_ahead(out);
        }
    }

    /// Asks for the next entry of the window, everybody in its write set, with the fence flag (R1).
    fn read_ahead(&mut self, out: &mut Vec<Output>) {
        let entry = EntryId(self.reading.next.0 + i64::try_from(self.reading.ops.len()).unwrap_or(i64::MAX));
        self.reading.ops.push_back(Op::default());
        for (i, bookie) in self.read_set(entry).into_iter().enumerate() {
            out.push(Output::Read { index: index_u8(i), bookie, entry, fence: self.rules.fence_reads });
        }
    }

    /// M4 only: undecided reads follow the new bookie.
    pub(super) fn ask_again(&mut self, index: usize, bookie: BookieId, out: &mut Vec<Output>) {
        let fence = self.rules.fence_reads;
        for (entry, op) in (self.reading.next.0..).map(EntryId).zip(&mut self.reading.ops) {
            op.negative &= !bit(index);
            op.unknown &= !bit(index);
            out.push(Output::Read { index: index_u8(index), bookie, entry, fence });
        }
    }

    /// R7: the frozen fragments, never the recoverer's own ensemble.
    fn read_set(&self, entry: EntryId) -> Vec<BookieId> {
        if !self.rules.frozen_reads {
            return self.writing.members.iter().map(|m| m.bookie).collect(); // M4
        }
        if !self.rules.start_at_last_fragment {
            return self.last_fragment().map(|f| f.ensemble.clone()).unwrap_or_default(); // M16
        }
        self.frozen
            .as_ref()
            .and_then(|r| r.fragment_of(entry))
            .map(|f| f.ensemble.clone())
            .unwrap_or_default()
    }

    pub(super) fn on_read(
        &mut self,
        index: u8,
        entry: EntryId,
        answer: ReadAnswer<Entry>,
        out: &mut Vec<Output>,
    ) {
        if self.end.is_some() {
            return;
        }
        let ledger = self.ledger;
        let Some(op) =
            usize::try_from(entry.0 - self.reading.next.0).ok().and_then(|i| self.reading.ops.get_mut(i))
        else {
            return;
        };
        let b = bit(usize::from(index));
        match answer {
            // A bookie cannot serve one entry as another: the driver checked the digest, this checks the names.
            ReadAnswer::Found(e) if e.header().ledger == ledger && e.header().entry == entry => {
                op.found.get_or_insert(e);
            }
            ReadAnswer::Negative(_) => {
                op.negative |= b;
                op.unknown &= !b;
            }
            ReadAnswer::Found(_) | ReadAnswer::Unknown(_) => {
                if self.rules.unknown_is_not_negative {
                    if op.negative & b == 0 {
                        op.unknown |= b;
                    }
                } else {
                    op.negative |= b; // M9
                }
            }
        }
        self.decide(out);
    }

    /// Decides in order, each as soon as a threshold is met (R3, R4, R5).
    fn decide(&mut self, out: &mut Vec<Output>) {
        while self.phase == Phase::Read && self.end.is_none() {
            let entry = self.reading.next;
            let set = self.read_set(entry).len();
            let needed = self
                .rules
                .negatives_needed
                .unwrap_or_else(|| quorum::quorum_coverage(set, self.ack_quorum()));
            let Some(op) = self.reading.ops.front_mut() else { return };
            if let Some(e) = op.found.take() {
                self.reading.ops.pop_front();
                self.reading.next = entry.next();
                self.read_ahead(out);
                self.write_back(e, out);
                continue;
            }
            match quorum::coverage(set, needed, ones(op.negative), ones(op.unknown)) {
                quorum::Coverage::Open => return,
                quorum::Coverage::Impossible if ones(op.negative | op.unknown) < set => return,
                quorum::Coverage::Impossible => return self.abort(Abort::Undecided(entry), out),
                quorum::Coverage::Reached => {
                    self.end = Some(entry.prev());
                    self.reading.ops.clear();
                    self.check_done(out);
                }
            }
        }
    }
}
