//! The one handle of a ledger (R13): its fence, its accepted adds, where its entries lie.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_types::{EntryId, LedgerId};

use crate::{
    format::{
        index::Place,
        states::{Deletion, StateRow},
    },
    outcome::{AckTo, AddKind, Completion, FenceOutcome},
    segment::Extent,
};

/// A ledger that this bookie holds.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) id: LedgerId,
    /// Index of its lane, chosen at first touch.
    pub(crate) lane: u16,
    pub(crate) state: Mutex<LedgerState>,
}

/// An entry in the segment that is not sealed yet.
#[derive(Clone, Debug)]
pub(crate) struct ActiveRow {
    pub(crate) entry: i64,
    pub(crate) place: Place,
    pub(crate) lac: i64,
    /// The bytes, while they are among the newest of the lane.
    pub(crate) bytes: Option<Bytes>,
}

/// What came while the ledger was locked by a collection (R20).
#[derive(Debug)]
pub(crate) enum Parked {
    Add(Bytes, AddKind, AckTo),
    Fence(LedgerId, Completion<FenceOutcome>),
}

/// The part that only a ledger with recent writes has.
#[derive(Debug, Default)]
pub(crate) struct Active {
    /// Segment of the rows.
    pub(crate) segment: u32,
    /// Sorted by entry.
    pub(crate) rows: Vec<ActiveRow>,
    /// Adds that were accepted and are not indexed yet, in that order.
    pub(crate) pending: VecDeque<(i64, Bytes)>,
    pub(crate) parked: Vec<Parked>,
}

#[derive(Debug)]
pub(crate) struct LedgerState {
    /// Sticky (R11).
    pub(crate) fenced: bool,
    pub(crate) fence_durable: bool,
    pub(crate) fence_queued: bool,
    /// The quorum said OPEN in this boot (R27).
    pub(crate) admitted: bool,
    pub(crate) collecting: bool,
    /// Collected: whoever holds this handle must look the ledger up again.
    pub(crate) dead: bool,
    /// Highest LAC, piggybacked or explicit.
    pub(crate) lac: i64,
    pub(crate) explicit_lac: i64,
    /// Highest entry indexed.
    pub(crate) last: i64,
    /// Sealed entries, by segment.
    pub(crate) extents: Vec<Extent>,
    pub(crate) active: Option<Box<Active>>,
}

/// Where an entry is, as far as the handle knows.
#[derive(Debug)]
pub(crate) enum Located {
    Memory(Bytes),
    At(u32, Place),
    /// In one of these, the newest first, or in none.
    Sealed(Vec<Extent>),
    Pending,
    Absent,
}

impl Ledger {
    pub(crate) fn new(id: LedgerId, lane: u16, fenced: bool) -> Self {
        Self {
            id,
            lane,
            state: Mutex::new(LedgerState {
                fenced,
                fence_durable: false,
                fence_queued: false,
                admitted: false,
                collecting: false,
                dead: false,
                lac: -1,
                explicit_lac: -1,
                last: -1,
                extents: Vec::new(),
                active: None,
            }),
        }
    }
}

impl LedgerState {
    pub(crate) fn active_mut(&mut self) -> &mut Active {
        self.active.get_or_insert_default()
    }

    pub(crate) fn pending(&self) -> usize {
        self.active.as_ref().map_or(0, |a| a.pending.len())
    }

    pub(crate) fn pending_bytes(&self, entry: i64) -> Option<&Bytes> {
        self.active.as_ref()?.pending.iter().rev().find(|(e, _)| *e == entry).map(|(_, b)| b)
    }

    /// Forgets one accepted add of this entry: it is indexed, or failed.
    pub(crate) fn settle(&mut self, entry: i64) {
        if let Some(a) = &mut self.active
            && let Some(i) = a.pending.iter().position(|(e, _)| *e == entry)
        {
            a.pending.remove(i);
        }
    }

