//! Checking one sealed segment against its checksums, by its own index, without any cache.

use std::io;

use bytes::Bytes;
use tidemill_types::{Entry, LedgerId};

use crate::{
    format::{
        BLOCK, BLOCK_LEN,
        header::SegmentHeader,
        index::{self, Place, ROWS_PER_PAGE, Run},
    },
    segment::{IndexError, Segment},
};

/// One read covers at most this many bytes, and one larger entry alone.
const WINDOW: u64 = 1 << 20;

/// What of a segment is damaged beside entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadPart {
    Header,
    Footer,
    Directory,
    Checkpoint,
    Page,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) bytes: u64,
    pub(crate) bad_part: Option<BadPart>,
    /// Entries that fail their digest, are others than the index says, or whose place cannot be told any more.
    pub(crate) bad: Vec<(LedgerId, i64)>,
}

struct Row {
    place: Place,
    ledger: LedgerId,
    entry: i64,
}

/// Reads all of a sealed segment. `wanted` names the runs (ledger, first row) whose entries are live; `pace` is called with the bytes
/// read and says whether to go on. `Ok(None)`: it said no.
///
/// # Errors
/// A read failed.
pub(crate) fn check_segment(
    segment: &Segment,
    wanted: &dyn Fn(LedgerId, u32) -> bool,
    pace: &dyn Fn(u64) -> bool,
) -> io::Result<Option<Checked>> {
    let mut out = Checked::default();
    let Some(footer) = segment.footer.get() else { return Ok(Some(out)) };
    out.bytes = 2 * BLOCK + footer.runs_len() + footer.states_len();
    let mut block = vec![0; BLOCK_LEN];
    segment.file.read_exact_at(&mut block, 0)?;
    let header = SegmentHeader::decode(&block);
    if header.is_none_or(|h| h.uuid != segment.uuid || h.number != segment.number) {
        out.bad_part = Some(BadPart::Header);
    }
    if segment.read_footer()?.as_ref() != Some(footer) {
        out.bad_part = Some(BadPart::Footer);
    }
    if footer.has_states && is_damaged(segment.read_states(footer))?.is_none() {
        out.bad_part = Some(BadPart::Checkpoint);
    }
    let Some(runs) = is_damaged(segment.read_runs(footer))? else {
        out.bad_part = Some(BadPart::Directory);
        return Ok(Some(out));
    };
    let Some(mut rows) = rows(segment, footer.index_at, &runs, wanted, pace, &mut out)? else {
        return Ok(None);
    };
    rows.sort_unstable_by_key(|r| r.place.offset);
    let mut rest = &rows[..];
    while let Some(first) = rest.first() {
        let start = u64::from(first.place.offset);
        let end = |r: &Row| u64::from(r.place.offset) + u64::from(r.place.len);
        let n = rest.iter().take_while(|r| end(r) - start <= WINDOW).count().max(1);
        let (window, others) = rest.split_at(n);
        rest = others;
        let len = window.iter().map(end).max().unwrap_or(start) - start;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let read = segment.file.read_at(&mut bytes, start)?;
        bytes.truncate(read);
        check_window(&Bytes::from(bytes), start, window, &mut out.bad);
        out.bytes += len;
        if !pace(len) {
            return Ok(None);
        }
    }
    Ok(Some(out))
}

fn is_damaged<T>(read: Result<T, IndexError>) -> io::Result<Option<T>> {
    match read {
        Ok(t) => Ok(Some(t)),
        Err(IndexError::Damaged) => Ok(None),
        Err(IndexError::Io(e)) => Err(e),
    }
}

/// The places of all wanted entries; `None`: told to stop.
fn rows(
    segment: &Segment,
    index_at: u64,
    runs: &[Run],
    wanted: &dyn Fn(LedgerId, u32) -> bool,
    pace: &dyn Fn(u64) -> bool,
    out: &mut Checked,
) -> io::Result<Option<Vec<Row>>> {
    let mut rows = Vec::new();
    let mut page: Option<(u32, Option<Vec<u8>>)> = None;
    for run in runs.iter().filter(|r| wanted(r.ledger, r.row)) {
        for row in run.row..run.row + run.count {
            let number = row / ROWS_PER_PAGE;
            if page.as_ref().is_none_or(|(n, _)| *n != number) {
                let mut bytes = vec![0; BLOCK_LEN];
                segment.file.read_exact_at(&mut bytes, index_at + u64::from(number) * BLOCK)?;
                out.bytes += BLOCK;
                if !pace(BLOCK) {
                    return Ok(None);
                }
                let good = index::check_page(segment.uuid, number, &bytes);
                if !good {
                    out.bad_part = Some(BadPart::Page);
                }
                page = Some((number, good.then_some(bytes)));
            }
            let found = page.as_ref().and_then(|(_, p)| index::page_row(p.as_ref()?, row % ROWS_PER_PAGE));
            match found {
                Some((delta, place)) => {
                    rows.push(Row { place, ledger: run.ledger, entry: run.first + i64::from(delta) });
                }
                // Only a run without gaps still tells which entry this was; in others each one is suspected.
                None if run.last - run.first + 1 == i64::from(run.count) => {
                    out.bad.push((run.ledger, run.first + i64::from(row - run.row)));
                }
                None => out.bad.extend((run.first..=run.last).map(|e| (run.ledger, e))),
            }
        }
    }
    out.bad.sort_unstable();
    out.bad.dedup();
    Ok(Some(rows))
}

fn check_window(bytes: &Bytes, start: u64, window: &[Row], bad: &mut Vec<(LedgerId, i64)>) {
    for r in window {
        let from = usize::try_from(u64::from(r.place.offset) - start).unwrap_or(usize::MAX);
        let to = from.saturating_add(r.place.len as usize);
        let entry = (to <= bytes.len()).then(|| Entry::decode(bytes.slice(from..to)).ok()).flatten();
        let good = entry.is_some_and(|e| e.header().ledger == r.ledger && e.header().entry.0 == r.entry);
        if !good {
            bad.push((r.ledger, r.entry));
        }
    }
}
