//! What the answers of all members tell (1.6 step 7).

use std::collections::BTreeSet;

use tidemill_types::{BookieId, BookieState, LedgerRecord};

use super::{
    events::Held,
    span::{expected, missing, span},
};
use crate::BookieTable;

/// Switches for the model checker's negative tests; everything is on in production.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LookRules {
    /// Only a pass in which each member answered clears anything (off: a silent member is skipped).
    pub every_member_answers: bool,
}

impl Default for LookRules {
    fn default() -> Self {
        Self { every_member_answers: true }
    }
}

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every member that is not lost answered and has everything.
    Complete,
    /// This member lacks entries and can be filled up.
    Lacks {
        /// Its uuid.
        bookie: BookieId,
        /// Its limbo count at the choice.
        limbo_count: u32,
    },
    /// Somebody did not answer, nobody who did lacks anything.
    Unknown,
}

/// The members to be asked: all that are not lost.
fn asked(record: &LedgerRecord, table: &BookieTable) -> BTreeSet<BookieId> {
    let gone = |b: &BookieId| {
        table.get(*b).is_none_or(|b| matches!(b.state, BookieState::Lost | BookieState::Retired))
    };
    record.fragments.iter().flat_map(|f| f.ensemble.iter().copied()).filter(|b| !gone(b)).collect()
}

/// Judges the answers. `held` gives a member's answer, [`Held::Unknown`] when there was none.
#[must_use]
pub fn verdict(
    record: &LedgerRecord,
    table: &BookieTable,
    held: impl Fn(BookieId) -> Held,
    rules: LookRules,
) -> Verdict {
    let asked = asked(record, table);
    // A fragment of which every member is lost says nothing: there is nobody to clear anything.
    let orphan = (0..record.fragments.len()).any(|i| {
        span(record, i).is_some_and(|s| s.first <= s.last)
            && !record.fragments[i].ensemble.iter().any(|b| asked.contains(b))
    });
    let mut all = !orphan;
    for bookie in asked {
        let wanted = expected(record, bookie);
        if wanted.is_empty() {
            continue;
        }
        let info = table.get(bookie);
        let lacks = match held(bookie) {
            Held::Ranges { ranges, complete } => {
                let whole = missing(&wanted, &ranges).is_empty();
                // In limbo what is missing is not denied; there it is to be filled up all the same.
                let limbo = info.is_some_and(|b| b.state == BookieState::Limbo);
                if !whole && !complete && !limbo {
                    all = false;
                }
                !whole && (complete || limbo)
            }
            Held::Unknown => {
                all = false;
                false
            }
        };
        if let (true, Some(b)) = (lacks, info) {
            return Verdict::Lacks { bookie, limbo_count: b.limbo_count };
        }
    }
    if all || !rules.every_member_answers { Verdict::Complete } else { Verdict::Unknown }
}
