//! Reading entries.

use std::{
    fmt::Debug,
    io,
    ops::{Bound, Range, RangeBounds},
    sync::Arc,
};

use bytes::Bytes;
use openraft::{OptionalSend, RaftLogReader};

use super::{
    format::{self, RECORD_LEN},
    payload::{self, Stored},
    store::{Found, Place, Shared},
};
use crate::types::{Entry, TypeConfig, Vote};

/// Payload bytes of one replication message.
const MAX_REPLICATED: usize = 2 << 20;
/// Tries of one read while entries are replaced under it.
const TRIES: usize = 3;

/// Reads entries that are in memory at once, others from the disk off the async threads.
#[derive(Clone)]
pub(crate) struct LogReader {
    pub(super) shared: Arc<Shared>,
}

impl LogReader {
    async fn read(&self, range: Range<u64>, max_bytes: usize) -> io::Result<Vec<Entry>> {
        let mut last = None;
        for _ in 0..TRIES {
            let found = self.shared.find(range.clone(), max_bytes);
            let result = if found.iter().any(|f| matches!(f, Found::There(..))) {
                tidemill_runtime::work::blocking(move || decode(found)).await.map_err(io::Error::other)?
            } else {
                decode(found)
            };
            // An entry that was cut off and overwritten since then shows as another one: look again.
            match result {
                Ok(entries) => return Ok(entries),
                Err(e) => last = Some(e),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("no try")))
    }
}

fn decode(found: Vec<Found>) -> io::Result<Vec<Entry>> {
    found
        .into_iter()
        .map(|f| {
            let (index, stored) = match f {
                Found::Here(index, stored) => (index, stored),
                Found::There(index, term, place) => (index, fetch(index, term, &place)?),
            };
            payload::load(index, &stored).map_err(io::Error::other)
        })
        .collect()
}

fn fetch(index: u64, term: u64, place: &Place) -> io::Result<Stored> {
    let mut bytes = vec![0; format::record_len(place.len)];
    place.file.read_exact_at(&mut bytes, place.offset)?;
    // `synced` is an offset of the whole file, here the record stands alone: only the checksum and the identity count.
    let record = format::parse_alone(&bytes).map_err(io::Error::other)?;
    if record.index != index || record.term != term {
        return Err(io::Error::other(format!("entry {index} is not where it should be")));
    }
    let payload = Bytes::from(bytes).slice(RECORD_LEN..RECORD_LEN + record.payload.len());
    Ok(Stored { kind: record.kind, term, payload })
}

fn bounds(range: &impl RangeBounds<u64>) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(x) => *x,
        Bound::Excluded(x) => x.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(x) => x.saturating_add(1),
        Bound::Excluded(x) => *x,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> Result<Vec<Entry>, io::Error>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.read(bounds(&range), usize::MAX).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.shared.vote())
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        self.read(start..end, MAX_REPLICATED).await
    }
}
