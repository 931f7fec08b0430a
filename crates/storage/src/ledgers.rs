//! All ledgers that are held, and what decides about the first touch of one that is not (R13, R27).

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;
use tidemill_types::LedgerId;

use crate::ledger::Ledger;

const GENERATIONS: usize = 1024;

#[derive(Debug)]
struct Inner {
    map: BTreeMap<LedgerId, Arc<Ledger>>,
    /// The quorum's next id as read after boot; `None` = not read yet.
    mark: Option<u64>,
    /// One above the highest ledger collected in this boot.
    floor: u64,
    /// Count of collections, by ledger id modulo their number. A stranger's collection costs one more read, never a wrong answer.
    generations: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Ledgers {
    inner: RwLock<Inner>,
}

fn slot(ledger: LedgerId) -> usize {
    usize::try_from(ledger.0 % GENERATIONS as u64).unwrap_or(0)
}

impl Inner {
    fn effective_mark(&self) -> Option<u64> {
        self.mark.map(|m| m.max(self.floor))
    }
}

impl Ledgers {
    pub(crate) fn new(map: BTreeMap<LedgerId, Arc<Ledger>>, mark: Option<LedgerId>) -> Self {
        let inner = Inner { map, mark: mark.map(|m| m.0), floor: 0, generations: vec![0; GENERATIONS] };
        Self { inner: RwLock::new(inner) }
    }

    pub(crate) fn get(&self, ledger: LedgerId) -> Option<Arc<Ledger>> {
        self.inner.read().map.get(&ledger).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.read().map.len()
    }

    pub(crate) fn generation(&self, ledger: LedgerId) -> u64 {
        self.inner.read().generations[slot(ledger)]
    }

    pub(crate) fn mark(&self) -> Option<LedgerId> {
        self.inner.read().effective_mark().map(LedgerId)
    }

    pub(crate) fn raise_mark(&self, mark: LedgerId) {
        let mut i = self.inner.write();
        i.mark = Some(i.mark.map_or(mark.0, |m| m.max(mark.0)));
    }

    /// The handle, made by `new` when there is none.
    pub(crate) fn get_or_create(
        &self,
        ledger: LedgerId,
        new: impl FnOnce() -> Ledger,
    ) -> (Arc<Ledger>, bool) {
        if let Some(l) = self.get(ledger) {
            return (l, false);
        }
        let mut i = self.inner.write();
        let mut created = false;
        let l = i.map.entry(ledger).or_insert_with(|| {
            created = true;
            Arc::new(new())
        });
        (Arc::clone(l), created)
    }

    /// The handle, made when there is none and the id is at or above the mark (R27).
    pub(crate) fn get_or_first(&self, ledger: LedgerId, new: impl FnOnce() -> Ledger) -> Option<Arc<Ledger>> {
        if let Some(l) = self.get(ledger) {
            return Some(l);
        }
        let mut i = self.inner.write();
        let above = i.effective_mark().is_some_and(|m| ledger.0 >= m);
        if let Some(l) = i.map.get(&ledger) {
            return Some(Arc::clone(l));
        }
        above.then(|| Arc::clone(i.map.entry(ledger).or_insert_with(|| Arc::new(new()))))
    }

    /// Takes a verdict of the quorum if the ledger was not collected since `generation` (R13, R27). Check, creation and mark are one step
    /// against [`Ledgers::remove`].
    pub(crate) fn admit(
        &self,
        ledger: LedgerId,
        generation: u64,
        new: impl FnOnce() -> Ledger,
    ) -> Result<(), u64> {
        let mut i = self.inner.write();
        let now = i.generations[slot(ledger)];
        if now != generation {
            return Err(now);
        }
        let l = i.map.entry(ledger).or_insert_with(|| Arc::new(new()));
        l.state.lock().admitted = true;
        Ok(())
    }

    /// Removes a collected ledger: its verdicts die and the mark rises above it (R27).
    pub(crate) fn remove(&self, ledger: &Arc<Ledger>) {
        let mut i = self.inner.write();
        if i.map.get(&ledger.id).is_some_and(|l| Arc::ptr_eq(l, ledger)) {
            i.map.remove(&ledger.id);
        }
        i.generations[slot(ledger.id)] += 1;
        i.floor = i.floor.max(ledger.id.0 + 1);
    }

    /// Ledgers with an id above `after`, in order, at most `limit`.
    pub(crate) fn after(&self, after: Option<LedgerId>, limit: usize) -> Vec<Arc<Ledger>> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.inner
            .read()
            .map
            .range((from, Bound::Unbounded))
            .take(limit)
            .map(|(_, l)| Arc::clone(l))
            .collect()
    }

    /// All of a lane.
    pub(crate) fn of_lane(&self, lane: u16) -> Vec<Arc<Ledger>> {
        self.inner.read().map.values().filter(|l| l.lane == lane).cloned().collect()
    }
}

/// Rendezvous hash: the lane with the highest score takes the ledger, so adding a lane moves nothing that is recorded.
pub(crate) fn choose_lane(ledger: LedgerId, lanes: impl Iterator<Item = uuid::Uuid>) -> u16 {
    let score = |uuid: uuid::Uuid| {
        let (a, b) = uuid.as_u64_pair();
        let mut z = ledger.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ a ^ b.rotate_left(32);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let best = lanes.enumerate().max_by_key(|(_, u)| (score(*u), *u)).map_or(0, |(i, _)| i);
    u16::try_from(best).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_verdict_dies_with_a_collection() {
        let ledgers = Ledgers::new(BTreeMap::new(), Some(LedgerId(5)));
        let id = LedgerId(3);
        let new = || Ledger::new(id, 0, false);
        assert!(ledgers.get_or_first(id, new).is_none());
        let asked = ledgers.generation(id);
        let (l, created) = ledgers.get_or_create(id, new);
        assert!(created);
        ledgers.remove(&l);
        let again = ledgers.admit(id, asked, new).unwrap_err();
        assert!(ledgers.get(id).is_none());
        assert_eq!(ledgers.admit(id, again, new), Ok(()));
        assert!(ledgers.get(id).unwrap().state.lock().admitted);
    }

    #[test]
    fn collecting_raises_the_mark() {
        let ledgers = Ledgers::new(BTreeMap::new(), Some(LedgerId(5)));
        let (l, _) = ledgers.get_or_create(LedgerId(9), || Ledger::new(LedgerId(9), 0, false));
        ledgers.remove(&l);
        assert_eq!(ledgers.mark(), Some(LedgerId(10)));
        ledgers.raise_mark(LedgerId(7));
        assert_eq!(ledgers.mark(), Some(LedgerId(10)));
    }

    #[test]
    fn adding_a_lane_moves_ledgers_only_to_it() {
        let uuids: Vec<Uuid> =
            (1..=4u128).map(|n| Uuid::from_u128(n.wrapping_mul(0x1234_5678_9abc_def1))).collect();
        let mut moved = 0;
        for n in 0..1000 {
            let before = choose_lane(LedgerId(n), uuids[..3].iter().copied());
            let after = choose_lane(LedgerId(n), uuids.iter().copied());
            assert!(after == before || after == 3);
            moved += usize::from(after != before);
        }
        assert!((150..350).contains(&moved), "{moved}");
    }
}
