//! 1.4: ensemble change.

use tidemill_types::{
    BookieId, EntryId, EntryRange, Fragment, LedgerRecord, LedgerState,
    meta::{EnsembleChange, Rejection},
};

use super::{Attempt, Output, Phase, WriterCore, bit, index_u8, member::Member};
use crate::core::MetaOutcome;

/// A change that was sent and is not settled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Change {
    first_entry: EntryId,
    ensemble: Vec<BookieId>,
    replaced: Vec<(u8, BookieId)>,
    /// What the command names as incomplete in the fragment before.
    under: Vec<EntryRange>,
    /// A send of it has an unknown outcome: it may still commit.
    unknown: bool,
    /// The answer was a definite "not applied"; the re-read only tells what to do next.
    refused: bool,
}

impl WriterCore {
    /// Steps 1-3. Without a spare nothing changes: the ledger is degraded (R28).
    pub(super) fn on_replace(&mut self, failed: &[BookieId], spares: &[BookieId], out: &mut Vec<Output>) {
        if self.phase != Phase::Open || self.close_wanted {
            return;
        }
        let mut ensemble: Vec<BookieId> = self.members.iter().map(|m| m.bookie).collect();
        let mut replaced = Vec::new();
        // R22: a repair's target holds this ledger fenced.
        let repair = self.record.repair.as_ref().map(|r| r.target);
        let mut free = spares.iter().filter(|s| Some(**s) != repair);
        for (i, m) in self.members.iter_mut().enumerate().filter(|(_, m)| failed.contains(&m.bookie)) {
            let spare =
                if self.changes < self.max_changes { free.find(|s| !ensemble.contains(s)) } else { None };
            if let Some(spare) = spare {
                replaced.push((index_u8(i), m.bookie));
                ensemble[i] = *spare;
            } else if !m.degraded {
                m.degraded = true;
                out.push(Output::Degraded(m.bookie));
            }
        }
        if self.changes >= self.max_changes && self.members.iter().any(|m| m.degraded) {
            self.want_roll(out);
        }
        if replaced.is_empty() {
            return;
        }
        for (i, _) in &replaced {
            if let Some(m) = self.members.get_mut(usize::from(*i)) {
                m.leaving = true;
            }
        }
        let under = self.under_before(self.lac.next());
        let change = Change {
            first_entry: self.lac.next(),
            ensemble,
            replaced,
            under,
            unknown: false,
            refused: false,
        };
        self.phase = Phase::Changing(change.clone());
        if !self.rules.change_after_commit {
            self.use_ensemble(&change, out); // M7
        }
        out.push(Output::Propose(self.change_command(&change)));
    }

    fn change_command(&self, c: &Change) -> EnsembleChange {
        EnsembleChange {
            ledger: self.record.id,
            version: self.record.version,
            first_entry: c.first_entry,
            ensemble: c.ensemble.clone(),
            replaced: c.replaced.clone(),
            under: c.under.clone(),
        }
    }

    /// Entries of the last fragment below `end` that were given up, or that a leaving index lacks and will never get.
    fn under_before(&self, end: EntryId) -> Vec<EntryRange> {
        let start = self.record.last_fragment().map_or(EntryId::FIRST, |f| f.first_entry);
        let leaving: Vec<u8> =
            self.members.iter().enumerate().filter(|(_, m)| m.leaving).map(|(i, _)| bit(i)).collect();
        let mut under = self.under.clone();
        for (id, op) in (self.first.0..end.0).map(EntryId).zip(&self.ops) {
            if leaving.iter().any(|b| op.misses(*b)) {
                under.insert(id);
            }
        }
        under.clip(start, end.prev())
    }

