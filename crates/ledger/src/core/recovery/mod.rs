//! Recovery of one ledger (1.6): fences it, finds its end, writes the tail back, prepares the close.

mod close;
mod fence;
mod read;
#[cfg(test)]
mod tests;
mod write_back;

use std::{
    collections::VecDeque,
    hash::{Hash, Hasher},
};

use tidemill_types::{
    BookieId, Entry, EntryId, Fragment, LedgerId, LedgerRecord, LedgerState, Version, meta::CloseLedger,
};

use self::{read::Reading, write_back::Member, write_back::Writing};
use super::{AddAnswer, FenceAnswer, MetaOutcome, ReadAnswer, Rules};

/// A bookie that may take a failed one's place, with its limbo count at the choice (R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spare {
    /// The bookie.
    pub bookie: BookieId,
    /// Its limbo count.
    pub limbo_count: u32,
}

/// What happens to a recovery.
#[derive(Clone, Debug)]
pub enum Input {
    /// The answer to [`Output::ReadRecord`].
    Record(Option<LedgerRecord>),
    /// The outcome of [`Output::StartRecovery`].
    Started(MetaOutcome),
    /// A bookie's answer to the fence.
    Fenced {
        /// Index in the last fragment.
        index: u8,
        /// The answer.
        answer: FenceAnswer,
    },
    /// The answer to [`Output::Read`].
    Read {
        /// Index in the fragment.
        index: u8,
        /// The entry.
        entry: EntryId,
        /// The answer.
        answer: ReadAnswer<Entry>,
    },
    /// The answer to [`Output::WriteBack`].
    Written {
        /// Index.
        index: u8,
        /// The attempt that it answers (R10).
        attempt: u32,
        /// The entry.
        entry: EntryId,
        /// The answer.
        answer: AddAnswer,
    },
    /// The answer to [`Output::NeedSpare`]; `None`: there is none, go on without that member.
    Spare {
        /// Index.
        index: u8,
        /// The attempt that failed.
        attempt: u32,
        /// The choice.
        spare: Option<Spare>,
    },
    /// The outcome of the close that [`Output::Close`] asked for.
    Closed(MetaOutcome),
}

/// Why recovery gave up; the ledger stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abort {
    /// Fewer than EC bookies can confirm the fence.
    NotFenced,
    /// Neither threshold can be met for this entry (R4).
    Undecided(EntryId),
    /// Fewer than Qa bookies take this entry back.
    WriteBack(EntryId),
    /// Two copies of this entry differ (R24).
    Divergent(EntryId),
    /// The record breaks its own invariants.
    BadRecord,
}

/// What a recovery wants.
#[derive(Clone, Debug)]
pub enum Output {
    /// Read the record, linearizably.
    ReadRecord,
    /// Propose OPEN to IN_RECOVERY, conditional on the version.
    StartRecovery(Version),
    /// Fence and read the LAC.
    Fence {
        /// Index in the last fragment.
        index: u8,
        /// The bookie.
        bookie: BookieId,
    },
    /// Read one entry.
    Read {
        /// Index in the fragment.
        index: u8,
        /// The bookie.
        bookie: BookieId,
        /// The entry.
        entry: EntryId,
        /// With the fence flag (R1).
        fence: bool,
    },
    /// A recovery add of the entry's own bytes (R12).
    WriteBack {
        /// Index in the current local ensemble.
        index: u8,
        /// The bookie.
        bookie: BookieId,
        /// To be carried with the answer.
        attempt: u32,
        /// The entry.
        entry: Entry,
    },
    /// This member does not take the copies: [`Input::Spare`].
    NeedSpare {
        /// Index.
        index: u8,
        /// The bookie.
        bookie: BookieId,
        /// The attempt that failed.
        attempt: u32,
        /// The whole local ensemble.
        ensemble: Vec<BookieId>,
    },
    /// The local fragments changed; nothing is stored (R8). The model's M5 stores them.
    LocalChange(Vec<Fragment>),
    /// The end is decided and safe: close the ledger with it. `last` is the last entry when recovery read it.
    Close {
        /// What the command needs; `records` is 0.
        close: CloseLedger,
        /// The entry at the end.
        last: Option<Entry>,
    },
    /// CLOSED, by whomever, with this record's end.
    Done(LedgerRecord),
    /// The ledger does not exist.
    Gone,
    /// Nothing was decided.
    Abort(Abort),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Waits for the record.
    Record,
    /// Waits for the outcome of StartRecovery.
    Start,
    Fence,
    Read,
    /// Waits for the outcome of the close.
    Close,
    Over,
}

