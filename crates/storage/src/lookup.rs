//! Finding and reading one entry. An error on the way is an unknown, damage is `Corrupt`, and only an index that is whole says no (R14).

use bytes::Bytes;
use tidemill_types::{Entry, EntryHeader, EntryId, LedgerId, entry::HEADER_LEN};

use crate::{
    counters::add,
    format::index::Place,
    lane::Lane,
    ledger::{Ledger, LedgerState, Located},
    outcome::{ReadMode, ReadOutcome, UnknownReason},
    segment::{Extent, IndexError, Key, Segment},
    shared::Shared,
};

/// First read of a header-only read, bytes: most envelopes fit.
const HEAD_GUESS: usize = 1024;

/// Where an entry lies, after the index was asked.
pub(crate) enum Resolved {
    At(std::sync::Arc<Segment>, Place),
    Absent,
    /// A segment was replaced meanwhile: look the ledger up again.
    Moved,
    Failed(IndexError),
}

/// Asks the extents, the newest first.
pub(crate) fn resolve(shared: &Shared, lane: &Lane, extents: &[Extent], entry: i64) -> Resolved {
    for x in extents {
        let Some(segment) = lane.segment(x.segment) else { return Resolved::Moved };
        match segment.find(&shared.cache, x, entry) {
            Ok(Some(place)) => return Resolved::At(segment, place),
            Ok(None) => {}
            Err(e) => return Resolved::Failed(e),
        }
    }
    Resolved::Absent
}

fn failed(shared: &Shared, error: &IndexError) -> ReadOutcome {
    match error {
        IndexError::Io(error) => {
            tracing::warn!(%error, "an index page cannot be read");
            ReadOutcome::Unknown(UnknownReason::Io)
        }
        IndexError::Damaged => {
            add(&shared.counters.corrupt_reads, 1);
            ReadOutcome::Corrupt
        }
    }
}

/// What is said about an entry that the index does not have.
pub(crate) fn negative(shared: &Shared, state: Option<&LedgerState>) -> ReadOutcome {
    if shared.limbo() {
        tracing::debug!(target: "tidemill_rare", "nothing denied in limbo");
        return ReadOutcome::Unknown(UnknownReason::Limbo);
    }
    match state {
        Some(s) if s.collecting => ReadOutcome::Unknown(UnknownReason::Collecting),
        Some(_) => ReadOutcome::NoSuchEntry,
        None => ReadOutcome::NoSuchLedger,
    }
}

fn cut(bytes: &Bytes, mode: ReadMode) -> Bytes {
    match mode {
        ReadMode::Full => bytes.clone(),
        ReadMode::Head => {
            let end = EntryHeader::parse(bytes).map_or(bytes.len(), |h| h.head_len());
            bytes.slice(..end.min(bytes.len()))
        }
    }
}

/// Checks what was read against its digests and against what was asked.
pub(crate) fn check(shared: &Shared, bytes: &Bytes, key: Key, mode: ReadMode) -> ReadOutcome {
    let good = |h: &EntryHeader| h.ledger == key.ledger && h.entry == key.entry;
    let ok = match mode {
        ReadMode::Full => Entry::decode(bytes.clone()).is_ok_and(|e| good(e.header())),
        ReadMode::Head => EntryHeader::parse(bytes).is_ok_and(|h| good(&h) && h.check_head(bytes).is_ok()),
    };
    if ok {
        return ReadOutcome::Entry(cut(bytes, mode));
    }
    add(&shared.counters.corrupt_reads, 1);
    shared.damage.note(key.ledger, key.entry.0, key.entry.0);
    tracing::error!(ledger = key.ledger.0, entry = key.entry.0, "a stored entry fails its check");
    ReadOutcome::Corrupt
}

