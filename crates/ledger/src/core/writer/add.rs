//! 1.3: adding entries.

use bytes::Bytes;
use tidemill_types::{BookieId, Entry, EntryError, EntryId};

use super::{Attempt, Op, Output, Phase, WriterCore, bit};
use crate::core::{AddAnswer, AttemptCheck};

/// Why an entry was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddRefused {
    /// Fenced or closed.
    #[error("the ledger takes no more entries")]
    Stopped,
    /// A close was begun.
    #[error("the ledger is being closed")]
    Closing,
    /// Breaks the format's limits.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

impl WriterCore {
    /// Steps 1: assigns the next id, encodes once with the current LAC (R12), sends the same bytes to all.
    ///
    /// # Errors
    /// [`AddRefused`]: nothing changed.
    pub fn add(
        &mut self,
        envelope: &[u8],
        body: &[Bytes],
        out: &mut Vec<Output>,
    ) -> Result<EntryId, AddRefused> {
        if self.is_stopped() {
            return Err(AddRefused::Stopped);
        }
        if self.close_wanted || matches!(self.phase, Phase::Closing(_)) {
            return Err(AddRefused::Closing);
        }
        let id = self.next_entry();
        let entry = Entry::encode(self.record.id, id, self.lac, self.length, envelope, body)?;
        self.length = entry.header().cumulative_length;
        let len = entry.bytes().len() as u64;
        let op = Op { cumulative: self.length, len, entry: Some(entry), acks: 0, given_up: 0 };
        for i in 0..self.members.len() {
            let m = &mut self.members[i];
            m.unacked += len;
            m.skipped |= m.leaving;
            if m.up && !m.leaving {
                self.send(i, &op, out);
            }
        }
        self.ops.push_back(op);
        Ok(id)
    }

    /// The body of the entry that was added last, as encoded: the very bytes that go to the bookies.
    #[must_use]
    pub fn last_body(&self) -> Option<Bytes> {
        self.ops.back().and_then(|op| op.entry.as_ref()).map(Entry::body)
    }

    pub(super) fn on_answer(
        &mut self,
        index: u8,
        bookie: BookieId,
        attempt: Attempt,
        entry: EntryId,
        answer: AddAnswer,
        out: &mut Vec<Output>,
    ) {
        if self.is_stopped() {
            return;
        }
        let i = usize::from(index);
        let Some(m) = self.members.get(i) else { return };
        // R10: step 2.
        let counts = match self.rules.attempts {
            AttemptCheck::Attempt => m.attempt == attempt && m.bookie == bookie,
            AttemptCheck::Name => m.bookie == bookie,
            AttemptCheck::Index => true,
        };
        match answer {
            // Also a Fenced of a void attempt: a replaced bookie refuses a first touch (R27) of a healthy ledger.
            _ if !counts => out.push(Output::VoidAnswer),
            AddAnswer::Fenced => self.stop(out),
            AddAnswer::Ok => self.on_ack(i, entry, out),
            AddAnswer::Overloaded { retry_after } => {
                out.push(Output::ResendLater { index, attempt, entry, after: Some(retry_after) });
            }
            AddAnswer::Conflict => {
                out.push(Output::Divergent(bookie, entry));
                self.stop(out);
            }
            // Step 5: the bookie's health decides, never the single add.
            AddAnswer::Unknown(_) => {
                out.push(Output::ResendLater { index, attempt, entry, after: None });
            }
        }
    }

    fn on_ack(&mut self, index: usize, entry: EntryId, out: &mut Vec<Output>) {
        let b = bit(index);
        let Some(op) = self.op_mut(entry) else { return };
        if op.acks & b != 0 {
            return;
        }
        let waited = op.misses(b);
        op.acks |= b;
        let len = op.len;
        if waited && let Some(m) = self.members.get_mut(index) {
            m.unacked = m.unacked.saturating_sub(len);
        }
        if entry > self.lac {
            self.advance(out);
        } else {
            self.release(entry, entry);
        }
        self.check_restored(index, out);
    }

    /// Step 3: moves the LAC in order of ids; the indexes that leave do not count (1.4 step 1, M21).
    pub(super) fn advance(&mut self, out: &mut Vec<Output>) {
        // 1.5, M24: from the moment a close may be sent the LAC stands still.
        if self.is_stopped() || (self.rules.lac_stands_at_close && matches!(self.phase, Phase::Closing(_))) {
            return;
        }
        let mut mask = self.full();
        if self.rules.only_staying_count {
            for (i, m) in self.members.iter().enumerate() {
                if m.leaving {
                    mask &= !bit(i);
                }
            }
        }
        let before = self.lac;
        while let Some(op) = self.op(self.lac.next()) {
            if (op.acks & mask).count_ones() < u32::from(self.record.ack_quorum) {
                break;
            }
            self.lac_length = op.cumulative;
            self.lac = self.lac.next();
        }
        if self.lac > before {
            out.push(Output::Acknowledged { lac: self.lac });
            self.release(before.next(), self.lac);
        }
    }

    /// Step 6: an acknowledged entry leaves memory when no index is waited for. Looks at `from..=to`, at most up to the LAC.
    pub(super) fn release(&mut self, from: EntryId, to: EntryId) {
        // While a change is under way the acks of leaving indexes may still be cleared, and the new bookie needs the entries.
        if matches!(self.phase, Phase::Changing(_)) {
            return;
        }
        let full = self.full();
        let mut id = from.max(self.first);
        while id <= to.min(self.lac) {
            if let Some(op) = self.op_mut(id).filter(|o| (o.acks | o.given_up) & full == full) {
                op.entry = None;
            }
            id = id.next();
        }
        while self.first <= self.lac && self.ops.front().is_some_and(|o| o.entry.is_none()) {
            self.ops.pop_front();
            self.first = self.first.next();
        }
    }
}
