//! Every decoder of the storage formats alone: for fuzzing. Bytes in, what was understood out; nothing here touches a disk.
//!
//! Formats that need to be told something (which segment, how long the file is) take it from in front of the bytes, see [`Format`].

use std::{io, sync::Arc};

use tidemill_runtime::io::File;
use tidemill_types::entry::crc32c;
use uuid::Uuid;

use crate::{
    format::{
        BLOCK_LEN,
        control::Control,
        cookie::Cookie,
        footer::Footer,
        group::{GROUP_HEAD, GroupHeader},
        header::SegmentHeader,
        index::{self, ROWS_PER_PAGE},
        record, scan,
        states::States,
    },
    scrub::ScrubPosition,
};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The cookie of a lane.
    Cookie,
    /// The control file of a lane.
    Control,
    /// Where a scrub stands.
    Scrub,
    /// The first block of a segment.
    Header,
    /// Length of the file (8), then its last block.
    Footer,
    /// A commit group.
    Group,
    /// An index page; its segment's uuid (16) and its number (4) in front.
    Page,
    /// A directory; the count of index rows (4) in front.
    Directory,
    /// A checkpoint; counts of states (4) and deletions (4) in front.
    Checkpoint,
    /// A whole segment without a footer, as a boot scans it; its uuid (16) and the number of its first group (8) in front.
    Segment,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Cookie,
        Self::Control,
        Self::Scrub,
        Self::Header,
        Self::Footer,
        Self::Group,
        Self::Page,
        Self::Directory,
        Self::Checkpoint,
        Self::Segment,
    ];
}

/// What was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Records, rows, or 1; 0: the bytes were refused.
    pub items: usize,
    /// The same, encoded again, for formats that are decoded as a whole.
    pub again: Option<Vec<u8>>,
}

fn whole(again: Option<Vec<u8>>) -> Read {
    Read { items: usize::from(again.is_some()), again }
}

fn be<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk::<N>().map(|(a, b)| (*a, b))
}

/// Decodes.
#[must_use]
pub fn read(format: Format, bytes: &[u8]) -> Read {
    match format {
        Format::Cookie => whole(Cookie::decode(bytes).ok().map(|c| c.encode())),
        Format::Control => whole(Control::decode(bytes).ok().map(|c| c.encode())),
        Format::Scrub => whole(ScrubPosition::decode(bytes).map(|p| p.encode())),
        Format::Header => whole(SegmentHeader::decode(bytes).map(|h| h.encode())),
        Format::Footer => whole(footer(bytes)),
        Format::Group => Read { items: group(bytes).unwrap_or(0), again: None },
        Format::Page => Read { items: page(bytes).unwrap_or(0), again: None },
        Format::Directory => directory(bytes).unwrap_or_default(),
        Format::Checkpoint => checkpoint(bytes).unwrap_or_default(),
        Format::Segment => Read { items: segment(bytes).unwrap_or(0), again: None },
    }
}

fn footer(bytes: &[u8]) -> Option<Vec<u8>> {
    let (len, block) = be::<8>(bytes)?;
    let uuid = Uuid::from_bytes(*block.get(8..24)?.first_chunk()?);
    let number = u32::from_be_bytes(*block.get(24..28)?.first_chunk()?);
    // A caller never asks about a file that is longer than a segment can be.
    let len_of_file = u64::from_be_bytes(len).min(1 << 40);
    let footer = Footer::decode(block, uuid, number, len_of_file)?;
    let mut out = len.to_vec();
    out.extend_from_slice(&footer.encode());
    Some(out)
}

/// Records of a group whose digest fits.
fn group(bytes: &[u8]) -> Option<usize> {
    let header = GroupHeader::parse(bytes)?;
    if !header.check(bytes) {
        return None;
    }
    let body = bytes.get(GROUP_HEAD..GROUP_HEAD + header.body_len as usize)?;
    let (mut at, mut records) = (0, 0);
    while at < body.len() {
        let (_, start, next) = record::parse(body, at)?;
        if start > next || next > body.len() || next <= at {
            return None;
        }
        at = next;
        records += 1;
    }
    Some(records)
}