/// Reads and checks an entry at its place.
pub(crate) fn fetch(
    shared: &Shared,
    segment: &Segment,
    place: Place,
    key: Key,
    mode: ReadMode,
) -> ReadOutcome {
    let first = match mode {
        ReadMode::Full => place.len as usize,
        ReadMode::Head => HEAD_GUESS,
    };
    let mut read = segment.read(place, first);
    if mode == ReadMode::Head
        && let Ok(bytes) = &read
        && let Ok(h) = EntryHeader::parse(bytes)
        && h.head_len() > bytes.len()
        && h.head_len() <= place.len as usize
    {
        read = segment.read(place, h.head_len());
    }
    match read {
        Ok(bytes) => check(shared, &bytes, key, mode),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => failed(shared, &IndexError::Damaged),
        Err(error) => {
            tracing::warn!(%error, path = %segment.path.display(), "an entry cannot be read");
            ReadOutcome::Unknown(UnknownReason::Io)
        }
    }
}

/// Reads an entry while the ledger is locked; `None` when a segment was replaced meanwhile, which the lock rules out.
pub(crate) fn in_state(
    shared: &Shared,
    ledger: &Ledger,
    state: &LedgerState,
    entry: EntryId,
    mode: ReadMode,
) -> Option<ReadOutcome> {
    let located = state.locate(entry.0);
    // Only presence is asked: limbo does not matter, or nothing could be repaired in it.
    outcome_of(shared, ledger, located, entry, mode, || ReadOutcome::NoSuchEntry)
}

/// Where `locate` said; `None` = moved.
fn outcome_of(
    shared: &Shared,
    ledger: &Ledger,
    located: Located,
    entry: EntryId,
    mode: ReadMode,
    absent: impl FnOnce() -> ReadOutcome,
) -> Option<ReadOutcome> {
    let lane = shared.lane_of(ledger);
    let key = Key { ledger: ledger.id, entry };
    Some(match located {
        Located::Memory(bytes) => ReadOutcome::Entry(cut(&bytes, mode)),
        Located::Pending => ReadOutcome::Unknown(UnknownReason::Pending),
        Located::Absent => absent(),
        Located::At(segment, place) => fetch(shared, &*lane.segment(segment)?, place, key, mode),
        Located::Sealed(extents) => match resolve(shared, lane, &extents, entry.0) {
            Resolved::At(segment, place) => fetch(shared, &segment, place, key, mode),
            Resolved::Absent => absent(),
            Resolved::Moved => return None,
            Resolved::Failed(e) => failed(shared, &e),
        },
    })
}

/// Reads one entry.
pub(crate) fn read(shared: &Shared, id: LedgerId, entry: EntryId, mode: ReadMode) -> ReadOutcome {
    loop {
        if shared.poisoned().is_some() {
            return ReadOutcome::Unknown(UnknownReason::Stopped);
        }
        let Some(ledger) = shared.ledgers.get(id) else { return negative(shared, None) };
        let state = ledger.state.lock();
        if state.dead {
            continue;
        }
        let located = state.locate(entry.0);
        // Decided under the lock: an add accepted later comes after this answer. A sparse extent that has a gap may hide an accepted add.
        let pending = state.pending_bytes(entry.0).is_some();
        let absent = if pending {
            ReadOutcome::Unknown(UnknownReason::Pending)
        } else {
            negative(shared, Some(&state))
        };
        drop(state);
        if let Some(outcome) = outcome_of(shared, &ledger, located, entry, mode, || absent) {
            return outcome;
        }
    }
}

/// Reads one entry if that needs no disk.
pub(crate) fn read_cached(
    shared: &Shared,
    id: LedgerId,
    entry: EntryId,
    mode: ReadMode,
) -> Option<ReadOutcome> {
    if shared.poisoned().is_some() {
        return Some(ReadOutcome::Unknown(UnknownReason::Stopped));
    }
    let Some(ledger) = shared.ledgers.get(id) else { return Some(negative(shared, None)) };
    let state = ledger.state.lock();
    if state.dead {
        return None;
    }
    match state.locate(entry.0) {
        Located::Memory(bytes) => Some(ReadOutcome::Entry(cut(&bytes, mode))),
        Located::Pending => Some(ReadOutcome::Unknown(UnknownReason::Pending)),
        Located::Absent => Some(negative(shared, Some(&state))),
        Located::At(..) | Located::Sealed(_) => None,
    }
}

const _: () = assert!(HEAD_GUESS > HEADER_LEN);
