//! Reads of consecutive entries, and what is held of a ledger.

use std::{io, sync::Arc};

use bytes::Bytes;
use tidemill_types::{EntryId, EntryRange, LedgerId};

use crate::{
    format::index::Place,
    ledger::Located,
    lookup::{self, Resolved, check, negative},
    outcome::{LastEntryOutcome, RangesOutcome, ReadMode, ReadOutcome, UnknownReason},
    segment::{IndexError, Key, Segment},
    shared::Shared,
};

/// One read from the disk covers at most this many bytes.
const MAX_READ: u64 = 1 << 20;
/// Entries of others between two of ours that are read along rather than skipped.
const MAX_GAP: u64 = 16 << 10;
/// Entries that are looked up ahead.
const MAX_AHEAD: usize = 1024;

type Item = (EntryId, ReadOutcome);

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

/// See [`crate::Engine::read_range`].
pub(crate) fn read_range(
    shared: &Shared,
    id: LedgerId,
    first: EntryId,
    max_entries: usize,
    max_bytes: usize,
    mode: ReadMode,
) -> Vec<Item> {
    let mut out = Vec::new();
    if mode == ReadMode::Head {
        read_heads(shared, id, first, max_entries, max_bytes, &mut out);
    } else {
        read_full(shared, id, first, max_entries.min(MAX_AHEAD), max_bytes, &mut out);
    }
    if let Some(end) = out.iter().position(|(_, o)| !matches!(o, ReadOutcome::Entry(_))) {
        out.truncate(end + 1);
    }
    out
}

fn read_heads(
    shared: &Shared,
    id: LedgerId,
    first: EntryId,
    max_entries: usize,
    max_bytes: usize,
    out: &mut Vec<Item>,
) {
    let (mut entry, mut bytes) = (first, 0);
    while out.len() < max_entries {
        let outcome = lookup::read(shared, id, entry, ReadMode::Head);
        let ReadOutcome::Entry(b) = &outcome else {
            out.push((entry, outcome));
            return;
        };
        bytes += b.len();
        if bytes > max_bytes && !out.is_empty() {
            return;
        }
        out.push((entry, outcome));
        entry = entry.next();
    }
}

fn read_full(
    shared: &Shared,
    id: LedgerId,
    first: EntryId,
    max_entries: usize,
    max_bytes: usize,
    out: &mut Vec<Item>,
) {
    let mut wave = Wave::default();
    let (mut entry, mut bytes, mut count) = (first, 0, 0);
    while count < max_entries {
        let planned = plan(shared, id, entry);
        bytes += match &planned {
            Planned::Done(ReadOutcome::Entry(b)) => b.len(),
            Planned::Done(_) => 0,
            Planned::Read(_, place) => place.len as usize,
        };
        if bytes > max_bytes && count > 0 {
            break;
        }
        match planned {
            Planned::Done(outcome) => {
                std::mem::take(&mut wave).read(shared, id, out);
                let last = !matches!(outcome, ReadOutcome::Entry(_));
                out.push((entry, outcome));
                if last {
                    return;
                }
            }
            Planned::Read(segment, place) => {
                if !wave.takes(&segment, place) {
                    std::mem::take(&mut wave).read(shared, id, out);
                }
                wave.add(segment, entry, place);
            }
        }
        entry = entry.next();
        count += 1;
    }
    wave.read(shared, id, out);
}

/// See [`crate::Engine::last_entry`].
pub(crate) fn last_entry(shared: &Shared, id: LedgerId, mode: ReadMode) -> LastEntryOutcome {
    let last = match shared.ledgers.get(id) {
        None => None,
        Some(l) => {
            let state = l.state.lock();
            if state.collecting {
                return LastEntryOutcome::Unknown(UnknownReason::Collecting);
            }
            Some(EntryId(state.last))
        }
    };
    match last {
        Some(last) if last >= EntryId::FIRST => {
            LastEntryOutcome::Last(last, lookup::read(shared, id, last, mode))
        }
        _ if shared.limbo() => LastEntryOutcome::Unknown(UnknownReason::Limbo),
        Some(_) => LastEntryOutcome::Empty,
        None => LastEntryOutcome::NoSuchLedger,
    }
}

/// See [`crate::Engine::ranges`].
pub(crate) fn ranges(shared: &Shared, id: LedgerId) -> RangesOutcome {
    loop {
        let Some(ledger) = shared.ledgers.get(id) else {
            return if shared.limbo() {
                RangesOutcome::Unknown(UnknownReason::Limbo)
            } else {
                RangesOutcome::NoSuchLedger
            };
        };
        let (extents, mut entries, pending) = {
            let state = ledger.state.lock();
            if state.dead {
                continue;
            }
            if state.collecting {
                return RangesOutcome::Unknown(UnknownReason::Collecting);
            }
            let rows: Vec<(i64, i64)> = state
                .active
                .as_ref()
                .map(|a| a.rows.iter().map(|r| (r.entry, r.entry)).collect())
                .unwrap_or_default();
            (state.extents.clone(), rows, state.pending() > 0)
        };
        let lane = shared.lane_of(&ledger);
        let mut moved = false;
        for x in &extents {
            if x.is_dense() {
                entries.push((x.first, x.last));
                continue;
            }
            let Some(segment) = lane.segment(x.segment) else {
                moved = true;
                break;
            };
            for row in x.row..x.row + x.count {
                match segment.row(&shared.cache, x.first, row) {
                    Ok((entry, _)) => entries.push((entry, entry)),
                    // An index that cannot be read denies nothing (R14).
                    Err(IndexError::Io(_) | IndexError::Damaged) => {
                        return RangesOutcome::Unknown(UnknownReason::Io);
                    }
                }
            }
        }
        if !moved {
            // A damaged copy is none, and is not denied either (R14): a repair brings another one (R24).
            let held = join(entries);
            let ranges = shared.damage.cut(id, held.clone());
            let complete = !shared.limbo() && !pending && ranges == held;
            return RangesOutcome::Ranges { ranges, complete };
        }
    }
}

/// Joins ranges that touch or overlap.
fn join(mut ranges: Vec<(i64, i64)>) -> Vec<EntryRange> {
    ranges.sort_unstable();
    let mut out: Vec<EntryRange> = Vec::new();
    for (first, last) in ranges {
        match out.last_mut() {
            Some(r) if first <= r.last.0 + 1 => r.last = EntryId(r.last.0.max(last)),
            _ => out.push(EntryRange { first: EntryId(first), last: EntryId(last) }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined() {
        let r = |a, b| EntryRange { first: EntryId(a), last: EntryId(b) };
        assert_eq!(join(vec![(5, 5), (0, 2), (3, 3), (1, 2), (7, 9)]), [r(0, 3), r(5, 5), r(7, 9)]);
    }
}
