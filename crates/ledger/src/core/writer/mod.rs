//! The writer of one ledger (1.3 adding, 1.4 ensemble change, 1.5 close, R28 degraded mode).

mod add;
mod change;
mod close;
mod member;
mod op;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Duration};

use tidemill_types::{
    BookieId, Entry, EntryId, FragmentSeq, Incarnation, LedgerRecord, LedgerState, meta::EnsembleChange,
};

pub use self::{
    add::AddRefused,
    close::{CloseRefused, CloseState},
};
use self::{change::Change, close::Close, member::Member, op::Op};
use super::{AddAnswer, MetaOutcome, Rules, ranges::Ranges};

/// One send of one entry to one index. An ack counts for the attempt that it answers and for no other (R10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Fragment sequence that placed the bookie at its index.
    pub seq: FragmentSeq,
    /// The bookie's process.
    pub incarnation: Incarnation,
}

/// What happens to a writer.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// An answer to a [`Output::Send`].
    Answer {
        /// Index in the ensemble.
        index: u8,
        /// The bookie that answered.
        bookie: BookieId,
        /// The attempt that it answers.
        attempt: Attempt,
        /// The entry.
        entry: EntryId,
        /// The answer.
        answer: AddAnswer,
    },
    /// The bookie can be sent to (again).
    BookieUp {
        /// The bookie.
        bookie: BookieId,
        /// Its process.
        incarnation: Incarnation,
    },
    /// The bookie's connection is gone; its answers are dropped.
    BookieDown {
        /// The bookie.
        bookie: BookieId,
    },
    /// The delay of a [`Output::ResendLater`] is over.
    ResendDue {
        /// Index.
        index: u8,
        /// The attempt of the first send.
        attempt: Attempt,
        /// The entry.
        entry: EntryId,
    },
    /// Health says that these bookies should be replaced (R28); `spares` best first.
    Replace {
        /// Failed bookies; those that are no members are ignored.
        failed: &'a [BookieId],
        /// Bookies that may be newly named.
        spares: &'a [BookieId],
    },
    /// The bookie's cap of unacknowledged bytes is passed and there is no spare: acknowledged entries that it lacks are
    /// given up.
    Shed {
        /// The bookie.
        bookie: BookieId,
    },
    /// The outcome of [`Output::Propose`].
    ChangeOutcome(MetaOutcome),
    /// What [`Output::Propose`] asked for was not sent: no member of the quorum was reached. Health may ask again.
    ChangeNotSent,
    /// The outcome of the close command that the caller sent.
    CloseOutcome(MetaOutcome),
    /// The answer to [`Output::ReadRecord`]; `None`: the ledger does not exist any more.
    Record(Option<LedgerRecord>),
}

/// What a writer wants.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send the entry's bytes to a bookie.
    Send {
        /// Index in the ensemble.
        index: u8,
        /// The bookie at that index.
        bookie: BookieId,
        /// To be carried with the request and its answer.
        attempt: Attempt,
        /// The entry.
        entry: Entry,
    },
    /// Come back with [`Input::ResendDue`] after the delay.
    ResendLater {
        /// Index.
        index: u8,
        /// The attempt.
        attempt: Attempt,
        /// The entry.
        entry: EntryId,
        /// The bookie's wish; `None`: the driver's own pace.
        after: Option<Duration>,
    },
    /// Everything up to here is acknowledged, in order, for ever.
    Acknowledged {
        /// The new LAC.
        lac: EntryId,
    },
    /// The ensemble changed: say [`Input::BookieUp`] for those that are reachable.
    MembersChanged,
    /// Send this change; answer with [`Input::ChangeOutcome`].
    Propose(EnsembleChange),
    /// The change was settled as not applied; health may ask again.
    ChangeAborted,
    /// Read the record, linearizably, again until there is an answer; then [`Input::Record`].
    ReadRecord,
    /// The close can be sent: [`WriterCore::close_command`].
    CloseReady,
    /// The close is settled.
    CloseSettled(CloseState),
    /// Nothing more is acknowledged from this ledger (1.3 step 4).
    Fenced,
    /// Health asked for a replacement, there is none (R28).
    Degraded(BookieId),
    /// The member has everything again.
    Restored(BookieId),
    /// The ledger should be rolled.
    RollWanted,
    /// An answer to an attempt that is void was dropped.
    VoidAnswer,
    /// Copies with other bytes (R24).
    Divergent(BookieId, EntryId),
}

/// Where the writer stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Open,
    Changing(Change),
    Closing(Close),
    /// Closed with an end.
    Closed(EntryId),
    Fenced,
}

/// The writer.
#[derive(Clone, Debug, Hash)]
pub struct WriterCore {
    rules: Rules,
    max_changes: u32,
    record: LedgerRecord,
    members: Vec<Member>,
    /// Entries in memory: ids `first..=lap`.
    ops: VecDeque<Op>,
    first: EntryId,
    lac: EntryId,
    length: u64,
    lac_length: u64,
    under: Ranges,
    changes: u32,
    close_wanted: bool,
    roll_wanted: bool,
    phase: Phase,
}

