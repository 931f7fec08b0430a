//! Sealing: a sorted index, a checkpoint of all states and a footer go behind the last group, synced, before the next segment opens.

use std::sync::{Arc, atomic::Ordering};

use tidemill_runtime::io::DurableError;
use tidemill_types::entry::crc32c;

use super::{Lane, core::Core, roll::RollError};
use crate::{
    counters::add,
    format::{
        BLOCK_LEN,
        footer::Footer,
        index::{self, BuiltIndex, IndexRow},
        states::States,
    },
    segment::{Extent, Segment},
    shared::Shared,
};

/// Index, directory, checkpoint and footer as one piece of bytes for `footer.index_at`.
pub(crate) struct Tail {
    pub(crate) bytes: Vec<u8>,
    pub(crate) footer: Footer,
}

pub(crate) fn tail(
    segment: &Segment,
    last_group: u64,
    index_at: u64,
    built: &BuiltIndex,
    states: Option<&States>,
) -> Tail {
    let runs = index::encode_runs(&built.runs);
    let none = States::default();
    let (has_states, states) = (states.is_some(), states.unwrap_or(&none));
    let checkpoint = states.encode();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let footer = Footer {
        uuid: segment.uuid,
        number: segment.number,
        rows: built.rows,
        first_group: segment.first_group,
        last_group,
        index_at,
        runs: count(built.runs.len()),
        states: count(states.ledgers.len()),
        deletions: count(states.deletions.len()),
        runs_crc: crc32c(&[segment.uuid.as_bytes(), &runs]),
        states_crc: crc32c(&[segment.uuid.as_bytes(), &checkpoint]),
        has_states,
    };
    let mut bytes = Vec::with_capacity(built.pages.len() + runs.len() + checkpoint.len() + 2 * BLOCK_LEN);
    bytes.extend_from_slice(&built.pages);
    bytes.extend_from_slice(&runs);
    bytes.extend_from_slice(&checkpoint);
    bytes.resize(bytes.len().next_multiple_of(BLOCK_LEN), 0);
    bytes.extend_from_slice(&footer.encode());
    Tail { bytes, footer }
}

/// The states of a lane that are not the default ones, and its deletions (R21).
pub(crate) fn checkpoint(shared: &Shared, lane: &Lane) -> States {
    let mut states = States::default();
    for ledger in shared.ledgers.of_lane(lane.index) {
        if let Some(row) = ledger.state.lock().checkpoint() {
            states.ledgers.insert(ledger.id.0, row);
        }
    }
    states.deletions = lane.hidden.lock().iter().map(|(l, h)| (l.0, h.deletion)).collect();
    states
}

impl Core {
    /// Seals the active segment. On `Stalled` it stays as it is, to be sealed before anything else is written.
    pub(crate) fn seal(&mut self, shared: &Shared) -> Result<(), RollError> {
        let Some(active) = &mut self.active else { return Ok(()) };
        active.must_seal = true;
        let segment = Arc::clone(&active.segment);
        let (data_end, last_group) = (active.data_end, active.last_group);
        let mut rows = Vec::new();
        for ledger in self.touched.values() {
            let state = ledger.state.lock();
            let Some(a) = &state.active else { continue };
            rows.extend(a.rows.iter().map(|r| IndexRow {
                ledger: ledger.id,
                entry: r.entry,
                place: r.place,
                lac: r.lac,
            }));
        }
        let built = index::build(segment.uuid, &rows);
        let states = checkpoint(shared, &self.lane);
        let tail = tail(&segment, last_group, data_end, &built, Some(&states));
        let len = tail.footer.file_len();
        if let Err(e) =
            segment.file.write_blocks_at(&[&tail.bytes], data_end).and_then(|()| segment.file.set_len(len))
        {
            return Err(self.stall(shared, "sealing a segment", &e));
        }
        segment.file.sync_data().map_err(|e| shared.poison("sync", &segment.path, &e))?;
        Self::count_written(shared, tail.bytes.len() as u64);
        self.mark_sealed(shared, &segment)?;
        segment.len.store(len, Ordering::Relaxed);
        // The extents may be used from here on, so the footer comes first.
        let _ = segment.footer.set(tail.footer);
        self.move_rows(&segment, &built);
        add(&shared.counters.sealed_segments, 1);
        self.active = None;
        self.closing_at = None;
        Ok(())
    }

    /// Notes in the control file that a footer is there, so that one that cannot be read later is known as damage.
    fn mark_sealed(&mut self, shared: &Shared, segment: &Segment) -> Result<(), RollError> {
        let mut control = self.lane.control.lock();
        let changed = control.change(&*shared.disk, |c| {
            if let Some(s) = c.segments.get_mut(&segment.number) {
                s.sealed = true;
            }
        });
        let path = control.path().to_path_buf();
        drop(control);
        match changed {
            Ok(()) => Ok(()),
            Err(DurableError::Untouched(e)) => Err(self.stall(shared, "control file", &e)),
            Err(DurableError::Unknown(e)) => Err(shared.poison("writing the control file", &path, &e).into()),
        }
    }

    /// Replaces the rows in memory by extents of the sealed index, ledger by ledger.
    fn move_rows(&mut self, segment: &Arc<Segment>, built: &BuiltIndex) {
        let mut runs = built.runs.iter().peekable();
        for (id, ledger) in std::mem::take(&mut self.touched) {
            let mut state = ledger.state.lock();
            while let Some(run) = runs.next_if(|r| r.ledger == id) {
                state.add_extent(Extent::of(run, segment.number));
            }
            if let Some(a) = &mut state.active {
                a.rows = Vec::new();
            }
            state.trim();
        }
        self.recent.clear();
        self.recent_bytes = 0;
    }
}
