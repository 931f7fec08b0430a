//! Records of a commit group: kind (1), zeros (3), length (4), then the bytes.
//!
//! | kind | bytes |
//! | --- | --- |
//! | 1 add, 2 recovery add | the entry as encoded by its writer |
//! | 3 fence | ledger (8) |
//! | 4 explicit LAC | ledger (8), LAC (8) |
//! | 5 collect | ledger (8), bound (4): what lies in segments of lower numbers is deleted, and what lies before in this segment |

use tidemill_types::{EntryHeader, EntryId, LedgerId};

use super::codec::Reader;

/// Bytes in front of a record.
pub(crate) const RECORD_HEAD: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Add { header: EntryHeader, len: u32 },
    Fence { ledger: LedgerId },
    Lac { ledger: LedgerId, lac: EntryId },
    Collect { ledger: LedgerId, bound: u32 },
}

pub(crate) const ADD: u8 = 1;
pub(crate) const RECOVERY_ADD: u8 = 2;
const FENCE: u8 = 3;
const LAC: u8 = 4;
const COLLECT: u8 = 5;

/// What stands in front of a record's bytes.
pub(crate) fn put_head(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.extend_from_slice(&[kind, 0, 0, 0]);
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
}

pub(crate) fn put_entry(out: &mut Vec<u8>, kind: u8, entry: &[u8]) {
    put_head(out, kind, entry.len());
    out.extend_from_slice(entry);
}

pub(crate) fn put_fence(out: &mut Vec<u8>, ledger: LedgerId) {
    put_head(out, FENCE, 8);
    out.extend_from_slice(&ledger.0.to_be_bytes());
}

pub(crate) fn put_lac(out: &mut Vec<u8>, ledger: LedgerId, lac: EntryId) {
    put_head(out, LAC, 16);
    out.extend_from_slice(&ledger.0.to_be_bytes());
    out.extend_from_slice(&lac.0.to_be_bytes());
}

pub(crate) fn put_collect(out: &mut Vec<u8>, ledger: LedgerId, bound: u32) {
    put_head(out, COLLECT, 12);
    out.extend_from_slice(&ledger.0.to_be_bytes());
    out.extend_from_slice(&bound.to_be_bytes());
}

/// Takes the first record off `body`; answers it, the offset of its bytes in `body`, and where the next one starts.
pub(crate) fn parse(body: &[u8], at: usize) -> Option<(Record, usize, usize)> {
    let mut r = Reader(body.get(at..)?);
    let kind = r.u8()?;
    r.take(3)?;
    let len = r.u32()?;
    let bytes = r.take(len as usize)?;
    let start = at + RECORD_HEAD;
    let mut f = Reader(bytes);
    let record = match kind {
        ADD | RECOVERY_ADD => {
            let header = EntryHeader::parse(bytes).ok()?;
            if header.total_len() != bytes.len() {
                return None;
            }
            f.0 = &[];
            Record::Add { header, len }
        }
        FENCE => Record::Fence { ledger: LedgerId(f.u64()?) },
        LAC => Record::Lac { ledger: LedgerId(f.u64()?), lac: EntryId(f.i64()?) },
        COLLECT => Record::Collect { ledger: LedgerId(f.u64()?), bound: f.u32()? },
        _ => return None,
    };
    f.0.is_empty().then_some((record, start, start + bytes.len()))
}