impl WriterCore {
    /// A writer of a new, OPEN, empty ledger.
    #[must_use]
    pub fn new(record: LedgerRecord, max_changes: u32, rules: Rules) -> Self {
        let members = record
            .last_fragment()
            .map(|f| f.ensemble.iter().map(|b| Member::new(*b, record.fragment_seq)).collect())
            .unwrap_or_default();
        let phase = if record.state == LedgerState::Open { Phase::Open } else { Phase::Fenced };
        Self {
            rules,
            max_changes,
            record,
            members,
            ops: VecDeque::new(),
            first: EntryId::FIRST,
            lac: EntryId::NONE,
            length: 0,
            lac_length: 0,
            under: Ranges::default(),
            changes: 0,
            close_wanted: false,
            roll_wanted: false,
            phase,
        }
    }

    /// One step.
    pub fn step(&mut self, input: Input<'_>, out: &mut Vec<Output>) {
        match input {
            Input::Answer { index, bookie, attempt, entry, answer } => {
                self.on_answer(index, bookie, attempt, entry, answer, out);
            }
            Input::BookieUp { bookie, incarnation } => self.on_up(bookie, incarnation, out),
            Input::BookieDown { bookie } => self.on_down(bookie),
            Input::ResendDue { index, attempt, entry } => self.on_resend(index, attempt, entry, out),
            Input::Replace { failed, spares } => self.on_replace(failed, spares, out),
            Input::Shed { bookie } => self.on_shed(bookie, out),
            Input::ChangeOutcome(o) => self.on_change_outcome(o, out),
            Input::ChangeNotSent => self.on_change_not_sent(out),
            Input::CloseOutcome(o) => self.on_close_outcome(o, out),
            Input::Record(r) => self.on_record(r, out),
        }
    }

    /// A re-read arrived for whatever is unsettled.
    fn on_record(&mut self, record: Option<LedgerRecord>, out: &mut Vec<Output>) {
        match &self.phase {
            Phase::Changing(_) => self.on_change_record(record, out),
            Phase::Closing(_) => self.on_close_record(record, out),
            Phase::Open | Phase::Closed(_) | Phase::Fenced => {}
        }
    }

    /// 1.3 step 4: for good.
    fn stop(&mut self, out: &mut Vec<Output>) {
        if !self.is_stopped() {
            self.phase = Phase::Fenced;
            out.push(Output::Fenced);
        }
    }

    /// Fenced or closed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Fenced | Phase::Closed(_))
    }

    /// Whether the ledger was fenced.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.phase == Phase::Fenced
    }

    /// Whether a metadata command of this writer is not settled.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        matches!(&self.phase, Phase::Changing(_)) || matches!(&self.phase, Phase::Closing(c) if c.sent)
    }

    /// Whether an ensemble change is under way.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        matches!(&self.phase, Phase::Changing(_))
    }

    /// The record as this writer knows it.
    #[must_use]
    pub fn record(&self) -> &LedgerRecord {
        &self.record
    }

    /// Last add confirmed.
    #[must_use]
    pub fn lac(&self) -> EntryId {
        self.lac
    }

    /// Id of the next entry.
    #[must_use]
    pub fn next_entry(&self) -> EntryId {
        EntryId(self.first.0 + i64::try_from(self.ops.len()).unwrap_or(i64::MAX))
    }

    /// Envelope and body bytes of all entries.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes not acknowledged to the caller.
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        self.length - self.lac_length
    }

    /// Entries above the LAC, in order.
    pub fn pending(&self) -> impl Iterator<Item = &Entry> {
        let lac = self.lac;
        self.ops.iter().filter_map(|o| o.entry.as_ref()).filter(move |e| e.header().entry > lac)
    }

    /// Members of the current ensemble with the bytes that each has not acknowledged.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (BookieId, u64)> {
        self.members.iter().map(|m| (m.bookie, m.unacked))
    }

    fn op_mut(&mut self, entry: EntryId) -> Option<&mut Op> {
        usize::try_from(entry.0 - self.first.0).ok().and_then(|i| self.ops.get_mut(i))
    }

    fn op(&self, entry: EntryId) -> Option<&Op> {
        usize::try_from(entry.0 - self.first.0).ok().and_then(|i| self.ops.get(i))
    }

    fn full(&self) -> u8 {
        u8::MAX >> (8 - self.members.len().clamp(1, 8))
    }

    fn send(&self, index: usize, op: &Op, out: &mut Vec<Output>) {
        let (Some(m), Some(entry)) = (self.members.get(index), &op.entry) else { return };
        out.push(Output::Send {
            index: index_u8(index),
            bookie: m.bookie,
            attempt: m.attempt,
            entry: entry.clone(),
        });
    }
}

fn index_u8(i: usize) -> u8 {
    u8::try_from(i).unwrap_or(u8::MAX)
}

fn bit(index: usize) -> u8 {
    1u8.checked_shl(u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0)
}
