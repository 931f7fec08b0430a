//! What a repair hears and wants, and why it may give up.

use tidemill_types::{BookieId, Entry, EntryId, EntryRange, LedgerRecord, meta::FinishRepair};

use crate::core::{AddAnswer, MetaOutcome, ReadAnswer};

/// Switches for the model checker's negative tests; everything is on in production.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct RepairRules {
    /// An entry that no source has is never skipped (off: a negative counts as "there is none").
    pub no_gaps: bool,
    /// An unknown answer never lets an entry be skipped either (R4; off: it does).
    pub unknown_is_not_negative: bool,
    /// The same bytes are written (R12; off: encoded anew with a LAC of the end).
    pub same_bytes: bool,
    /// After the version moved everything is listed again (off: what was copied before is trusted).
    pub list_again: bool,
}

impl Default for RepairRules {
    fn default() -> Self {
        Self { no_gaps: true, unknown_is_not_negative: true, same_bytes: true, list_again: true }
    }
}

/// What a bookie says it holds of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    /// These; sorted, not touching. An unknown ledger is an empty list.
    Ranges {
        /// The ranges.
        ranges: Vec<EntryRange>,
        /// Whether what lies outside may be taken for an explicit negative (not in limbo).
        complete: bool,
    },
    /// No answer, or none that says anything.
    Unknown,
}

/// What happens to a repair.
#[derive(Clone, Debug)]
pub enum Input {
    /// The answer to [`Output::ReadRecord`]; `None`: the ledger does not exist any more.
    Record(Option<LedgerRecord>),
    /// The answer to [`Output::List`], about this bookie itself.
    Listed(Held),
    /// An answer to [`Output::Read`], one per entry.
    Read {
        /// Who answered.
        source: BookieId,
        /// The entry.
        entry: EntryId,
        /// The answer.
        answer: ReadAnswer<Entry>,
    },
    /// The answer to [`Output::Write`].
    Written {
        /// The entry.
        entry: EntryId,
        /// The answer.
        answer: AddAnswer,
    },
    /// The outcome of [`Output::Finish`].
    Finished(MetaOutcome),
}

/// Why a repair was given up. Nothing is lost by that: the auditor starts another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abort {
    /// Nobody gave this entry; some did not answer.
    NoSource(EntryId),
    /// Every source denies this entry, which the ledger has: copies are lost.
    Denied(EntryId),
    /// This bookie does not take the entry (full, stopping).
    NotTaken(EntryId),
    /// This bookie holds other bytes for the entry (R24).
    Divergent(EntryId),
    /// The own entries cannot be listed.
    NotListed,
    /// There is nothing to do for this target any more.
    NoJob,
    /// The quorum refused the end: this bookie was in limbo, say, or is no longer `rw`.
    Refused,
}

/// What a repair wants.
#[derive(Clone, Debug)]
pub enum Output {
    /// Read the record, linearizably.
    ReadRecord,
    /// List what is held here.
    List,
    /// Read an entry from another bookie, without the fence flag: every entry of a repair has an end above it.
    Read {
        /// Whom.
        source: BookieId,
        /// The entry.
        entry: EntryId,
    },
    /// A recovery add of these bytes to this bookie.
    Write(Entry),
    /// Propose the end of the repair.
    Finish(FinishRepair),
    /// The repair is over and stored; so many entries were copied.
    Done {
        /// Entries.
        copied: u64,
    },
    /// The ledger is gone: success (R23).
    Gone,
    /// The repair is not this one any more; somebody else ended it.
    NotMine,
    /// Given up. The end, [`RepairOutcome::Abandoned`], is sent by this command.
    Abort(Abort, FinishRepair),
}
