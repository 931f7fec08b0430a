//! Reads with fallback over the replicas.

use bytes::Bytes;
use tidemill_types::{Entry, EntryHeader, EntryId, LedgerId};

use crate::ReadError;

/// Reads one ledger up to a fixed bound. Cheap to clone.
#[derive(Clone)]
pub struct LedgerReader {
    _private: (),
}

/// Header and envelope of an entry, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// The header.
    pub header: EntryHeader,
    /// The envelope.
    pub envelope: Bytes,
}

impl LedgerReader {
    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> LedgerId {
        todo!()
    }

    /// The last entry that may be read, [`EntryId::NONE`] when there is none.
    #[must_use]
    pub fn last_entry(&self) -> EntryId {
        todo!()
    }

    /// Moves the bound of a reader of an own open ledger up to the writer's LAC. Never moves it down.
    pub fn advance(&mut self, _last: EntryId) {
        todo!()
    }

    /// One entry.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read(&self, _entry: EntryId) -> Result<Entry, ReadError> {
        todo!()
    }

    /// At least one entry from `from` on, in order without holes, at most up to `to` and about `max_bytes`
    /// (the first entry may pass it).
    ///
    /// # Errors
    /// [`ReadError`] about the first entry.
    pub async fn read_range(
        &self,
        _from: EntryId,
        _to: EntryId,
        _max_bytes: usize,
    ) -> Result<Vec<Entry>, ReadError> {
        todo!()
    }

    /// Header and envelope alone.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read_head(&self, _entry: EntryId) -> Result<EntryHead, ReadError> {
        todo!()
    }

    /// The first entry for which `at_or_after` answers true, by header-only reads; `at_or_after` must be monotonic over
    /// the entries and answer `None` for entries that say nothing (kinds without an offset), which are skipped.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn partition_point(
        &self,
        _at_or_after: impl Fn(&EntryHead) -> Option<bool> + Send,
    ) -> Result<Option<EntryId>, ReadError> {
        todo!()
    }
}
