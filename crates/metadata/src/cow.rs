//! An ordered map whose clone costs one reference count: pages behind `Arc`s, copied when they are written while shared.
//!
//! A clone is a snapshot. The first write after it copies the table of pages (one pointer per up to 64 entries), every
//! further one at most the page that it touches. Iteration is in key order, whatever order the keys came in, so that
//! nothing that is derived from it depends on how the pages happen to be cut.

use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::Arc;

/// Most entries of a page.
const PAGE: usize = 64;
/// A page below this is joined with its neighbour when both fit into one.
const SPARSE: usize = 16;

type Page<K, V> = Vec<(K, V)>;

/// The map. `V` should be cheap to clone: a page is cloned entry by entry.
#[derive(Clone, Debug)]
pub(crate) struct CowMap<K, V> {
    /// No page is empty; keys ascend within a page and from page to page.
    pages: Arc<Vec<Arc<Page<K, V>>>>,
    len: usize,
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        Self { pages: Arc::new(Vec::new()), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> CowMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The page that holds `key` or would hold it; `None` only for an empty map.
    fn page_of<Q: Ord + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        if self.pages.is_empty() {
            return None;
        }
        let after = self.pages.partition_point(|p| p.first().is_some_and(|(k, _)| k.borrow() <= key));
        Some(after.saturating_sub(1))
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(usize, usize)>
    where
        K: Borrow<Q>,
    {
        let p = self.page_of(key)?;
        let i = self.pages[p].binary_search_by(|(k, _)| k.borrow().cmp(key)).ok()?;
        Some((p, i))
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (p, i) = self.find(key)?;
        Some(&self.pages[p][i].1)
    }

    pub(crate) fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some()
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (p, i) = self.find(key)?;
        let page = Arc::make_mut(&mut Arc::make_mut(&mut self.pages)[p]);
        Some(&mut page[i].1)
    }

    /// Sets the value of `key`; returns the one before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(p) = self.page_of(&key) else {
            Arc::make_mut(&mut self.pages).push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return None;
        };
        let pages = Arc::make_mut(&mut self.pages);
        let last_page = p + 1 == pages.len();
        let page = Arc::make_mut(&mut pages[p]);
        match page.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(i) => return Some(std::mem::replace(&mut page[i].1, value)),
            // Ids are handed out in order: a full last page is left full instead of being cut in halves.
            Err(i) if i == PAGE && last_page => pages.push(Arc::new(vec![(key, value)])),
            Err(i) => {
                page.insert(i, (key, value));
                if page.len() > PAGE {
                    let tail = page.split_off(PAGE / 2);
                    pages.insert(p + 1, Arc::new(tail));
                }
            }
        }
        self.len += 1;
        None
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (p, i) = self.find(key)?;
        let pages = Arc::make_mut(&mut self.pages);
        let page = Arc::make_mut(&mut pages[p]);
        let (_, value) = page.remove(i);
        let left = page.len();
        self.len -= 1;
        if left == 0 {
            pages.remove(p);
        } else if left < SPARSE && p + 1 < pages.len() && left + pages[p + 1].len() <= PAGE {
            let next = pages.remove(p + 1);
            Arc::make_mut(&mut pages[p]).extend(next.iter().cloned());
        }
        Some(value)
    }

    /// All entries in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.pages.iter().flat_map(|p| p.iter().map(|(k, v)| (k, v)))
    }

    /// The entries from `from` on, in key order.
    pub(crate) fn range<'a>(
        &'a self,
        from: Bound<&K>,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let (page, skip) = match from {
            Bound::Unbounded => (0, 0),
            Bound::Included(k) | Bound::Excluded(k) => {
                let p = self.page_of(k).unwrap_or(0);
                let skip = self.pages.get(p).map_or(0, |page| {
                    page.partition_point(
                        |(e, _)| if matches!(from, Bound::Included(_)) { e < k } else { e <= k },
                    )
                });
                (p, skip)
            }
        };
        self.pages.iter().skip(page).flat_map(|p| p.iter().map(|(k, v)| (k, v))).skip(skip)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same answers as a `BTreeMap`, and a clone taken on the way never changes.
        #[test]
        fn is_a_map_and_its_clones_stand_still(
            ops in proptest::collection::vec((0u8..4, 0u16..400), 1..1500),
            cut in 0usize..1500,
        ) {
            let mut map = CowMap::default();
            let mut model = BTreeMap::new();
            let mut kept = None;
            for (n, (op, key)) in ops.into_iter().enumerate() {
                if n == cut {
                    kept = Some((map.clone(), model.clone()));
                }
                match op {
                    0 | 1 => prop_assert_eq!(map.insert(key, n), model.insert(key, n)),
                    2 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    _ => {
                        prop_assert_eq!(map.get(&key), model.get(&key));
                        if let Some(v) = map.get_mut(&key) { *v += 1; }
                        if let Some(v) = model.get_mut(&key) { *v += 1; }
                    }
                }
                prop_assert_eq!(map.len(), model.len());
            }
            prop_assert!(map.iter().eq(model.iter()));
            for k in (0u16..400).step_by(37) {
                prop_assert!(map.range(Bound::Included(&k)).eq(model.range(k..)));
                prop_assert!(map
                    .range(Bound::Excluded(&k))
                    .eq(model.range((Bound::Excluded(k), Bound::Unbounded))));
            }
            if let Some((map, model)) = kept {
                prop_assert!(map.iter().eq(model.iter()));
            }
        }
    }

    #[test]
    fn pages_stay_dense_when_keys_ascend() {
        let mut map = CowMap::default();
        for k in 0u32..6_400 {
            map.insert(k, ());
        }
        assert_eq!(map.pages.len(), 100);
    }
}
