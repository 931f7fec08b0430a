//! Which entries a record expects on a bookie.

use tidemill_types::{BookieId, EntryId, EntryRange, LedgerRecord, LedgerState};

/// The entries of fragment `index`; empty (`last` below `first`) when it has none. `None` for the open end: the last fragment
/// of a ledger that is not CLOSED is its writer's, or its recoverer's (R22). Clipped to `last_entry` (R23).
#[must_use]
pub fn span(record: &LedgerRecord, index: usize) -> Option<EntryRange> {
    let f = record.fragments.get(index)?;
    let closed = record.state == LedgerState::Closed;
    let end = record.last_entry.filter(|_| closed);
    let last = match (record.fragments.get(index + 1), end) {
        (Some(next), Some(end)) => next.first_entry.prev().min(end),
        (Some(next), None) => next.first_entry.prev(),
        (None, Some(end)) => end,
        (None, None) => return None,
    };
    Some(EntryRange { first: f.first_entry, last })
}

/// The entries that have to be on the bookie: of every fragment with an end that names it.
#[must_use]
pub fn expected(record: &LedgerRecord, bookie: BookieId) -> Vec<EntryRange> {
    spans(record, |i| record.fragments[i].ensemble.contains(&bookie))
}

/// The entries of those fragments with an end that `of` chooses, without empty ones.
pub(super) fn spans(record: &LedgerRecord, of: impl Fn(usize) -> bool) -> Vec<EntryRange> {
    (0..record.fragments.len())
        .filter(|i| of(*i))
        .filter_map(|i| span(record, i))
        .filter(|r| r.first <= r.last)
        .collect()
}

/// What of `wanted` is not in `held`, whose ranges are sorted and do not touch.
#[must_use]
pub fn missing(wanted: &[EntryRange], held: &[EntryRange]) -> Vec<EntryRange> {
    let mut out = Vec::new();
    for w in wanted {
        let mut next = w.first;
        for h in held.iter().filter(|h| h.last >= w.first && h.first <= w.last) {
            if h.first > next {
                out.push(EntryRange { first: next, last: h.first.prev() });
            }
            next = next.max(h.last.next());
        }
        if next <= w.last {
            out.push(EntryRange { first: next, last: w.last });
        }
    }
    out
}

/// Number of entries in ranges.
#[must_use]
pub fn count(ranges: &[EntryRange]) -> u64 {
    ranges.iter().map(|r| u64::try_from(r.last.0 - r.first.0 + 1).unwrap_or(0)).sum()
}

/// The first entry of ranges.
pub(super) fn first(ranges: &[EntryRange]) -> Option<EntryId> {
    ranges.first().map(|r| r.first)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(ranges: &[EntryRange]) -> BTreeSet<i64> {
        ranges.iter().flat_map(|r| r.first.0..=r.last.0).collect()
    }

    fn ranges(of: &BTreeSet<i64>) -> Vec<EntryRange> {
        let mut out: Vec<EntryRange> = Vec::new();
        for i in of {
            match out.last_mut() {
                Some(r) if r.last.0 + 1 == *i => r.last = EntryId(*i),
                _ => out.push(EntryRange { first: EntryId(*i), last: EntryId(*i) }),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn missing_is_the_difference(wanted in proptest::collection::btree_set(0i64..40, 0..40), held in proptest::collection::btree_set(0i64..40, 0..40)) {
            let lacks = missing(&ranges(&wanted), &ranges(&held));
            let want: BTreeSet<i64> = wanted.difference(&held).copied().collect();
            prop_assert_eq!(count(&lacks), want.len() as u64);
            prop_assert_eq!(set(&lacks), want);
        }
    }
}
