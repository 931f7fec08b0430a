//! An open segment and the reading of its sealed index.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use quick_cache::sync::Cache;
use tidemill_runtime::io::File;
use tidemill_types::{EntryId, LedgerId, entry::crc32c};
use uuid::Uuid;

use crate::format::{
    BLOCK, BLOCK_LEN,
    footer::Footer,
    index::{self, Place, ROWS_PER_PAGE, Run},
    states::States,
};

/// Key of a cached index page: lane, segment, page.
pub(crate) type PageKey = (u16, u32, u32);
pub(crate) type PageCache = Cache<PageKey, Bytes>;

/// Why an index page or a directory cannot be had.
#[derive(Debug)]
pub(crate) enum IndexError {
    Io(io::Error),
    Damaged,
}

impl From<io::Error> for IndexError {
    fn from(e: io::Error) -> Self {
        // A file that ends too early was cut off: damage, not a passing error.
        if e.kind() == io::ErrorKind::UnexpectedEof { Self::Damaged } else { Self::Io(e) }
    }
}

/// A run of entries of one ledger in one sealed segment, as kept in memory: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) segment: u32,
    pub(crate) row: u32,
    pub(crate) count: u32,
    pub(crate) bytes: u32,
}

impl Extent {
    pub(crate) fn of(run: &Run, segment: u32) -> Self {
        Self { first: run.first, last: run.last, segment, row: run.row, count: run.count, bytes: run.bytes }
    }

    pub(crate) fn contains(&self, entry: i64) -> bool {
        (self.first..=self.last).contains(&entry)
    }

    pub(crate) fn is_dense(&self) -> bool {
        self.last - self.first + 1 == i64::from(self.count)
    }
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) lane: u16,
    pub(crate) number: u32,
    pub(crate) uuid: Uuid,
    pub(crate) rewritten: bool,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) first_group: u64,
    /// Bytes of the file.
    pub(crate) len: AtomicU64,
    /// Bytes of entries that are still wanted.
    pub(crate) live: AtomicI64,
    /// A live entry or the index in it is damaged: never rewritten or removed, so that nothing is denied (R14).
    pub(crate) keep: AtomicBool,
    pub(crate) footer: OnceLock<Footer>,
}

impl Segment {
    pub(crate) fn add_live(&self, bytes: i64) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn live(&self) -> u64 {
        u64::try_from(self.live.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Reads the footer; `Ok(None)` when the file does not end in one.
    pub(crate) fn read_footer(&self) -> io::Result<Option<Footer>> {
        let len = self.file.len()?;
        if len < 2 * BLOCK {
            return Ok(None);
        }
        let mut block = vec![0; BLOCK_LEN];
        self.file.read_exact_at(&mut block, len - BLOCK)?;
        Ok(Footer::decode(&block, self.uuid, self.number, len))
    }

    fn section(&self, at: u64, len: u64, crc: u32) -> Result<Vec<u8>, IndexError> {
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| IndexError::Damaged)?];
        self.file.read_exact_at(&mut bytes, at)?;
        if crc32c(&[self.uuid.as_bytes(), &bytes]) == crc { Ok(bytes) } else { Err(IndexError::Damaged) }
    }

    pub(crate) fn read_runs(&self, footer: &Footer) -> Result<Vec<Run>, IndexError> {
        let bytes = self.section(footer.runs_at(), footer.runs_len(), footer.runs_crc)?;
        index::decode_runs(&bytes, footer.rows).ok_or(IndexError::Damaged)
    }

    pub(crate) fn read_states(&self, footer: &Footer) -> Result<States, IndexError> {
        let bytes = self.section(footer.states_at(), footer.states_len(), footer.states_crc)?;
        States::decode(&bytes, footer.states, footer.deletions).ok_or(IndexError::Damaged)
    }

    fn page(&self, cache: &PageCache, number: u32) -> Result<Bytes, IndexError> {
        let key = (self.lane, self.number, number);
        if let Some(page) = cache.get(&key) {
            return Ok(page);
        }
        let footer = self.footer.get().ok_or(IndexError::Damaged)?;
        let mut page = vec![0; BLOCK_LEN];
        self.file.read_exact_at(&mut page, footer.index_at + u64::from(number) * BLOCK)?;
        if !index::check_page(self.uuid, number, &page) {
            return Err(IndexError::Damaged);
        }
        let page = Bytes::from(page);
        cache.insert(key, page.clone());
        Ok(page)
    }

    /// Row `row` of the index: the entry, of a run that starts at `first`, and its place.
    pub(crate) fn row(&self, cache: &PageCache, first: i64, row: u32) -> Result<(i64, Place), IndexError> {
        let page = self.page(cache, row / ROWS_PER_PAGE)?;
        let (delta, place) = index::page_row(&page, row % ROWS_PER_PAGE).ok_or(IndexError::Damaged)?;
        Ok((first + i64::from(delta), place))
    }

    /// Where an entry of this extent lies; `Ok(None)` when the extent has a gap there.
    pub(crate) fn find(
        &self,
        cache: &PageCache,
        extent: &Extent,
        entry: i64,
    ) -> Result<Option<Place>, IndexError> {
        if !extent.contains(entry) {
            return Ok(None);
        }
        let (mut low, mut high) = (0, extent.count);
        if extent.is_dense() {
            low = u32::try_from(entry - extent.first).map_err(|_| IndexError::Damaged)?;
            high = low + 1;
        }
        while low < high {
            let mid = low + (high - low) / 2;
            let (found, place) = self.row(cache, extent.first, extent.row + mid)?;
            match found.cmp(&entry) {
                std::cmp::Ordering::Equal => return Ok(Some(place)),
                std::cmp::Ordering::Less => low = mid + 1,
                std::cmp::Ordering::Greater => high = mid,
            }
        }
        // A dense extent has every entry: another one in its row is damage, not an absence (R14).
        if extent.is_dense() { Err(IndexError::Damaged) } else { Ok(None) }
    }

    /// Reads the bytes at a place.
    pub(crate) fn read(&self, place: Place, len: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; len.min(place.len as usize)];
        self.file.read_exact_at(&mut bytes, u64::from(place.offset))?;
        Ok(Bytes::from(bytes))
    }
}

/// Which entry is meant, for checks of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) ledger: LedgerId,
    pub(crate) entry: EntryId,
}
