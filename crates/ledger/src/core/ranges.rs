//! A set of entries as inclusive ranges: the `under` lists.

use tidemill_types::{EntryId, EntryRange};

/// Sorted, disjoint, not touching.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ranges(Vec<EntryRange>);

impl Ranges {
    /// Adds one entry; cheap when entries come in rising order.
    pub fn insert(&mut self, entry: EntryId) {
        let at = self.0.partition_point(|r| r.last.next() < entry);
        match self.0.get_mut(at) {
            Some(r) if r.first <= entry && entry <= r.last => {}
            Some(r) if r.first == entry.next() => r.first = entry,
            Some(r) if r.last.next() == entry => {
                r.last = entry;
                if self.0.get(at + 1).is_some_and(|n| n.first == entry.next()) {
                    let next = self.0.remove(at + 1);
                    self.0[at].last = next.last;
                }
            }
            _ => self.0.insert(at, EntryRange { first: entry, last: entry }),
        }
    }

    /// Whether it is in the set.
    #[must_use]
    pub fn contains(&self, entry: EntryId) -> bool {
        self.0.iter().any(|r| r.first <= entry && entry <= r.last)
    }

    /// Nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The part within `first..=last`.
    #[must_use]
    pub fn clip(&self, first: EntryId, last: EntryId) -> Vec<EntryRange> {
        self.0
            .iter()
            .map(|r| EntryRange { first: r.first.max(first), last: r.last.min(last) })
            .filter(|r| r.first <= r.last)
            .collect()
    }

    /// Takes out everything within `first..=last`.
    pub fn remove(&mut self, first: EntryId, last: EntryId) {
        let mut out = Vec::with_capacity(self.0.len());
        for r in &self.0 {
            if r.last < first || r.first > last {
                out.push(*r);
                continue;
            }
            if r.first < first {
                out.push(EntryRange { first: r.first, last: first.prev() });
            }
            if r.last > last {
                out.push(EntryRange { first: last.next(), last: r.last });
            }
        }
        self.0 = out;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(ids in proptest::collection::vec(0i64..40, 0..60), cut in 0i64..40, len in 0i64..10) {
            let mut r = Ranges::default();
            let mut s = BTreeSet::new();
            for i in ids {
                r.insert(EntryId(i));
                s.insert(i);
            }
            r.remove(EntryId(cut), EntryId(cut + len));
            s.retain(|i| *i < cut || *i > cut + len);
            for i in 0..60 {
                prop_assert_eq!(r.contains(EntryId(i)), s.contains(&i));
            }
            let all = r.clip(EntryId(0), EntryId(100));
            for w in all.windows(2) {
                prop_assert!(w[0].last.0 + 1 < w[1].first.0);
            }
        }
    }
}
