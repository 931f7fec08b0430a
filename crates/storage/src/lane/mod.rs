//! A lane: one disk, one order of commit groups, one who syncs.

mod acting;
mod apply;
pub(crate) mod control;
mod core;
mod group;
pub(crate) mod queue;
pub(crate) mod reserve;
pub(crate) mod roll;
pub(crate) mod seal;
mod space;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64},
    },
};

use parking_lot::{Mutex, RwLock};
use tidemill_types::{LanePosition, LedgerId, MemberId};

pub(crate) use self::core::{Core, Next};
use self::{control::ControlFile, queue::Queue};
use crate::{format::states::Deletion, segment::Segment};

/// A deletion and the segments that still hold what it hides. Dropped when there is none left.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    pub(crate) deletion: Deletion,
    pub(crate) segments: Vec<u32>,
}

/// The part of a lane that everybody may look at.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) index: u16,
    pub(crate) uuid: MemberId,
    pub(crate) dir: PathBuf,
    pub(crate) queue: Queue,
    pub(crate) segments: RwLock<BTreeMap<u32, Arc<Segment>>>,
    pub(crate) control: Mutex<ControlFile>,
    pub(crate) hidden: Mutex<BTreeMap<LedgerId, Hidden>>,
    /// Last synced group (R16).
    pub(crate) position: Mutex<LanePosition>,
    /// [`crate::report::SpaceState`] as a number.
    pub(crate) space: AtomicU8,
    pub(crate) free_bytes: AtomicU64,
    pub(crate) total_bytes: AtomicU64,
    /// Bytes of the reserve.
    pub(crate) reserve_bytes: AtomicU64,
}

impl Lane {
    pub(crate) fn segment(&self, number: u32) -> Option<Arc<Segment>> {
        self.segments.read().get(&number).cloned()
    }

    /// Notes that a segment still holds bytes of a collected ledger.
    pub(crate) fn hide(&self, ledger: LedgerId, deletion: Deletion, segments: &[u32]) {
        let mut hidden = self.hidden.lock();
        let h = hidden.entry(ledger).or_insert(Hidden { deletion, segments: Vec::new() });
        if deletion.bound >= h.deletion.bound {
            h.deletion = deletion;
        }
        for s in segments {
            if !h.segments.contains(s) {
                h.segments.push(*s);
            }
        }
        if h.segments.is_empty() {
            hidden.remove(&ledger);
        }
    }

    /// Forgets removed segments, and deletions that hide nothing any more.
    pub(crate) fn unhide(&self, removed: &[u32]) {
        self.hidden.lock().retain(|_, h| {
            h.segments.retain(|s| !removed.contains(s));
            !h.segments.is_empty()
        });
    }
}