/// The recoverer.
#[derive(Clone, Debug)]
pub struct RecoveryCore {
    rules: Rules,
    /// Entries asked for ahead of the decision.
    window: usize,
    ledger: LedgerId,
    phase: Phase,
    /// Frozen at the start (R7).
    frozen: Option<LedgerRecord>,
    fence: fence::Fencing,
    reading: Reading,
    writing: Writing,
    end: Option<EntryId>,
}

impl RecoveryCore {
    /// A recovery; `window` entries are read ahead of the decision, at least 1.
    #[must_use]
    pub fn new(ledger: LedgerId, window: usize, rules: Rules) -> Self {
        Self {
            rules,
            window: window.max(1),
            ledger,
            phase: Phase::Record,
            frozen: None,
            fence: fence::Fencing::default(),
            reading: Reading::default(),
            writing: Writing::default(),
            end: None,
        }
    }

    /// The first output.
    pub fn start(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Record;
        out.push(Output::ReadRecord);
    }

    /// One step. Inputs that belong to an earlier phase are ignored.
    pub fn step(&mut self, input: Input, out: &mut Vec<Output>) {
        match (self.phase, input) {
            (Phase::Record | Phase::Close, Input::Record(r)) => self.on_record(r, out),
            (Phase::Start, Input::Started(o)) => self.on_started(o, out),
            (Phase::Fence, Input::Fenced { index, answer }) => self.on_fenced(index, answer, out),
            (Phase::Read, Input::Read { index, entry, answer }) => self.on_read(index, entry, answer, out),
            (Phase::Read, Input::Written { index, attempt, entry, answer }) => {
                self.on_written(index, attempt, entry, answer, out);
            }
            (Phase::Read, Input::Spare { index, attempt, spare }) => {
                self.on_spare(index, attempt, spare, out);
            }
            (Phase::Close, Input::Closed(o)) => self.on_closed(o, out),
            _ => {}
        }
    }

    /// Step 1. Also after a conflict: the start from scratch with what the record says now.
    fn on_record(&mut self, record: Option<LedgerRecord>, out: &mut Vec<Output>) {
        let Some(record) = record else {
            self.phase = Phase::Over;
            return out.push(Output::Gone);
        };
        match record.state {
            LedgerState::Closed => {
                self.phase = Phase::Over;
                out.push(Output::Done(record));
            }
            LedgerState::Open => {
                self.phase = Phase::Start;
                out.push(Output::StartRecovery(record.version));
            }
            LedgerState::InRecovery => self.enter_fence(record, out),
        }
    }

    fn on_started(&mut self, outcome: MetaOutcome, out: &mut Vec<Output>) {
        match outcome {
            MetaOutcome::Committed(record) => self.on_record(Some(record), out),
            // Harmless to repeat: the re-read tells.
            MetaOutcome::Rejected(_) | MetaOutcome::Unknown => self.start(out),
        }
    }

    fn abort(&mut self, why: Abort, out: &mut Vec<Output>) {
        self.phase = Phase::Over;
        out.push(Output::Abort(why));
    }

    /// Whether nothing more happens.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether it waits for a bookie's answer to this kind of request (used by the model to time them out).
    #[must_use]
    pub fn is_fencing(&self) -> bool {
        self.phase == Phase::Fence
    }

    /// Whether it reads and writes back.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.phase == Phase::Read
    }

    fn ack_quorum(&self) -> usize {
        self.frozen.as_ref().map_or(1, |r| usize::from(r.ack_quorum))
    }

    fn last_fragment(&self) -> Option<&Fragment> {
        self.frozen.as_ref().and_then(LedgerRecord::last_fragment)
    }
}

impl Hash for RecoveryCore {
    fn hash<H: Hasher>(&self, h: &mut H) {
        (self.phase, self.ledger, &self.frozen, &self.fence, &self.end).hash(h);
        self.reading.hash(h);
        self.writing.hash(h);
    }
}

type Queue<T> = VecDeque<T>;

fn index_u8(i: usize) -> u8 {
    u8::try_from(i).unwrap_or(u8::MAX)
}

fn bit(index: usize) -> u8 {
    1u8.checked_shl(u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0)
}

fn ones(mask: u8) -> usize {
    mask.count_ones() as usize
}

fn new_member(bookie: BookieId) -> Member {
    Member { bookie, attempt: 0, given_up: false, asked: false, limbo_count: None }
}