    pub(crate) fn locate(&self, entry: i64) -> Located {
        if let Some(a) = &self.active
            && let Ok(i) = a.rows.binary_search_by_key(&entry, |r| r.entry)
        {
            let row = &a.rows[i];
            return row
                .bytes
                .as_ref()
                .map_or(Located::At(a.segment, row.place), |b| Located::Memory(b.clone()));
        }
        let extents: Vec<Extent> = self.extents.iter().rev().filter(|x| x.contains(entry)).copied().collect();
        if !extents.is_empty() {
            Located::Sealed(extents)
        } else if self.pending_bytes(entry).is_some() {
            Located::Pending
        } else {
            Located::Absent
        }
    }

    /// Indexes an entry of the active segment. A copy that was there before is replaced (R24).
    pub(crate) fn index(&mut self, segment: u32, row: ActiveRow) {
        self.lac = self.lac.max(row.lac);
        self.last = self.last.max(row.entry);
        let a = self.active_mut();
        a.segment = segment;
        match a.rows.last() {
            Some(l) if l.entry >= row.entry => match a.rows.binary_search_by_key(&row.entry, |r| r.entry) {
                Ok(i) => a.rows[i] = row,
                Err(i) => a.rows.insert(i, row),
            },
            _ => a.rows.push(row),
        }
    }

    /// Puts an extent where its segment's number belongs.
    pub(crate) fn add_extent(&mut self, extent: Extent) {
        self.last = self.last.max(extent.last);
        let at = self.extents.partition_point(|x| (x.segment, x.row) <= (extent.segment, extent.row));
        self.extents.insert(at, extent);
    }

    /// Frees the active part when nothing is in it.
    pub(crate) fn trim(&mut self) {
        if self
            .active
            .as_ref()
            .is_some_and(|a| a.rows.is_empty() && a.pending.is_empty() && a.parked.is_empty())
        {
            self.active = None;
        }
    }

    /// What a checkpoint has to say about this ledger (R21).
    pub(crate) fn checkpoint(&self) -> Option<StateRow> {
        (self.fence_durable || self.explicit_lac >= 0)
            .then_some(StateRow { fenced: self.fence_durable, explicit_lac: self.explicit_lac })
    }

    pub(crate) fn apply_checkpoint(&mut self, row: StateRow) {
        self.fenced |= row.fenced;
        self.fence_durable |= row.fenced;
        self.explicit_lac = self.explicit_lac.max(row.explicit_lac);
        self.lac = self.lac.max(row.explicit_lac);
    }

    /// Forgets everything that a deletion hides.
    pub(crate) fn hide(&mut self, deletion: Deletion) {
        self.extents.retain(|x| !deletion.hides(x.segment));
    }

    /// Bytes of its entries.
    pub(crate) fn bytes(&self) -> u64 {
        let sealed: u64 = self.extents.iter().map(|x| u64::from(x.bytes)).sum();
        sealed
            + self.active.as_ref().map_or(0, |a| a.rows.iter().map(|r| u64::from(r.place.len)).sum::<u64>())
    }

    pub(crate) fn lac(&self) -> EntryId {
        EntryId(self.lac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_ledger_fits_256_bytes() {
        // Handle with the counts of its Arc, two extents with the allocator's heads, key and pointer in the map at half fill.
        let handle = size_of::<Ledger>() + 16;
        let extents = 2 * size_of::<Extent>() + 16;
        let map = 2 * (size_of::<LedgerId>() + size_of::<usize>());
        assert!(handle + extents + map <= 256, "{}", handle + extents + map);
    }

    #[test]
    fn rows_stay_sorted_and_the_newest_wins() {
        let mut s = Ledger::new(LedgerId(1), 0, false).state.into_inner();
        let row = |entry, offset| ActiveRow { entry, place: Place { offset, len: 1 }, lac: -1, bytes: None };
        for (e, o) in [(3, 1), (1, 2), (2, 3), (3, 4)] {
            s.index(9, row(e, o));
        }
        assert!(matches!(s.locate(3), Located::At(9, Place { offset: 4, .. })));
        assert!(matches!(s.locate(1), Located::At(9, Place { offset: 2, .. })));
        assert!(matches!(s.locate(4), Located::Absent));
        assert_eq!((s.last, s.active.as_ref().unwrap().rows.len()), (3, 3));
    }
}
