//! Copying what is live into a new sealed segment, sorted by ledger and entry.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use tidemill_types::{EntryHeader, EntryId, LedgerId};

use super::{Handles, Stop, unlink};
use crate::{
    counters::add,
    format::{
        BLOCK, block_up,
        control::segment_name,
        group::{GROUP_HEAD, GroupBuilder},
        header::SegmentHeader,
        index::{self, IndexRow, Place, Run},
        record,
    },
    lane::{Lane, seal},
    ledger::Located,
    lookup::{self, Resolved},
    outcome::{ReadMode, ReadOutcome},
    segment::{IndexError, Key, Segment},
    shared::Shared,
};

/// The new segment, sealed and synced, not listed yet.
pub(super) struct Copied {
    pub(super) segment: Arc<Segment>,
    pub(super) runs: Vec<Run>,
    /// Every ledger that the sources name, by the handle that it had when it was copied.
    pub(super) ledgers: Handles,
}

struct Live {
    ledger: LedgerId,
    entry: i64,
    segment: Arc<Segment>,
    place: Place,
}

fn kept(error: &io::Error, segment: &Segment) -> Stop {
    tracing::warn!(%error, path = %segment.path.display(), "rewriting stopped, the old segments stay");
    Stop::Kept
}

/// Damage in a source: it is kept for good, so that what it held is never denied (R14).
fn keep(segment: &Segment) -> Stop {
    tracing::error!(path = %segment.path.display(), "a segment is damaged and stays as it is");
    segment.keep.store(true, Ordering::Relaxed);
    Stop::Kept
}

fn index_error(e: &IndexError, segment: &Segment) -> Stop {
    match e {
        IndexError::Io(e) => kept(e, segment),
        IndexError::Damaged => keep(segment),
    }
}

/// Lists the live entries of the sources.
fn live(
    shared: &Shared,
    lane: &Lane,
    sources: &[Arc<Segment>],
    ledgers: &mut Handles,
) -> Result<Vec<Live>, Stop> {
    let mut out = Vec::new();
    for source in sources {
        let Some(footer) = source.footer.get() else { return Err(keep(source)) };
        let runs = source.read_runs(footer).map_err(|e| index_error(&e, source))?;
        for run in runs {
            let Some(ledger) = shared.ledgers.get(run.ledger) else { continue };
            ledgers.entry(run.ledger).or_insert_with(|| Arc::clone(&ledger));
            for row in run.row..run.row + run.count {
                let (entry, place) =
                    source.row(&shared.cache, run.first, row).map_err(|e| index_error(&e, source))?;
                let located = ledger.state.lock().locate(entry);
                let Located::Sealed(extents) = located else { continue };
                match lookup::resolve(shared, lane, &extents, entry) {
                    Resolved::At(s, p) if s.number == source.number && p == place => {
                        out.push(Live { ledger: run.ledger, entry, segment: s, place });
                    }
                    Resolved::Failed(e) => return Err(index_error(&e, source)),
                    Resolved::At(..) | Resolved::Absent | Resolved::Moved => {}
                }
            }
        }
    }
    out.sort_by_key(|l| (l.ledger, l.entry));
    Ok(out)
}

fn read(shared: &Shared, l: &Live) -> Result<Bytes, Stop> {
    let key = Key { ledger: l.ledger, entry: EntryId(l.entry) };
    match lookup::fetch(shared, &l.segment, l.place, key, ReadMode::Full) {
        ReadOutcome::Entry(b) => Ok(b),
        ReadOutcome::Corrupt => Err(keep(&l.segment)),
        _ => Err(Stop::Kept),
    }
}

/// Bytes that the new segment will have: on a full disk it may not take more than it says.
fn size(entries: &[Live], group_bytes: usize) -> u64 {
    let (mut data, mut group, mut ledgers) = (0, 0, 0);
    let close = |group: u64| if group == 0 { 0 } else { block_up(GROUP_HEAD as u64 + group) };
    for (i, l) in entries.iter().enumerate() {
        let len = u64::from(l.place.len);
        if group > 0 && group + len > group_bytes as u64 {
            data += close(std::mem::take(&mut group));
        }
        group += record::RECORD_HEAD as u64 + len;
        ledgers += u64::from(i == 0 || entries[i - 1].ledger != l.ledger);
    }
    let pages = (entries.len() as u64).div_ceil(u64::from(index::ROWS_PER_PAGE));
    BLOCK + data + close(group) + pages * BLOCK + block_up(ledgers * index::RUN as u64) + BLOCK
}

