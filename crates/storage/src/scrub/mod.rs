//! Scrubbing: reading what is at rest, so that damage is found while other copies are there to mend it.
//!
//! A pass reads every sealed segment once, oldest first: header, footer, directory, checkpoint and index by their checksums, each live
//! entry by its own digest. What fails is looked at once more by the way a reader takes, so that an entry that was replaced,
//! moved or collected meanwhile is not called damaged. Damaged entries are left out of [`crate::Engine::ranges`] without being denied, so a
//! repair of this bookie finds them missing; a recovery add of the same entry replaces the damaged copy (R24).
//!
//! The position is kept in the file `scrub` of the first lane, so that a restart goes on where the pass was.

pub(crate) mod check;
pub(crate) mod damage;
mod position;

use std::sync::{Arc, atomic::Ordering};

use tidemill_types::{EntryId, LedgerId};

pub use self::position::ScrubPosition;
use self::{
    check::{Checked, check_segment},
    position::{load, save},
};
use crate::{
    counters::add,
    lane::Lane,
    lookup,
    outcome::{ReadMode, ReadOutcome},
    segment::Segment,
    shared::Shared,
};

/// What one step of a pass found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scrubbed {
    /// A segment was read.
    Segment {
        /// Bytes read.
        bytes: u64,
        /// Live entries that fail their check.
        damaged: u64,
    },
    /// The pass has come to its end.
    PassDone,
    /// Told to stop, or a read failed: the same segment is next.
    Stopped,
}

/// The position that a restart goes on from.
pub(crate) fn position(shared: &Shared) -> ScrubPosition {
    let Some(lane) = shared.lanes.first() else { return ScrubPosition::default() };
    load(&*shared.disk, &lane.dir).unwrap_or_default()
}

/// The first sealed segment at or behind the position.
fn next(shared: &Shared, at: &ScrubPosition) -> Option<(Arc<Lane>, Arc<Segment>)> {
    let start = at.lane.and_then(|l| shared.lanes.iter().position(|lane| lane.uuid == l)).unwrap_or(0);
    for (i, lane) in shared.lanes.iter().enumerate().skip(start) {
        let from = if i == start && at.lane == Some(lane.uuid) { at.segment } else { 0 };
        let segments = lane.segments.read();
        if let Some((_, s)) = segments.range(from..).find(|(_, s)| s.footer.get().is_some()) {
            return Some((Arc::clone(lane), Arc::clone(s)));
        }
    }
    None
}

/// Reads the next segment. `pace` is called with the bytes read and says whether to go on.
pub(crate) fn step(shared: &Shared, at: &mut ScrubPosition, pace: &dyn Fn(u64) -> bool) -> Scrubbed {
    if shared.poisoned().is_some() {
        return Scrubbed::Stopped;
    }
    let Some((lane, segment)) = next(shared, at) else {
        at.done = true;
        keep(shared, at);
        return Scrubbed::PassDone;
    };
    let wanted = |ledger: LedgerId, row: u32| {
        shared.ledgers.get(ledger).is_some_and(|l| {
            let state = l.state.lock();
            state.extents.iter().any(|x| x.segment == segment.number && x.row == row)
        })
    };
    let checked = match check_segment(&segment, &wanted, pace) {
        Ok(Some(c)) => c,
        Ok(None) => return Scrubbed::Stopped,
        Err(error) => {
            add(&shared.counters.scrub_failed_reads, 1);
            tracing::warn!(%error, path = %segment.path.display(), "a segment could not be read for its check");
            // The next pass tries it again; this one goes on.
            Checked::default()
        }
    };
    add(&shared.counters.scrubbed_bytes, checked.bytes);
    add(&shared.counters.scrubbed_segments, 1);
    let damaged = judge(shared, &segment, &checked);
    at.lane = Some(lane.uuid);
    at.segment = segment.number + 1;
    keep(shared, at);
    Scrubbed::Segment { bytes: checked.bytes, damaged }
}

/// Notes what is really damaged. Answers how many entries.
fn judge(shared: &Shared, segment: &Segment, checked: &Checked) -> u64 {
    if let Some(part) = checked.bad_part.filter(|_| !segment.keep.swap(true, Ordering::Relaxed)) {
        add(&shared.counters.scrub_damaged_segments, 1);
        tracing::error!(
            path = %segment.path.display(), ?part,
            "a sealed segment is damaged beside its entries: it is kept, and a restart of this bookie boots into limbo"
        );
    }
    let mut damaged = 0;
    for &(ledger, entry) in &checked.bad {
        if lookup::read(shared, ledger, EntryId(entry), ReadMode::Full) == ReadOutcome::Corrupt {
            shared.damage.note(ledger, entry, entry);
            damaged += 1;
        }
    }
    damaged
}

fn keep(shared: &Shared, at: &ScrubPosition) {
    let Some(lane) = shared.lanes.first() else { return };
    if let Err(error) = save(&*shared.disk, &lane.dir, at) {
        // A restart begins further back, nothing else.
        tracing::debug!(%error, "the position of the scrub was not written");
    }
}
