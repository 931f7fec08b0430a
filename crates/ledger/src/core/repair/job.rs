//! What a repair with a given target is about. The record of a repair names its target alone: what is to be copied follows
//! from the ledger and the members, for the auditor and for the worker in the same way.

use tidemill_types::{BookieId, BookieState, EntryId, LedgerRecord, LedgerState, Replication};

use super::span::span;
use crate::BookieTable;

/// The work of one repair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// The target takes the place of a member that leaves.
    Replace {
        /// The member.
        from: BookieId,
        /// First entries of the fragments.
        fragments: Vec<EntryId>,
    },
    /// The target joins fragments of a CLOSED ledger that have fewer members than the topic wants copies.
    Grow {
        /// First entries of the fragments.
        fragments: Vec<EntryId>,
    },
    /// The target is a member and may lack entries.
    Fill,
}

/// How badly a member has to be replaced; nothing: it stays.
pub(super) fn leaves(state: Option<BookieState>) -> Option<u8> {
    match state {
        None | Some(BookieState::Lost | BookieState::Retired) => Some(0),
        Some(BookieState::Draining) => Some(1),
        Some(BookieState::Rw | BookieState::Ro | BookieState::Limbo) => None,
    }
}

/// Members of fragments with an end that leave, those whose copies are gone first.
pub(super) fn leaving(record: &LedgerRecord, table: &BookieTable) -> Vec<BookieId> {
    let mut found: Vec<(u8, BookieId)> = record
        .fragments
        .iter()
        .enumerate()
        .filter(|(i, _)| span(record, *i).is_some())
        .flat_map(|(_, f)| &f.ensemble)
        .filter_map(|b| leaves(table.get(*b).map(|b| b.state)).map(|how| (how, *b)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, b)| b).collect()
}

/// Fragments with an end that `fits` chooses, as first entries.
pub(super) fn fragments(record: &LedgerRecord, fits: impl Fn(&[BookieId]) -> bool) -> Vec<EntryId> {
    record
        .fragments
        .iter()
        .enumerate()
        .filter(|(i, f)| span(record, *i).is_some() && fits(&f.ensemble))
        .map(|(_, f)| f.first_entry)
        .collect()
}

/// Whether fragments of this many members want another one.
pub(super) fn is_small(record: &LedgerRecord, members: usize, copies: usize) -> bool {
    record.state == LedgerState::Closed && members < copies.min(usize::from(Replication::MAX_COPIES))
}

/// The work of a repair of this ledger with this target; `copies` is what the topic wants. `None`: there is none any more.
#[must_use]
pub fn job(record: &LedgerRecord, table: &BookieTable, copies: usize, target: BookieId) -> Option<Job> {
    for from in leaving(record, table).into_iter().filter(|from| *from != target) {
        let of = fragments(record, |e| e.contains(&from) && !e.contains(&target));
        if !of.is_empty() {
            return Some(Job::Replace { from, fragments: of });
        }
    }
    let small = fragments(record, |e| is_small(record, e.len(), copies) && !e.contains(&target));
    if !small.is_empty() {
        return Some(Job::Grow { fragments: small });
    }
    (!fragments(record, |e| e.contains(&target)).is_empty()).then_some(Job::Fill)
}
