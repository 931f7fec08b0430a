//! Maintenance of sealed segments (R21): removing dead ones, rewriting thinly filled ones.
//!
//! Order: copy live entries, sync and seal the new segment, list it and unlist the old ones in one durable step, point the ledgers to it, only
//! then unlink. States need no copying: the newest sealed log segment has a checkpoint of all of them and is never touched here.

mod copy;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use tidemill_runtime::io::DurableError;
use tidemill_types::LedgerId;

use self::copy::{Copied, copy};
use crate::{
    counters::add,
    error::Poison,
    format::{BLOCK, control::Control},
    lane::{Lane, reserve::margin},
    ledger::Ledger,
    segment::{Extent, Segment},
    shared::Shared,
};

/// Why a round stopped.
pub(crate) enum Stop {
    /// Nothing is lost or changed: an entry is damaged, no room, a read failed. The old segments stay.
    Kept,
    Fatal(Poison),
}

impl From<Poison> for Stop {
    fn from(p: Poison) -> Self {
        Self::Fatal(p)
    }
}

/// One round over all lanes.
pub(crate) fn maintain(shared: &Shared, throttle: &dyn Fn(u64)) -> Result<bool, Poison> {
    let _one = shared.maintenance.lock();
    if let Some(p) = shared.poisoned() {
        return Err(p.clone());
    }
    let mut worked = false;
    for lane in &shared.lanes {
        match round(shared, lane, throttle) {
            Ok(w) => worked |= w,
            Err(Stop::Kept) => {}
            Err(Stop::Fatal(p)) => return Err(p),
        }
    }
    Ok(worked)
}

/// Sealed segments that may be touched.
fn candidates(lane: &Lane) -> Vec<Arc<Segment>> {
    let segments = lane.segments.read();
    let sealed = || segments.values().filter(|s| s.footer.get().is_some());
    let newest = sealed().filter(|s| !s.rewritten).map(|s| s.number).max();
    sealed().filter(|s| Some(s.number) != newest && !s.keep.load(Ordering::Relaxed)).cloned().collect()
}

fn round(shared: &Shared, lane: &Lane, throttle: &dyn Fn(u64)) -> Result<bool, Stop> {
    let candidates = candidates(lane);
    let dead: Vec<Arc<Segment>> = candidates.iter().filter(|s| s.live() == 0).cloned().collect();
    if !dead.is_empty() {
        unlist(shared, lane, &dead, |_| {})?;
        remove(shared, lane, &dead);
        return Ok(true);
    }
    let mut sources: Vec<Arc<Segment>> = Vec::new();
    let mut live = 0;
    let room = room(shared, lane);
    let mut candidates = candidates;
    // On a full disk those first that free the most for what they take.
    candidates.sort_by_key(|s| s.live());
    for s in candidates {
        #[expect(clippy::cast_precision_loss, reason = "a ratio that is compared with a percentage")]
        let share = s.live() as f64 / s.len.load(Ordering::Relaxed).max(1) as f64;
        let after = live + s.live();
        let fits = after <= shared.config.segment_bytes / 2 && after + after / 2 + 16 * BLOCK <= room;
        if share < shared.config.rewrite_below && fits {
            live += s.live();
            sources.push(s);
        }
    }
    if sources.is_empty() || !worth_it(&sources, live) {
        return Ok(false);
    }
    let copied = copy(shared, lane, &sources, throttle)?;
    let new = Arc::clone(&copied.segment);
    unlist(shared, lane, &sources, |c| {
        let listed = crate::format::control::Listed { uuid: new.uuid, sealed: true, rewritten: true };
        c.segments.insert(new.number, listed);
    })?;
    lane.segments.write().insert(new.number, Arc::clone(&new));
    point(shared, lane, &sources, &copied);
    remove(shared, lane, &sources);
    Ok(true)
}

/// Bytes that a copy may take for a while: what is free, and the reserve, which comes back with what the copy frees.
fn room(shared: &Shared, lane: &Lane) -> u64 {
    let free = shared.disk.space(&lane.dir).map_or(u64::MAX, |s| s.free.saturating_sub(margin(shared)));
    free.saturating_add(lane.reserve_bytes.load(Ordering::Relaxed))
}

/// Small segments are mostly header, index and footer: copying one into the same size gains nothing.
fn worth_it(sources: &[Arc<Segment>], live: u64) -> bool {
    let old: u64 = sources.iter().map(|s| s.len.load(Ordering::Relaxed)).sum();
    live + live / 4 + 8 * BLOCK < old
}

/// Takes segments off the list, durably.
fn unlist(
    shared: &Shared,
    lane: &Lane,
    segments: &[Arc<Segment>],
    also: impl FnOnce(&mut Control),
) -> Result<(), Stop> {
    let mut control = lane.control.lock();
    let path = control.path().to_path_buf();
    let changed = control.change(&*shared.disk, |c| {
        for s in segments {
            c.segments.remove(&s.number);
        }
        also(c);
    });
    match changed {
        Ok(()) => Ok(()),
        Err(DurableError::Untouched(error)) => {
            tracing::warn!(%error, "the control file cannot be written");
            Err(Stop::Kept)
        }
        Err(DurableError::Unknown(e)) => Err(shared.poison("writing the control file", &path, &e).into()),
    }
}

/// Points the ledgers from the old segments to the new one, each under its lock.
fn point(shared: &Shared, lane: &Lane, sources: &[Arc<Segment>], copied: &Copied) {
    let mut runs: BTreeMap<LedgerId, Vec<Extent>> = BTreeMap::new();
    for run in &copied.runs {
        runs.entry(run.ledger).or_default().push(Extent::of(run, copied.segment.number));
    }
    for (id, ledger) in &copied.ledgers {
        let extents = runs.remove(id).unwrap_or_default();
        let mut state = ledger.state.lock();
        if state.dead {
            drop(state);
            hide_copy(shared, lane, *id, copied.segment.number);
            continue;
        }
        state.extents.retain(|x| !sources.iter().any(|s| s.number == x.segment));
        for x in extents {
            copied.segment.add_live(i64::from(x.bytes));
            state.add_extent(x);
        }
    }
}

/// The ledger was collected while it was copied: its deletion hides the copy as well, whose number is below the deletion's bound.
fn hide_copy(_shared: &Shared, lane: &Lane, ledger: LedgerId, segment: u32) {
    if let Some(h) = lane.hidden.lock().get_mut(&ledger)
        && h.deletion.hides(segment)
        && !h.segments.contains(&segment)
    {
        h.segments.push(segment);
    }
}

/// Unlinks segments that nothing points to. Readers that hold them open go on. A failed unlink is made good at the next boot.
fn remove(shared: &Shared, lane: &Lane, segments: &[Arc<Segment>]) {
    let numbers: Vec<u32> = segments.iter().map(|s| s.number).collect();
    {
        let mut all = lane.segments.write();
        for n in &numbers {
            all.remove(n);
        }
    }
    for s in segments {
        unlink(shared, &s.path);
    }
    lane.unhide(&numbers);
    add(&shared.counters.removed_segments, numbers.len() as u64);
}

pub(crate) fn unlink(shared: &Shared, path: &Path) {
    if let Err(error) = shared.disk.remove(path) {
        tracing::warn!(%error, path = %path.display(), "a segment cannot be removed now; the next boot removes it");
    }
}

pub(crate) type Handles = BTreeMap<LedgerId, Arc<Ledger>>;
