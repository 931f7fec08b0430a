//! Reads of consecutive entries, and what is held of a ledger.

use tidemill_types::{EntryId, EntryRange, LedgerId};

use crate::{
    lookup,
    outcome::{LastEntryOutcome, RangesOutcome, ReadMode, ReadOutcome, UnknownReason},
    segment::IndexError,
    shared::Shared,
    wave,
};

pub(crate) type Item = (EntryId, ReadOutcome);

/// Consecutive entries.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) ledger: LedgerId,
    pub(crate) first: EntryId,
    pub(crate) max_entries: usize,
    /// At least one entry is read, whatever its size.
    pub(crate) max_bytes: usize,
}

/// See [`crate::Engine::read_range`].
pub(crate) fn read_range(shared: &Shared, wanted: Wanted, mode: ReadMode) -> Vec<Item> {
    let mut out = Vec::new();
    if mode == ReadMode::Head {
        read_heads(shared, wanted, &mut out);
    } else {
        wave::read(shared, wanted, &mut out);
    }
    if let Some(end) = out.iter().position(|(_, o)| !matches!(o, ReadOutcome::Entry(_))) {
        out.truncate(end + 1);
    }
    out
}

fn read_heads(shared: &Shared, wanted: Wanted, out: &mut Vec<Item>) {
    let (mut entry, mut bytes) = (wanted.first, 0);
    while out.len() < wanted.max_entries {
        let outcome = lookup::read(shared, wanted.ledger, entry, ReadMode::Head);
        let ReadOutcome::Entry(b) = &outcome else {
            out.push((entry, outcome));
            return;
        };
        bytes += b.len();
        if bytes > wanted.max_bytes && !out.is_empty() {
            return;
        }
        out.push((entry, outcome));
        entry = entry.next();
    }
}

/// See [`crate::Engine::last_entry`].
pub(crate) fn last_entry(shared: &Shared, id: LedgerId, mode: ReadMode) -> LastEntryOutcome {
    let last = match shared.ledgers.get(id) {
        None => None,
        Some(l) => {
            let state = l.state.lock();
            if state.collecting {
                return LastEntryOutcome::Unknown(UnknownReason::Collecting);
            }
            Some(EntryId(state.last))
        }
    };
    match last {
        Some(last) if last >= EntryId::FIRST => {
            LastEntryOutcome::Last(last, lookup::read(shared, id, last, mode))
        }
        _ if shared.limbo() => LastEntryOutcome::Unknown(UnknownReason::Limbo),
        Some(_) => LastEntryOutcome::Empty,
        None => LastEntryOutcome::NoSuchLedger,
    }
}

/// See [`crate::Engine::ranges`].
pub(crate) fn ranges(shared: &Shared, id: LedgerId) -> RangesOutcome {
    loop {
        let Some(ledger) = shared.ledgers.get(id) else {
            return if shared.limbo() {
                RangesOutcome::Unknown(UnknownReason::Limbo)
            } else {
                RangesOutcome::NoSuchLedger
            };
        };
        let (extents, mut entries, pending) = {
            let state = ledger.state.lock();
            if state.dead {
                continue;
            }
            if state.collecting {
                return RangesOutcome::Unknown(UnknownReason::Collecting);
            }
            let rows: Vec<(i64, i64)> = state
                .active
                .as_ref()
                .map(|a| a.rows.iter().map(|r| (r.entry, r.entry)).collect())
                .unwrap_or_default();
            (state.extents.clone(), rows, state.pending() > 0)
        };
        let lane = shared.lane_of(&ledger);
        let mut moved = false;
        for x in &extents {
            if x.is_dense() {
                entries.push((x.first, x.last));
                continue;
            }
            let Some(segment) = lane.segment(x.segment) else {
                moved = true;
                break;
            };
            for row in x.row..x.row + x.count {
                match segment.row(&shared.cache, x.first, row) {
                    Ok((entry, _)) => entries.push((entry, entry)),
                    // An index that cannot be read denies nothing (R14).
                    Err(IndexError::Io(_) | IndexError::Damaged) => {
                        return RangesOutcome::Unknown(UnknownReason::Io);
                    }
                }
            }
        }
        if !moved {
            // A damaged copy is none, and is not denied either (R14): a repair brings another one (R24).
            let held = join(entries);
            let ranges = shared.damage.cut(id, held.clone());
            let complete = !shared.limbo() && !pending && ranges == held;
            return RangesOutcome::Ranges { ranges, complete };
        }
    }
}

/// Joins ranges that touch or overlap.
fn join(mut ranges: Vec<(i64, i64)>) -> Vec<EntryRange> {
    ranges.sort_unstable();
    let mut out: Vec<EntryRange> = Vec::new();
    for (first, last) in ranges {
        match out.last_mut() {
            Some(r) if first <= r.last.0 + 1 => r.last = EntryId(r.last.0.max(last)),
            _ => out.push(EntryRange { first: EntryId(first), last: EntryId(last) }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined() {
        let r = |a, b| EntryRange { first: EntryId(a), last: EntryId(b) };
        assert_eq!(join(vec![(5, 5), (0, 2), (3, 3), (1, 2), (7, 9)]), [r(0, 3), r(5, 5), r(7, 9)]);
    }
}
