//! 1.6 steps 5 and 6: recoverable entries go back to Qa bookies, the same bytes, in order.

use std::hash::{Hash, Hasher};

use tidemill_types::{BookieId, Entry, EntryId, Fragment};

use super::{Abort, Output, Queue, RecoveryCore, Spare, bit, index_u8};
use crate::core::{AddAnswer, ranges::Ranges};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) bookie: BookieId,
    /// Goes up when the index is replaced: older answers are void (R10).
    pub(super) attempt: u32,
    /// Nobody takes its place.
    pub(super) given_up: bool,
    /// A spare was asked for.
    pub(super) asked: bool,
    /// Newly named by this recovery: its limbo count at the choice (R8).
    pub(super) limbo_count: Option<u32>,
}

#[derive(Clone, Debug)]
struct Op {
    entry: Entry,
    acks: u8,
}

/// Copies on their way back.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub(super) members: Vec<Member>,
    /// The recoverer's own fragments; stored only by the close (R8).
    pub(super) fragments: Vec<Fragment>,
    /// Everything up to here needs no more acks.
    pub(super) written: EntryId,
    /// Entries of which some index has not answered, in order; those up to `written` have Qa.
    ops: Queue<Op>,
    pub(super) under: Ranges,
    pub(super) last: Option<Entry>,
}

impl Default for Writing {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            fragments: Vec::new(),
            written: EntryId::NONE,
            ops: Queue::new(),
            under: Ranges::default(),
            last: None,
        }
    }
}

impl Hash for Writing {
    fn hash<H: Hasher>(&self, h: &mut H) {
        (&self.members, &self.fragments, self.written, &self.under).hash(h);
        for o in &self.ops {
            (o.entry.header().entry, o.entry.header().head_crc, o.acks).hash(h);
        }
    }
}

impl Writing {
    pub(super) fn clear(&mut self, members: Vec<Member>, fragments: Vec<Fragment>) {
        *self = Self { members, fragments, ..Self::default() };
    }

    fn op_mut(&mut self, entry: EntryId) -> Option<&mut Op> {
        let first = self.ops.front()?.entry.header().entry;
        self.ops.get_mut(usize::try_from(entry.0 - first.0).ok()?)
    }

    /// Entries that not every index has.
    pub(super) fn missing(&self, full: u8) -> Ranges {
        let mut under = self.under.clone();
        for o in self.ops.iter().filter(|o| o.acks & full != full) {
            under.insert(o.entry.header().entry);
        }
        under
    }
}

impl RecoveryCore {
    pub(super) fn full(&self) -> u8 {
        u8::MAX >> (8 - self.writing.members.len().clamp(1, 8))
    }

    /// R12: the bytes as they were read.
    pub(super) fn write_back(&mut self, entry: Entry, out: &mut Vec<Output>) {
        let entry = if self.rules.same_bytes { entry } else { self.re_encoded(entry) };
        self.writing.last = Some(entry.clone());
        if !self.rules.write_back {
            self.writing.written = entry.header().entry; // M13
            return;
        }
        for i in 0..self.writing.members.len() {
            self.send_copy(i, &entry, out);
        }
        self.writing.ops.push_back(Op { entry, acks: 0 });
        self.advance(out);
    }

    /// M12: as a recoverer does that encodes with its own moving LAC.
    fn re_encoded(&self, e: Entry) -> Entry {
        let h = *e.header();
        let before = h.cumulative_length - u64::from(h.envelope_len) - u64::from(h.body_len);
        Entry::encode(h.ledger, h.entry, h.entry.prev(), before, &e.envelope(), &[e.body()]).unwrap_or(e)
    }

    fn send_copy(&self, index: usize, entry: &Entry, out: &mut Vec<Output>) {
        let Some(m) = self.writing.members.get(index).filter(|m| !m.given_up) else { return };
        out.push(Output::WriteBack {
            index: index_u8(index),
            bookie: m.bookie,
            attempt: m.attempt,
            entry: entry.clone(),
        });
    }