/// Writes the new segment.
pub(super) fn copy(
    shared: &Shared,
    lane: &Lane,
    sources: &[Arc<Segment>],
    throttle: &dyn Fn(u64),
) -> Result<Copied, Stop> {
    // The number comes first: a deletion made from now on has a bound above it and hides what is being copied.
    let number = lane.control.lock().allocate();
    let mut ledgers = Handles::new();
    let entries = live(shared, lane, sources, &mut ledgers)?;
    let path = lane.dir.join(segment_name(number));
    let size = size(&entries, shared.config.group_bytes);
    // Nobody takes the room between the reserve's end and this file's beginning.
    let file = match shared.cores[usize::from(lane.index)].lock().copy_file(shared, &path, size) {
        Ok(f) => f,
        Err(error) => {
            tracing::warn!(%error, size, "no room to rewrite segments");
            return Err(Stop::Kept);
        }
    };
    let segment = Segment {
        lane: lane.index,
        number,
        uuid: (shared.config.new_uuid)(),
        rewritten: true,
        path,
        file,
        first_group: 1,
        len: AtomicU64::new(size),
        live: AtomicI64::new(0),
        keep: AtomicBool::new(false),
        footer: OnceLock::new(),
    };
    match fill(shared, lane, &segment, &entries, throttle) {
        Ok(runs) => Ok(Copied { segment: Arc::new(segment), runs, ledgers }),
        Err(stop) => {
            if matches!(stop, Stop::Kept) {
                unlink(shared, &segment.path);
            }
            Err(stop)
        }
    }
}

fn fill(
    shared: &Shared,
    lane: &Lane,
    segment: &Segment,
    entries: &[Live],
    throttle: &dyn Fn(u64),
) -> Result<Vec<Run>, Stop> {
    let write = |parts: &[&[u8]], at: u64| {
        segment.file.write_blocks_at(parts, at).map_err(|e| kept(&e, segment))?;
        let len = parts.iter().map(|p| p.len() as u64).sum();
        add(&shared.counters.rewritten_bytes, len);
        throttle(len);
        Ok::<u64, Stop>(at + len)
    };
    let header = SegmentHeader {
        lane: lane.uuid,
        uuid: segment.uuid,
        number: segment.number,
        rewritten: true,
        first_group: 1,
    };
    let mut at = write(&[&header.encode()], 0)?;
    let fatal = |e: io::Error, path| Stop::Fatal(shared.poison("sync", path, &e));
    // Durable before the first group: a boot that finds groups under a header that it cannot read must take them for data (R21).
    segment.file.sync_data().map_err(|e| fatal(e, &segment.path))?;
    let mut rows = Vec::with_capacity(entries.len());
    let mut builder = GroupBuilder::default();
    builder.clear();
    let mut group = 1;
    for l in entries {
        let bytes = read(shared, l)?;
        if !builder.is_empty() && builder.len() + bytes.len() > shared.config.group_bytes {
            at = write(&builder.finish(segment.uuid, group, false), at)?;
            group += 1;
            builder.clear();
        }
        let in_group = builder.push(|b| record::put_entry(b, record::ADD, &bytes));
        let place =
            Place { offset: u32::try_from(at + in_group as u64).map_err(|_| Stop::Kept)?, len: l.place.len };
        let lac = EntryHeader::parse(&bytes).map_or(-1, |h| h.lac.0);
        rows.push(IndexRow { ledger: l.ledger, entry: l.entry, place, lac });
    }
    if !builder.is_empty() {
        at = write(&builder.finish(segment.uuid, group, false), at)?;
        group += 1;
    }
    debug_assert_eq!(at, block_up(at.max(GROUP_HEAD as u64)));
    let built = index::build(segment.uuid, &rows);
    let tail = seal::tail(segment, group - 1, at, &built, None);
    write(&[&tail.bytes], at)?;
    let len = tail.footer.file_len();
    segment.file.set_len(len).map_err(|e| kept(&e, segment))?;
    segment.file.sync_data().map_err(|e| fatal(e, &segment.path))?;
    shared.disk.sync_dir(&lane.dir).map_err(|e| fatal(e, &lane.dir))?;
    segment.len.store(len, Ordering::Relaxed);
    let _ = segment.footer.set(tail.footer);
    Ok(built.runs)
}
