//! Members of the ensemble as the writer sees them: reachability, resends, giving up.

use tidemill_types::{BookieId, EntryId, FragmentSeq, Incarnation};

use super::{Attempt, Output, WriterCore, bit};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) bookie: BookieId,
    /// The attempt that is valid for this index now.
    pub(super) attempt: Attempt,
    /// Can be sent to.
    pub(super) up: bool,
    /// An ensemble change that replaces it was sent (1.4 step 1).
    pub(super) leaving: bool,
    /// Was not sent something while it was leaving.
    pub(super) skipped: bool,
    /// Should be replaced, no spare (R28).
    pub(super) degraded: bool,
    /// Bytes of entries in memory that it has not acknowledged.
    pub(super) unacked: u64,
}

impl Member {
    pub(super) fn new(bookie: BookieId, seq: FragmentSeq) -> Self {
        Self {
            bookie,
            attempt: Attempt { seq, incarnation: Incarnation(0) },
            up: false,
            leaving: false,
            skipped: false,
            degraded: false,
            unacked: 0,
        }
    }
}

impl WriterCore {
    /// Sends what the bookie lacks, under a new attempt when its process is another one.
    pub(super) fn on_up(&mut self, bookie: BookieId, incarnation: Incarnation, out: &mut Vec<Output>) {
        if self.is_stopped() {
            return;
        }
        for i in 0..self.members.len() {
            let m = &mut self.members[i];
            if m.bookie != bookie || (m.up && m.attempt.incarnation == incarnation) {
                continue;
            }
            m.up = true;
            m.attempt.incarnation = incarnation;
            self.send_missing(i, out);
            self.check_restored(i, out);
        }
    }

    pub(super) fn on_down(&mut self, bookie: BookieId) {
        for m in self.members.iter_mut().filter(|m| m.bookie == bookie) {
            m.up = false;
        }
    }

    /// Everything in memory that this index has not acknowledged, in order.
    pub(super) fn send_missing(&mut self, index: usize, out: &mut Vec<Output>) {
        let Some(m) = self.members.get(index) else { return };
        if !m.up {
            return;
        }
        if m.leaving {
            self.members[index].skipped = true;
            return;
        }
        for op in self.ops.iter().filter(|o| o.misses(bit(index))) {
            self.send(index, op, out);
        }
    }

    pub(super) fn on_resend(&mut self, index: u8, attempt: Attempt, entry: EntryId, out: &mut Vec<Output>) {
        let index = usize::from(index);
        if self.is_stopped() {
            return;
        }
        match self.members.get_mut(index) {
            Some(m) if m.up && m.attempt == attempt && m.leaving => {
                m.skipped = true;
                return;
            }
            Some(m) if m.up && m.attempt == attempt => {}
            _ => return,
        }
        if let Some(op) = self.op(entry).filter(|o| o.misses(bit(index))) {
            self.send(index, op, out);
        }
    }

    /// 1.3 step 6: acknowledged entries that the bookie lacks leave memory, their copy is the auditor's work.
    pub(super) fn on_shed(&mut self, bookie: BookieId, out: &mut Vec<Output>) {
        if self.is_stopped() {
            return;
        }
        let Some(index) = self.members.iter().position(|m| m.bookie == bookie) else { return };
        if self.give_up_below(index, self.lac.next()) {
            self.release(self.first, self.lac);
            self.want_roll(out);
        }
    }

    /// Gives up the copies at `index` of all acknowledged entries below `end`. True when there was one.
    pub(super) fn give_up_below(&mut self, index: usize, end: EntryId) -> bool {
        let (b, mut any) = (bit(index), false);
        let mut id = self.first;
        for op in &mut self.ops {
            if id >= end || id > self.lac {
                break;
            }
            if op.misses(b) {
                op.given_up |= b;
                self.under.insert(id);
                if let Some(m) = self.members.get_mut(index) {
                    m.unacked = m.unacked.saturating_sub(op.len);
                }
                any = true;
            }
            id = id.next();
        }
        any
    }

    pub(super) fn check_restored(&mut self, index: usize, out: &mut Vec<Output>) {
        if let Some(m) = self.members.get_mut(index)
            && m.degraded
            && m.up
            && m.unacked == 0
        {
            m.degraded = false;
            out.push(Output::Restored(m.bookie));
        }
    }

    /// Once per ledger.
    pub(super) fn want_roll(&mut self, out: &mut Vec<Output>) {
        if !self.roll_wanted {
            self.roll_wanted = true;
            out.push(Output::RollWanted);
        }
    }
}
