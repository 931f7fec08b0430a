//! Reads of consecutive entries in full: found first, then read in as few and as large pieces as they lie in.

use std::{io, sync::Arc};

use bytes::Bytes;
use tidemill_types::{EntryId, LedgerId};

use crate::{
    format::index::Place,
    ledger::Located,
    lookup::{self, Resolved, check},
    outcome::{ReadMode, ReadOutcome, UnknownReason},
    range::{Item, Wanted},
    segment::{Key, Segment},
    shared::Shared,
};

/// One read from the disk covers at most this many bytes.
const MAX_READ: u64 = 1 << 20;
/// Entries of others between two of ours that are read along rather than skipped.
const MAX_GAP: u64 = 16 << 10;
/// Entries that are looked up ahead.
const MAX_AHEAD: usize = 1024;

enum Planned {
    Memory(Bytes),
    Read(Arc<Segment>, Place),
    /// The single read says what becomes of it, with the right words.
    Single,
}

/// Finds one entry without reading it.
fn plan(shared: &Shared, id: LedgerId, entry: EntryId) -> Planned {
    loop {
        if shared.poisoned().is_some() {
            return Planned::Single;
        }
        let Some(ledger) = shared.ledgers.get(id) else { return Planned::Single };
        let located = {
            let state = ledger.state.lock();
            if state.dead { continue } else { state.locate(entry.0) }
        };
        let lane = shared.lane_of(&ledger);
        match located {
            Located::At(number, place) => {
                if let Some(segment) = lane.segment(number) {
                    return Planned::Read(segment, place);
                }
            }
            Located::Sealed(extents) => match lookup::resolve(shared, lane, &extents, entry.0) {
                Resolved::At(segment, place) => return Planned::Read(segment, place),
                Resolved::Moved => {}
                Resolved::Absent | Resolved::Failed(_) => return Planned::Single,
            },
            Located::Memory(bytes) => return Planned::Memory(bytes),
            Located::Pending | Located::Absent => return Planned::Single,
        }
    }
}

/// Entries that lie close together in one segment, read at once.
struct Wave {
    segment: Arc<Segment>,
    start: u64,
    end: u64,
    entries: Vec<(EntryId, Place)>,
}

fn bounds(place: Place) -> (u64, u64) {
    let start = u64::from(place.offset);
    (start, start + u64::from(place.len))
}

impl Wave {
    fn new(segment: Arc<Segment>, entry: EntryId, place: Place) -> Self {
        let (start, end) = bounds(place);
        Self { segment, start, end, entries: vec![(entry, place)] }
    }

    fn takes(&self, segment: &Arc<Segment>, place: Place) -> bool {
        let (from, to) = bounds(place);
        Arc::ptr_eq(&self.segment, segment)
            && from >= self.end
            && from - self.end <= MAX_GAP
            && to - self.start <= MAX_READ
    }

    fn add(&mut self, entry: EntryId, place: Place) {
        self.end = bounds(place).1;
        self.entries.push((entry, place));
    }

    fn read(self, shared: &Shared, id: LedgerId, out: &mut Vec<Item>) {
        if let [(entry, place)] = self.entries[..] {
            let key = Key { ledger: id, entry };
            out.push((entry, lookup::fetch(shared, &self.segment, place, key, ReadMode::Full)));
            return;
        }
        let mut bytes = vec![0; usize::try_from(self.end - self.start).unwrap_or(0)];
        let read = self.segment.file.read_exact_at(&mut bytes, self.start);
        let bytes = Bytes::from(bytes);
        for (entry, place) in self.entries {
            let key = Key { ledger: id, entry };
            let outcome = match &read {
                Ok(()) => {
                    let from = usize::try_from(u64::from(place.offset) - self.start).unwrap_or(0);
                    check(shared, &bytes.slice(from..from + place.len as usize), key, ReadMode::Full)
                }
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => ReadOutcome::Corrupt,
                Err(_) => ReadOutcome::Unknown(UnknownReason::Io),
            };
            out.push((entry, outcome));
        }
    }
}

/// What is done for a run of entries, in their order.
enum Step {
    Memory(EntryId, Bytes),
    Read(Wave),
    Single(EntryId),
}

/// The steps of a run, and the first entry behind it when only `max_bytes` ended it.
fn steps(shared: &Shared, wanted: Wanted) -> (Vec<Step>, Option<EntryId>) {
    let mut steps = Vec::new();
    let (mut entry, mut bytes) = (wanted.first, 0);
    for count in 0..wanted.max_entries.min(MAX_AHEAD) {
        let planned = plan(shared, wanted.ledger, entry);
        bytes += match &planned {
            Planned::Memory(b) => b.len(),
            Planned::Read(_, place) => place.len as usize,
            Planned::Single => 0,
        };
        if bytes > wanted.max_bytes && count > 0 {
            return (steps, Some(entry));
        }
        match planned {
            Planned::Memory(bytes) => steps.push(Step::Memory(entry, bytes)),
            Planned::Read(segment, place) => match steps.last_mut() {
                Some(Step::Read(wave)) if wave.takes(&segment, place) => wave.add(entry, place),
                _ => steps.push(Step::Read(Wave::new(segment, entry, place))),
            },
            Planned::Single => {
                steps.push(Step::Single(entry));
                break;
            }
        }
        entry = entry.next();
    }
    (steps, None)
}

/// Lets the disk begin with what is not in memory.
fn advise(steps: &[Step]) {
    for step in steps {
        if let Step::Read(wave) = step {
            wave.segment.file.will_need(wave.start, wave.end - wave.start);
        }
    }
}

/// Reads a run of entries in full. A segment holds what many ledgers wrote, so a run of one of them may lie in many pieces: the disk is told of
/// all of them before the first is waited for, and of as much again behind them, where a reader that was cut off goes on.
pub(crate) fn read(shared: &Shared, wanted: Wanted, out: &mut Vec<Item>) {
    let (now, behind) = steps(shared, wanted);
    if now.len() > 1 {
        advise(&now);
    }
    if let Some(first) = behind {
        advise(&steps(shared, Wanted { first, ..wanted }).0);
    }
    for step in now {
        match step {
            Step::Memory(entry, bytes) => out.push((entry, ReadOutcome::Entry(bytes))),
            Step::Read(wave) => wave.read(shared, wanted.ledger, out),
            Step::Single(entry) => {
                out.push((entry, lookup::read(shared, wanted.ledger, entry, ReadMode::Full)));
            }
        }
    }
}
