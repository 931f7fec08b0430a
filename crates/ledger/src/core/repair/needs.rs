//! What the auditor sees in one record.

use tidemill_types::{BookieId, BookieState, LedgerRecord, LedgerState};

use super::{
    job::{fragments, is_small, leaves, leaving},
    span::expected,
};
use crate::BookieTable;

/// Copies that memberships lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// None.
    Enough,
    /// This bookie is to make them.
    Target {
        /// Its uuid.
        bookie: BookieId,
        /// Its limbo count at the choice (R23).
        limbo_count: u32,
    },
    /// Those that could make them have enough to do.
    Busy,
    /// No writable bookie could make them.
    NoTarget,
}

/// What a ledger needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// A member of its open end that leaves or is in limbo: its owner has to roll; after the grace it is recovered (R22).
    pub close: Option<BookieId>,
    /// Copies for members that leave, or that the topic wants.
    pub copies: Copies,
    /// Some member may lack entries: all of them have to be asked (1.6).
    pub look: bool,
}

impl Needs {
    /// Nothing at all.
    #[must_use]
    pub fn none(self) -> bool {
        self.close.is_none() && self.copies == Copies::Enough && !self.look
    }
}

/// Looks at one record. `copies`: what its topic wants; `has_room`: whether a bookie may get another repair now.
#[must_use]
pub fn needs(
    record: &LedgerRecord,
    table: &BookieTable,
    copies: usize,
    has_room: impl Fn(BookieId) -> bool,
) -> Needs {
    Needs {
        close: close(record, table),
        copies: target(record, table, copies, has_room),
        look: look(record, table),
    }
}

fn close(record: &LedgerRecord, table: &BookieTable) -> Option<BookieId> {
    if record.state == LedgerState::Closed {
        return None;
    }
    let goes = |b: &BookieId| {
        let state = table.get(*b).map(|b| b.state);
        leaves(state).is_some() || state == Some(BookieState::Limbo)
    };
    record.last_fragment()?.ensemble.iter().copied().find(goes)
}

fn target(
    record: &LedgerRecord,
    table: &BookieTable,
    copies: usize,
    has_room: impl Fn(BookieId) -> bool,
) -> Copies {
    let mut found = Copies::Enough;
    let mut wanted: Vec<(Vec<BookieId>, Vec<BookieId>)> = leaving(record, table)
        .into_iter()
        .filter_map(|from| {
            let first = *fragments(record, |e| e.contains(&from)).first()?;
            Some((record.fragment_of(first)?.ensemble.clone(), vec![from]))
        })
        .collect();
    if let Some(first) = fragments(record, |e| is_small(record, e.len(), copies)).first()
        && let Some(f) = record.fragment_of(*first)
    {
        wanted.push((f.ensemble.clone(), Vec::new()));
    }
    // R22: whoever may still be asked for by the ledger's writer should not get it fenced by a repair's add.
    let open_end: &[BookieId] = match record.last_fragment() {
        Some(f) if record.state != LedgerState::Closed => &f.ensemble,
        _ => &[],
    };
    for (ensemble, failed) in wanted {
        let mut spares = table.spares(&ensemble, &failed);
        spares.sort_by_key(|b| open_end.contains(&b.id));
        if spares.is_empty() {
            found = Copies::NoTarget;
            continue;
        }
        match spares.iter().find(|b| has_room(b.id)) {
            Some(b) => return Copies::Target { bookie: b.id, limbo_count: b.limbo_count },
            None => return Copies::Busy,
        }
    }
    found
}

fn look(record: &LedgerRecord, table: &BookieTable) -> bool {
    if record.state == LedgerState::Closed
        && (record.unchecked || record.fragments.iter().any(|f| !f.under.is_empty()))
    {
        return true;
    }
    let limbo = |b: &BookieId| table.get(*b).is_some_and(|b| b.state == BookieState::Limbo);
    record.fragments.iter().flat_map(|f| &f.ensemble).any(|b| limbo(b) && !expected(record, *b).is_empty())
}