    pub(super) fn on_written(
        &mut self,
        index: u8,
        attempt: u32,
        entry: EntryId,
        answer: AddAnswer,
        out: &mut Vec<Output>,
    ) {
        let i = usize::from(index);
        let Some(m) = self.writing.members.get_mut(i).filter(|m| m.attempt == attempt) else { return };
        match answer {
            AddAnswer::Ok => {
                if let Some(op) = self.writing.op_mut(entry) {
                    op.acks |= bit(i);
                }
                self.advance(out);
            }
            AddAnswer::Conflict => self.abort(Abort::Divergent(entry), out), // R24
            AddAnswer::Fenced | AddAnswer::Overloaded { .. } | AddAnswer::Unknown(_) => {
                if !m.given_up && !m.asked {
                    m.asked = true;
                    let bookie = m.bookie;
                    let ensemble = self.writing.members.iter().map(|m| m.bookie).collect();
                    out.push(Output::NeedSpare { index, bookie, attempt, ensemble });
                }
            }
        }
    }

    /// Step 6: a local change from the first entry on that is not safe yet.
    pub(super) fn on_spare(&mut self, index: u8, attempt: u32, spare: Option<Spare>, out: &mut Vec<Output>) {
        let i = usize::from(index);
        let taken = |s: &Spare, ms: &[Member]| ms.iter().any(|m| m.bookie == s.bookie);
        let spare = spare.filter(|s| !taken(s, &self.writing.members));
        let Some(m) = self.writing.members.get_mut(i).filter(|m| m.attempt == attempt && !m.given_up) else {
            return;
        };
        m.asked = false;
        let Some(spare) = spare else {
            m.given_up = true;
            return self.check_live(out);
        };
        *m = Member {
            bookie: spare.bookie,
            attempt: attempt + 1,
            given_up: false,
            asked: false,
            limbo_count: Some(spare.limbo_count),
        };
        let first = self.writing.written.next();
        let ensemble: Vec<BookieId> = self.writing.members.iter().map(|m| m.bookie).collect();
        // Entries below stay in the fragment before; what they lack is `under`.
        while let Some(op) = self.writing.ops.front().filter(|o| o.entry.header().entry < first) {
            if op.acks & self.full() != self.full() {
                self.writing.under.insert(op.entry.header().entry);
            }
            self.writing.ops.pop_front();
        }
        match self.writing.fragments.last_mut() {
            Some(f) if f.first_entry == first => f.ensemble = ensemble,
            _ => self.writing.fragments.push(Fragment { first_entry: first, ensemble, under: Vec::new() }),
        }
        out.push(Output::LocalChange(self.writing.fragments.clone()));
        if !self.rules.frozen_reads {
            self.ask_again(i, spare.bookie, out); // M4
        }
        let b = bit(i);
        let mut again = Vec::new();
        for op in &mut self.writing.ops {
            op.acks &= !b;
            again.push(op.entry.clone());
        }
        for e in &again {
            self.send_copy(i, e, out);
        }
    }

    /// Qa of the members have to be left.
    fn check_live(&mut self, out: &mut Vec<Output>) {
        let live = self.writing.members.iter().filter(|m| !m.given_up).count();
        if live < self.ack_quorum() {
            let entry = self.writing.written.next();
            self.abort(Abort::WriteBack(entry), out);
        }
    }

    fn advance(&mut self, out: &mut Vec<Output>) {
        let full = self.full();
        let qa = self.ack_quorum();
        loop {
            let next = self.writing.written.next();
            let safe = self.writing.op_mut(next).is_some_and(|o| o.acks.count_ones() as usize >= qa);
            if !safe {
                break;
            }
            self.writing.written = next;
        }
        while self
            .writing
            .ops
            .front()
            .is_some_and(|o| o.entry.header().entry <= self.writing.written && o.acks & full == full)
        {
            self.writing.ops.pop_front();
        }
        self.check_done(out);
    }
}
