//! The sealed index of a segment: rows in pages, sorted by ledger and entry, and a directory with one row per run of a ledger.
//!
//! Page, 4096 bytes: 340 rows of 12 bytes {entry minus the run's first (4), offset of the entry's bytes in the file (4), length (4)}, page
//! number (4), count of rows (4), zero (4), CRC-32C of the segment's uuid and of bytes 0..4092 (4).
//!
//! Directory row, 48 bytes: ledger (8), first entry (8), last entry (8), highest piggybacked LAC (8), first row (4), count of rows (4), bytes
//! of the entries (4), zero (4).

use tidemill_types::{LedgerId, entry::crc32c};
use uuid::Uuid;

use super::{BLOCK_LEN, codec::Reader};

pub(crate) const ROW: usize = 12;
pub(crate) const ROWS_PER_PAGE: u32 = 340;
pub(crate) const RUN: usize = 48;
const PAGE_CRC_AT: usize = BLOCK_LEN - 4;

/// Where an entry's bytes lie in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

/// One entry to be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRow {
    pub(crate) ledger: LedgerId,
    pub(crate) entry: i64,
    pub(crate) place: Place,
    pub(crate) lac: i64,
}

/// A run of entries of one ledger in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ledger: LedgerId,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) max_lac: i64,
    pub(crate) row: u32,
    pub(crate) count: u32,
    pub(crate) bytes: u32,
}

/// The encoded index of a segment.
#[derive(Debug, Default)]
pub(crate) struct BuiltIndex {
    pub(crate) pages: Vec<u8>,
    pub(crate) rows: u32,
    pub(crate) runs: Vec<Run>,
}

/// Encodes rows that are sorted by ledger and entry and have no duplicates.
pub(crate) fn build(uuid: Uuid, rows: &[IndexRow]) -> BuiltIndex {
    let mut out = BuiltIndex::default();
    for page_rows in rows.chunks(ROWS_PER_PAGE as usize) {
        let page_start = out.pages.len();
        for r in page_rows {
            let base = match out.runs.last_mut() {
                Some(run) if run.ledger == r.ledger && u32::try_from(r.entry - run.first).is_ok() => {
                    run.last = r.entry;
                    run.max_lac = run.max_lac.max(r.lac);
                    run.count += 1;
                    run.bytes = run.bytes.saturating_add(r.place.len);
                    run.first
                }
                _ => {
                    out.runs.push(Run {
                        ledger: r.ledger,
                        first: r.entry,
                        last: r.entry,
                        max_lac: r.lac,
                        row: out.rows,
                        count: 1,
                        bytes: r.place.len,
                    });
                    r.entry
                }
            };
            let delta = u32::try_from(r.entry - base).unwrap_or(u32::MAX);
            out.pages.extend_from_slice(&delta.to_be_bytes());
            out.pages.extend_from_slice(&r.place.offset.to_be_bytes());
            out.pages.extend_from_slice(&r.place.len.to_be_bytes());
            out.rows += 1;
        }
        out.pages.resize(page_start + ROWS_PER_PAGE as usize * ROW, 0);
        let number = u32::try_from(page_start / BLOCK_LEN).unwrap_or(u32::MAX);
        out.pages.extend_from_slice(&number.to_be_bytes());
        out.pages.extend_from_slice(&u32::try_from(page_rows.len()).unwrap_or(0).to_be_bytes());
        out.pages.resize(page_start + PAGE_CRC_AT, 0);
        let crc = crc32c(&[uuid.as_bytes(), &out.pages[page_start..]]);
        out.pages.extend_from_slice(&crc.to_be_bytes());
    }
    out
}

/// Whether a page is the one that was written there.
pub(crate) fn check_page(uuid: Uuid, number: u32, page: &[u8]) -> bool {
    let mut tail = Reader(page.get(ROWS_PER_PAGE as usize * ROW..).unwrap_or_default());
    let found = tail.u32();
    let mut crc = Reader(page.get(PAGE_CRC_AT..).unwrap_or_default());
    page.len() == BLOCK_LEN
        && found == Some(number)
        && crc.u32() == Some(crc32c(&[uuid.as_bytes(), &page[..PAGE_CRC_AT]]))
}

/// Row `i` of a checked page: entry minus the run's first, and the place.
pub(crate) fn page_row(page: &[u8], i: u32) -> Option<(u32, Place)> {
    if i >= ROWS_PER_PAGE {
        return None;
    }
    let mut r = Reader(page.get(i as usize * ROW..)?);
    Some((r.u32()?, Place { offset: r.u32()?, len: r.u32()? }))
}

pub(crate) fn encode_runs(runs: &[Run]) -> Vec<u8> {
    let mut b = Vec::with_capacity(runs.len() * RUN);
    for r in runs {
        b.extend_from_slice(&r.ledger.0.to_be_bytes());
        b.extend_from_slice(&r.first.to_be_bytes());
        b.extend_from_slice(&r.last.to_be_bytes());
        b.extend_from_slice(&r.max_lac.to_be_bytes());
        b.extend_from_slice(&r.row.to_be_bytes());
        b.extend_from_slice(&r.count.to_be_bytes());
        b.extend_from_slice(&r.bytes.to_be_bytes());
        b.extend_from_slice(&[0; 4]);
    }
    b
}

pub(crate) fn decode_runs(bytes: &[u8], rows: u32) -> Option<Vec<Run>> {
    let mut r = Reader(bytes);
    let mut runs = Vec::with_capacity(bytes.len() / RUN);
    while !r.0.is_empty() {
        let run = Run {
            ledger: LedgerId(r.u64()?),
            first: r.i64()?,
            last: r.i64()?,
            max_lac: r.i64()?,
            row: r.u32()?,
            count: r.u32()?,
            bytes: r.u32()?,
        };
        r.u32()?;
        let end = run.row.checked_add(run.count)?;
        if run.first < 0 || run.last < run.first || run.count == 0 || end > rows {
            return None;
        }
        runs.push(run);
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_runs() {
        let uuid = Uuid::from_u128(5);
        let row = |ledger, entry, n: u32| IndexRow {
            ledger: LedgerId(ledger),
            entry,
            place: Place { offset: n * 10, len: 7 },
            lac: entry - 1,
        };
        let mut rows: Vec<IndexRow> = (0..400).map(|n| row(1, i64::from(n), n)).collect();
        rows.push(row(2, 5, 400));
        rows.push(row(2, 5 + (1 << 40), 401));
        let built = build(uuid, &rows);
        assert_eq!(built.pages.len(), 2 * BLOCK_LEN);
        assert_eq!(built.runs.iter().map(|r| r.count).collect::<Vec<_>>(), [400, 1, 1]);
        assert!(check_page(uuid, 0, &built.pages[..BLOCK_LEN]));
        assert!(!check_page(uuid, 1, &built.pages[..BLOCK_LEN]));
        assert!(!check_page(Uuid::from_u128(6), 0, &built.pages[..BLOCK_LEN]));
        let second = &built.pages[BLOCK_LEN..];
        assert_eq!(page_row(second, 0), Some((340, Place { offset: 3400, len: 7 })));
        assert_eq!(page_row(second, 61), Some((0, Place { offset: 4010, len: 7 })));
        let runs = encode_runs(&built.runs);
        assert_eq!(decode_runs(&runs, built.rows), Some(built.runs));
        assert_eq!(decode_runs(&runs, 3), None);
    }
}
