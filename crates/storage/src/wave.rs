//! Reads of consecutive entries in full: found first, then read in as few and as large pieces as they lie in.

use std::{io, sync::Arc};

use bytes::Bytes;
use tidemill_types::{EntryId, LedgerId};

use crate::{
    format::index::Place,
    ledger::Located,
    lookup::{self, Resolved, check, negative},
    outcome::{ReadMode, ReadOutcome, UnknownReason},
    range::Item,
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
    Done(ReadOutcome),
    Read(Arc<Segment>, Place),
}

/// Finds one entry without reading it.
fn plan(shared: &Shared, id: LedgerId, entry: EntryId) -> Planned {
    loop {
        if shared.poisoned().is_some() {
            return Planned::Done(ReadOutcome::Unknown(UnknownReason::Stopped));
        }
        let Some(ledger) = shared.ledgers.get(id) else { return Planned::Done(negative(shared, None)) };
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
                // The single read says it with the right words.
                Resolved::Absent | Resolved::Failed(_) => {
                    return Planned::Done(lookup::read(shared, id, entry, ReadMode::Full));
                }
            },
            Located::Memory(bytes) => return Planned::Done(ReadOutcome::Entry(bytes)),
            Located::Pending | Located::Absent => {
                return Planned::Done(lookup::read(shared, id, entry, ReadMode::Full));
            }
        }
    }
}

/// Entries that lie close together in one segment, read at once.
#[derive(Default)]
struct Wave {
    segment: Option<Arc<Segment>>,
    start: u64,
    end: u64,
    entries: Vec<(EntryId, Place)>,
}

impl Wave {
    fn takes(&self, segment: &Arc<Segment>, place: Place) -> bool {
        let (from, to) = (u64::from(place.offset), u64::from(place.offset) + u64::from(place.len));
        self.segment.as_ref().is_some_and(|s| Arc::ptr_eq(s, segment))
            && from >= self.end
            && from - self.end <= MAX_GAP
            && to - self.start <= MAX_READ
    }

    fn add(&mut self, segment: Arc<Segment>, entry: EntryId, place: Place) {
        if self.entries.is_empty() {
            self.start = u64::from(place.offset);
            self.segment = Some(segment);
        }
        self.end = u64::from(place.offset) + u64::from(place.len);
        self.entries.push((entry, place));
    }

    /// Lets the disk begin with it.
    fn advise(&self) {
        if let Some(segment) = &self.segment {
            segment.file.will_need(self.start, self.end - self.start);
        }
    }

    fn read(self, shared: &Shared, id: LedgerId, out: &mut Vec<Item>) {
        let Some(segment) = self.segment else { return };
        if let [(entry, place)] = self.entries[..] {
            let key = Key { ledger: id, entry };
            out.push((entry, lookup::fetch(shared, &segment, place, key, ReadMode::Full)));
            return;
        }
        let mut bytes = vec![0; usize::try_from(self.end - self.start).unwrap_or(0)];
        let read = segment.file.read_exact_at(&mut bytes, self.start);
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

/// What becomes of a run of entries, in their order.
enum Step {
    Done(EntryId, ReadOutcome),
    Read(Wave),
}

/// The steps of a run, and the first entry behind it when only `max_bytes` ended it.
fn steps(
    shared: &Shared,
    id: LedgerId,
    first: EntryId,
    max_entries: usize,
    max_bytes: usize,
) -> (Vec<Step>, Option<EntryId>) {
    let mut steps = Vec::new();
    let (mut entry, mut bytes) = (first, 0);
    for count in 0..max_entries.min(MAX_AHEAD) {
        let planned = plan(shared, id, entry);
        bytes += match &planned {
            Planned::Done(ReadOutcome::Entry(b)) => b.len(),
            Planned::Done(_) => 0,
            Planned::Read(_, place) => place.len as usize,
        };
        if bytes > max_bytes && count > 0 {
            return (steps, Some(entry));
        }
        match planned {
            Planned::Done(outcome) => {
                let last = !matches!(outcome, ReadOutcome::Entry(_));
                steps.push(Step::Done(entry, outcome));
                if last {
                    break;
                }
            }
            Planned::Read(segment, place) => match steps.last_mut() {
                Some(Step::Read(wave)) if wave.takes(&segment, place) => wave.add(segment, entry, place),
                _ => {
                    let mut wave = Wave::default();
                    wave.add(segment, entry, place);
                    steps.push(Step::Read(wave));
                }
            },
        }
        entry = entry.next();
    }
    (steps, None)
}

fn advise(steps: &[Step]) {
    for step in steps {
        if let Step::Read(wave) = step {
            wave.advise();
        }
    }
}

/// Reads entries from `first` on. A segment holds what many ledgers wrote, so a run of one of them may lie in many pieces: the disk is told of all
/// of them before the first is waited for, and of as much again behind them, where a reader that was cut off goes on.
pub(crate) fn read(
    shared: &Shared,
    id: LedgerId,
    first: EntryId,
    max_entries: usize,
    max_bytes: usize,
    out: &mut Vec<Item>,
) {
    let (run, behind) = steps(shared, id, first, max_entries, max_bytes);
    if run.len() > 1 {
        advise(&run);
    }
    if let Some(next) = behind {
        advise(&steps(shared, id, next, max_entries, max_bytes).0);
    }
    for step in run {
        match step {
            Step::Done(entry, outcome) => out.push((entry, outcome)),
            Step::Read(wave) => wave.read(shared, id, out),
        }
    }
}
