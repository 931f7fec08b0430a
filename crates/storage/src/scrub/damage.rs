//! Which stored entries are known to fail their check: in memory, found again by the next pass after a restart.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tidemill_types::{EntryId, EntryRange, LedgerId};

type Ranges = Vec<(i64, i64)>;

#[derive(Debug, Default)]
pub(crate) struct Damage {
    /// Ledgers in the map: the usual 0 costs no lock.
    ledgers: AtomicUsize,
    map: Mutex<BTreeMap<LedgerId, Ranges>>,
}

impl Damage {
    pub(crate) fn note(&self, ledger: LedgerId, first: i64, last: i64) {
        let mut map = self.map.lock();
        let ranges = map.entry(ledger).or_default();
        ranges.push((first, last));
        ranges.sort_unstable();
        let mut joined: Ranges = Vec::with_capacity(ranges.len());
        for &(a, b) in ranges.iter() {
            match joined.last_mut() {
                Some((_, end)) if a <= *end + 1 => *end = (*end).max(b),
                _ => joined.push((a, b)),
            }
        }
        *ranges = joined;
        self.ledgers.store(map.len(), Ordering::Release);
    }

    /// A good copy of the entry is there now.
    pub(crate) fn healed(&self, ledger: LedgerId, entry: i64) {
        if self.ledgers.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut map = self.map.lock();
        if let Some(ranges) = map.get_mut(&ledger) {
            *ranges = without(ranges, &[(entry, entry)]);
            if ranges.is_empty() {
                map.remove(&ledger);
            }
        }
        self.ledgers.store(map.len(), Ordering::Release);
    }

    /// The ledger was collected.
    pub(crate) fn forget(&self, ledger: LedgerId) {
        if self.ledgers.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut map = self.map.lock();
        map.remove(&ledger);
        self.ledgers.store(map.len(), Ordering::Release);
    }

    /// What is left of `ranges` without the damaged entries of this ledger.
    pub(crate) fn cut(&self, ledger: LedgerId, ranges: Vec<EntryRange>) -> Vec<EntryRange> {
        if self.ledgers.load(Ordering::Acquire) == 0 {
            return ranges;
        }
        let map = self.map.lock();
        let Some(bad) = map.get(&ledger) else { return ranges };
        let ranges: Ranges = ranges.iter().map(|r| (r.first.0, r.last.0)).collect();
        without(&ranges, bad).into_iter().map(range).collect()
    }

    pub(crate) fn all(&self) -> Vec<(LedgerId, Vec<EntryRange>)> {
        self.map.lock().iter().map(|(l, r)| (*l, r.iter().copied().map(range).collect())).collect()
    }

    pub(crate) fn entries(&self) -> u64 {
        if self.ledgers.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.map.lock().values().flatten().map(|(a, b)| b.abs_diff(*a) + 1).sum()
    }
}

fn range((first, last): (i64, i64)) -> EntryRange {
    EntryRange { first: EntryId(first), last: EntryId(last) }
}

/// Sorted, disjoint ranges without other such ranges.
fn without(ranges: &[(i64, i64)], holes: &[(i64, i64)]) -> Ranges {
    let mut out = Vec::with_capacity(ranges.len());
    for &(first, last) in ranges {
        let mut from = first;
        for &(a, b) in holes.iter().filter(|(a, b)| *a <= last && first <= *b) {
            if from < a {
                out.push((from, a - 1));
            }
            from = from.max(b + 1);
        }
        if from <= last {
            out.push((from, last));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const L: LedgerId = LedgerId(3);

    #[test]
    fn damage_is_joined_cut_out_and_healed() {
        let d = Damage::default();
        let r = |a, b| range((a, b));
        assert_eq!(d.cut(L, vec![r(0, 9)]), [r(0, 9)]);
        for e in [5, 3, 4, 9, 0] {
            d.note(L, e, e);
        }
        assert_eq!(d.all(), [(L, vec![r(0, 0), r(3, 5), r(9, 9)])]);
        assert_eq!(d.cut(L, vec![r(0, 9)]), [r(1, 2), r(6, 8)]);
        assert_eq!(d.cut(L, vec![r(4, 4), r(9, 12)]), [r(10, 12)]);
        assert_eq!(d.cut(LedgerId(4), vec![r(0, 9)]), [r(0, 9)]);
        d.healed(L, 4);
        assert_eq!(d.cut(L, vec![r(0, 9)]), [r(1, 2), r(4, 4), r(6, 8)]);
        assert_eq!(d.entries(), 4);
        for e in [0, 3, 5, 9, 7] {
            d.healed(L, e);
        }
        assert!(d.all().is_empty());
        d.note(L, 1, 2);
        d.forget(L);
        assert_eq!(d.entries(), 0);
    }
}