fn page(bytes: &[u8]) -> Option<usize> {
    let (uuid, rest) = be::<16>(bytes)?;
    let (number, page) = be::<4>(rest)?;
    let page = page.get(..BLOCK_LEN)?;
    if !index::check_page(Uuid::from_bytes(uuid), u32::from_be_bytes(number), page) {
        return None;
    }
    Some((0..ROWS_PER_PAGE).filter(|i| index::page_row(page, *i).is_some()).count())
}

fn directory(bytes: &[u8]) -> Option<Read> {
    let (rows, rest) = be::<4>(bytes)?;
    let runs = index::decode_runs(rest, u32::from_be_bytes(rows))?;
    let again = [&rows[..], &index::encode_runs(&runs)].concat();
    Some(Read { items: runs.len(), again: Some(again) })
}

fn checkpoint(bytes: &[u8]) -> Option<Read> {
    let (ledgers, rest) = be::<4>(bytes)?;
    let (deletions, rest) = be::<4>(rest)?;
    let states = States::decode(rest, u32::from_be_bytes(ledgers), u32::from_be_bytes(deletions))?;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
    let (l, d) = (states.ledgers.len(), states.deletions.len());
    let again = [&count(l)[..], &count(d), &states.encode()].concat();
    Some(Read { items: l + d, again: Some(again) })
}

fn segment(bytes: &[u8]) -> Option<usize> {
    let (uuid, rest) = be::<16>(bytes)?;
    let (first, rest) = be::<8>(rest)?;
    let first = u64::from_be_bytes(first);
    if first == 0 {
        return None;
    }
    let file = InMemory(Arc::from(rest));
    let mut records = 0;
    let end = scan::scan(&file, Uuid::from_bytes(uuid), first, &mut |_, offset| {
        records += usize::from(offset < rest.len() as u64);
    });
    end.ok().filter(|e| e.data_end <= (rest.len() as u64).max(BLOCK_LEN as u64)).map(|_| records)
}

/// Makes the checksums fit, which a fuzzer does not guess. Lengths that do not fit stay as they are.
pub fn seal(format: Format, bytes: &mut [u8]) {
    let put = |bytes: &mut [u8], at: usize, crc: u32| {
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&crc.to_be_bytes());
        }
    };
    match format {
        Format::Cookie | Format::Control | Format::Scrub => {
            let Some(at) = bytes.len().checked_sub(4) else { return };
            let crc = crc32c(&[&bytes[..at]]);
            put(bytes, at, crc);
        }
        Format::Header if bytes.len() >= 60 => {
            let crc = crc32c(&[&bytes[..56]]);
            put(bytes, 56, crc);
        }
        Format::Footer if bytes.len() >= 92 => {
            let crc = crc32c(&[&bytes[8..88]]);
            put(bytes, 88, crc);
        }
        Format::Group => {
            let Some(header) = GroupHeader::parse(bytes) else { return };
            let end = GROUP_HEAD + header.body_len as usize;
            let Some(body) = bytes.get(GROUP_HEAD..end) else { return };
            let crc = crc32c(&[&bytes[..44], body]);
            put(bytes, 44, crc);
        }
        Format::Page if bytes.len() >= 20 + BLOCK_LEN => {
            let crc = crc32c(&[&bytes[..16], &bytes[20..20 + BLOCK_LEN - 4]]);
            put(bytes, 20 + BLOCK_LEN - 4, crc);
        }
        _ => {}
    }
}

/// Bytes that are read like a file.
#[derive(Debug)]
struct InMemory(Arc<[u8]>);

impl File for InMemory {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let n = buf.len().min(self.0.len() - from);
        buf[..n].copy_from_slice(&self.0[from..from + n]);
        Ok(n)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}