    pub(super) fn on_change_outcome(&mut self, outcome: MetaOutcome, out: &mut Vec<Output>) {
        let Phase::Changing(change) = &mut self.phase else { return };
        match outcome {
            MetaOutcome::Committed(record) => self.on_change_record(Some(record), out),
            // The session is gone: what an earlier try of the same request did is unknown.
            MetaOutcome::Rejected(Rejection::SessionExpired | Rejection::OutcomeUnknown)
            | MetaOutcome::Unknown => {
                change.unknown = true;
                out.push(Output::ReadRecord);
            }
            MetaOutcome::Rejected(_) => {
                change.refused = true;
                out.push(Output::ReadRecord);
            }
        }
    }

    /// The quorum was out of reach before the command left: settled as not applied, unless an earlier send of it is open.
    pub(super) fn on_change_not_sent(&mut self, out: &mut Vec<Output>) {
        let Phase::Changing(change) = &self.phase else { return };
        if change.unknown {
            out.push(Output::Propose(self.change_command(change)));
            return;
        }
        for m in &mut self.members {
            m.leaving = false;
        }
        self.settled(out);
    }

    /// 1.8: settles the change by a record that was read after its sending.
    pub(super) fn on_change_record(&mut self, record: Option<LedgerRecord>, out: &mut Vec<Output>) {
        let Phase::Changing(change) = self.phase.clone() else { return };
        let Some(record) = record.filter(|r| r.state == LedgerState::Open) else {
            return self.stop(out);
        };
        let there = record
            .last_fragment()
            .is_some_and(|f| f.first_entry == change.first_entry && f.ensemble == change.ensemble);
        if there {
            self.changes += 1;
            self.record = record;
            if self.rules.change_after_commit {
                self.use_ensemble(&change, out);
            }
            self.settled(out);
        } else if change.refused || record.version != self.record.version || !self.rules.settle_unknown {
            // Settled as not applied: all indexes count again, and health may ask for a new attempt.
            self.record = record;
            for m in &mut self.members {
                m.leaving = false;
            }
            out.push(Output::ChangeAborted);
            self.settled(out);
        } else {
            // M25: it may still commit. The same command again.
            out.push(Output::Propose(self.change_command(&change)));
        }
    }

    fn settled(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Open;
        self.advance(out);
        self.release(self.first, self.lac);
        for i in 0..self.members.len() {
            if self.members[i].up {
                self.send_missing_of_idle(i, out);
            }
            self.check_restored(i, out);
        }
        if self.close_wanted {
            self.enter_close(out);
        }
    }

    /// A member that was leaving and stays after all got nothing meanwhile.
    fn send_missing_of_idle(&mut self, index: usize, out: &mut Vec<Output>) {
        if std::mem::take(&mut self.members[index].skipped) {
            self.send_missing(index, out);
        }
    }

    /// Step 4, only after the commit: each replaced index starts anew for all entries from the fragment's start on.
    fn use_ensemble(&mut self, change: &Change, out: &mut Vec<Output>) {
        let seq = if self.rules.change_after_commit {
            self.record.fragment_seq
        } else {
            tidemill_types::FragmentSeq(self.record.fragment_seq.0 + 1)
        };
        let start = change.first_entry;
        for (i, _) in &change.replaced {
            let i = usize::from(*i);
            let Some(bookie) = change.ensemble.get(i) else { continue };
            // Below the new fragment nobody sends the missing copies any more.
            self.give_up_below(i, start);
            let mut id = self.first;
            let mut unacked = 0;
            for op in &mut self.ops {
                if id >= start {
                    if self.rules.clear_replaced_acks {
                        op.acks &= !bit(i);
                    }
                    op.given_up &= !bit(i);
                    if op.misses(bit(i)) {
                        unacked += op.len;
                    }
                }
                id = id.next();
            }
            self.members[i] = Member { unacked, ..Member::new(*bookie, seq) };
            self.members[i].attempt = Attempt { seq, incarnation: tidemill_types::Incarnation(0) };
        }
        for r in &change.under {
            self.under.remove(r.first, r.last); // stored with the change
        }
        out.push(Output::MembersChanged);
    }

    /// The fragments as this writer knows them.
    #[must_use]
    pub fn fragments(&self) -> &[Fragment] {
        &self.record.fragments
    }
}
