//! Catch-up reads: offset to (ledger, entry), entries from bookies, read-ahead within its own budget (broker page,
//! Partition log). The tail cache is neither asked to make room nor filled.

use std::collections::VecDeque;

use tidemill_ledger::{LedgerReader, ReadError};
use tidemill_record::batches;
use tidemill_types::{Entry, EntryId, LedgerId, LedgerState, Offset};
use tokio::sync::OwnedSemaphorePermit;

use super::PartitionLog;
use crate::{
    FetchError, StoredBatch,
    envelope::{Compaction, Envelope, Kind},
    index::Index,
};

/// Ledgers with a reader at hand.
const READERS: usize = 4;
/// Places that readers are expected to go on from.
const RUNS: usize = 8;

/// What a partition that is read behind its tail remembers; dropped when it is idle.
#[derive(Default)]
pub(super) struct CatchUp {
    readers: VecDeque<(LedgerReader, Option<Index>)>,
    runs: VecDeque<Run>,
}

/// Entries that were read ahead.
struct Run {
    /// Offset of the first record in it, or of the next entry when it is empty.
    from: Offset,
    ledger: LedgerId,
    /// The entry behind the run.
    next: EntryId,
    /// The last entry that could be read when the run was.
    last: EntryId,
    entries: VecDeque<(Envelope, Entry)>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Where to read on.
enum Place {
    At(Run),
    /// Compaction left no record below this offset.
    NothingUpTo(Offset),
}

/// What a look behind the tail brought.
pub(super) struct Found {
    /// In order.
    pub(super) batches: Vec<StoredBatch>,
    /// Without batches: there is none below this offset.
    pub(super) nothing_to: Option<Offset>,
}

impl Found {
    fn nothing(to: Offset) -> Self {
        Self { batches: Vec::new(), nothing_to: Some(to) }
    }
}

impl Run {
    /// A run of nothing; what comes next is to be read.
    fn at(from: Offset, ledger: LedgerId, next: EntryId) -> Self {
        // Beyond every entry: whether the ledger has more is seen when it is read.
        let last = EntryId(i64::MAX);
        Self { from, ledger, next, last, entries: VecDeque::new(), _permit: None }
    }
}

fn corrupt(what: impl std::fmt::Display) -> FetchError {
    FetchError::Corrupt(what.to_string())
}

pub(super) fn fetch_error(e: &ReadError, offset: Offset) -> FetchError {
    match e {
        ReadError::NoSuchEntry { .. } => FetchError::DataLoss { offset, why: e.to_string() },
        ReadError::Deleted(_) => FetchError::Trimmed { log_start: offset },
        ReadError::OutOfRange { .. } => corrupt(e),
        ReadError::Unknown { .. } | ReadError::Meta(_) => FetchError::Unavailable(e.to_string()),
    }
}

pub(super) fn envelope_of(bytes: &bytes::Bytes) -> Result<Envelope, FetchError> {
    Envelope::decode(bytes).map_err(corrupt)
}

impl PartitionLog {
    /// At least one batch from `offset` on, about `max_bytes`, or the news that there is none up to some offset. `offset` lies in
    /// the log and below the high watermark.
    pub(super) async fn catch_up(&self, offset: Offset, max_bytes: usize) -> Result<Found, FetchError> {
        let mut out = Vec::new();
        let mut bytes = 0;
        let mut run = match self.take_run(offset) {
            Some(run) => run,
            None => match self.locate(offset).await? {
                Place::At(run) => run,
                Place::NothingUpTo(to) => return Ok(Found::nothing(to)),
            },
        };
        loop {
            while let Some((envelope, entry)) = run.entries.front() {
                if !out.is_empty() && bytes + entry.bytes().len() > max_bytes {
                    self.keep_run(run);
                    return Ok(Found { batches: out, nothing_to: None });
                }
                if envelope.kind == Kind::Data {
                    bytes += entry.bytes().len();
                    batches_of(envelope, entry, offset, &mut out)?;
                    run.from = envelope.next_offset();
                }
                run.entries.pop_front();
            }
            if !out.is_empty() {
                self.keep_run(run);
                return Ok(Found { batches: out, nothing_to: None });
            }
            if run.next > run.last && self.is_compacted(run.ledger).await? {
                match self.behind(run.ledger)? {
                    Place::At(next) => run = next,
                    Place::NothingUpTo(to) => return Ok(Found::nothing(to)),
                }
                continue;
            }
            run = self.read_run(run.ledger, run.next, offset, max_bytes).await?;
        }
    }

    /// Whether offsets may be missing in a closed ledger. Its last entry says so.
    async fn is_compacted(&self, ledger: LedgerId) -> Result<bool, FetchError> {
        if self.core.lock().open.as_ref().is_some_and(|o| o.ledger == ledger) {
            return Ok(false);
        }
        let (reader, _) = self.reader(ledger).await?;
        if reader.last_entry() < EntryId::FIRST {
            return Ok(false);
        }
        let head = reader.read_head(reader.last_entry()).await.map_err(|e| fetch_error(&e, Offset(0)))?;
        Ok(envelope_of(&head.envelope)?.compaction != Compaction::None)
    }

    /// The place behind a ledger in which nothing more is.
    fn behind(&self, ledger: LedgerId) -> Result<Place, FetchError> {
        let next = {
            let core = self.core.lock();
            let at = core.chain.iter().position(|e| e.ledger == ledger);
            // It left the chain: to be looked for again in the new one.
            let at = at.ok_or(FetchError::Trimmed { log_start: core.log_start })?;
            core.chain.get(at + 1).cloned()
        };
        let end = self.shared.high_watermark();
        Ok(match next {
            Some(e) if e.base_offset < end => Place::At(Run::at(e.base_offset, e.ledger, EntryId::FIRST)),
            Some(e) => Place::NothingUpTo(e.base_offset.min(end)),
            None => Place::NothingUpTo(end),
        })
    }

    /// Forgets what was read of ledgers that left the chain.
    pub(super) fn forget_readers(&self) {
        self.catch_up.lock().take();
    }

    fn take_run(&self, offset: Offset) -> Option<Run> {
        let ledger = self.ledger_of(offset)?.0;
        let mut c = self.catch_up.lock();
        let runs = &mut c.as_mut()?.runs;
        let i = runs.iter().position(|r| r.from == offset && r.ledger == ledger)?;
        runs.remove(i)
    }

    fn keep_run(&self, run: Run) {
        let mut c = self.catch_up.lock();
        let runs = &mut c.get_or_insert_default().runs;
        if runs.len() == RUNS {
            runs.pop_front();
        }
        runs.push_back(run);
    }

    /// Reads entries from `from` on, more than is asked for while the budget allows it.
    async fn read_run(
        &self,
        ledger: LedgerId,
        from: EntryId,
        offset: Offset,
        max_bytes: usize,
    ) -> Result<Run, FetchError> {
        let (reader, _) = self.reader(ledger).await?;
        if from > reader.last_entry() {
            return Err(corrupt(format!("offset {offset} is not in ledger {ledger}, which should hold it")));
        }
        let ahead = self.ctx.config.read_ahead_bytes;
        let permit =
            u32::try_from(ahead).ok().and_then(|n| self.ctx.catch_up.clone().try_acquire_many_owned(n).ok());
        let want = if permit.is_some() { max_bytes.max(ahead) } else { max_bytes };
        let read =
            reader.read_range(from, reader.last_entry(), want).await.map_err(|e| fetch_error(&e, offset))?;
        let mut run = Run {
            from: offset,
            ledger,
            next: from,
            last: reader.last_entry(),
            entries: VecDeque::with_capacity(read.len()),
            _permit: permit,
        };
        for entry in read {
            run.next = entry.header().entry.next();
            run.entries.push_back((envelope_of(&entry.envelope())?, entry));
        }
        Ok(run)
    }

    /// An empty run in front of the entry that holds `offset`, or of the next one in compacted ledgers: chain bases, then the
    /// index, then heads.
    async fn locate(&self, offset: Offset) -> Result<Place, FetchError> {
        let (ledger, _) =
            self.ledger_of(offset).ok_or_else(|| corrupt(format!("no ledger holds offset {offset}")))?;
        let (reader, index) = self.reader(ledger).await?;
        let bounds = index.map_or((EntryId::FIRST, None), |i| i.around_offset(offset));
        let found =
            search(&reader, bounds, |e| e.next_offset() > offset).await.map_err(|e| e.into_fetch(offset))?;
        match found {
            Some(at) => Ok(Place::At(Run::at(offset, ledger, at))),
            None if self.is_compacted(ledger).await? => self.behind(ledger),
            None => Err(corrupt(format!("offset {offset} is not in ledger {ledger}"))),
        }
    }

    /// The ledger of the chain that holds `offset`, and its base. Of several with one base only the last has records.
    pub(super) fn ledger_of(&self, offset: Offset) -> Option<(LedgerId, Offset)> {
        let core = self.core.lock();
        let behind = core.chain.partition_point(|e| e.base_offset <= offset);
        core.chain.get(behind.checked_sub(1)?).map(|e| (e.ledger, e.base_offset))
    }

    /// A reader of a ledger of the chain, with its index if it has one.
    pub(super) async fn reader(&self, ledger: LedgerId) -> Result<(LedgerReader, Option<Index>), FetchError> {
        // The own open ledger: up to the LAC, with the fragments as the writer knows them.
        let own = {
            let core = self.core.lock();
            core.open.as_ref().filter(|o| o.ledger == ledger).map(|o| o.writer.clone())
        };
        if let Some(writer) = own {
            let last = self.shared.lac().min(writer.lac());
            return Ok((self.ctx.ledgers.reader_up_to(writer.record(), last), None));
        }
        if let Some(found) = self.known_reader(ledger) {
            return Ok(found);
        }
        let record = self
            .ctx
            .meta
            .ledger(ledger)
            .await
            .map_err(|e| FetchError::Unavailable(e.to_string()))?
            .ok_or(FetchError::Trimmed { log_start: Offset(0) })?;
        if record.state != LedgerState::Closed {
            // Being recovered after a fence: it is readable again once its end is stored.
            return Err(FetchError::Unavailable(format!("ledger {ledger} is not closed")));
        }
        let reader = self.ctx.ledgers.reader(record);
        let index = read_index(&reader).await;
        let mut c = self.catch_up.lock();
        let readers = &mut c.get_or_insert_default().readers;
        if readers.len() == READERS {
            readers.pop_front();
        }
        readers.push_back((reader.clone(), index.clone()));
        Ok((reader, index))
    }

    fn known_reader(&self, ledger: LedgerId) -> Option<(LedgerReader, Option<Index>)> {
        let c = self.catch_up.lock();
        c.as_ref()?.readers.iter().find(|(r, _)| r.ledger() == ledger).cloned()
    }
}

/// The index of a closed ledger. Without a readable one a search reads more heads; it never goes wrong.
async fn read_index(reader: &LedgerReader) -> Option<Index> {
    let head = reader.read_head(reader.last_entry()).await.ok()?;
    if Envelope::decode(&head.envelope).ok()?.kind != Kind::Index {
        return None;
    }
    let entry = reader.read(reader.last_entry()).await.ok()?;
    Index::decode(&entry.body())
        .inspect_err(|e| tracing::warn!(ledger = %reader.ledger(), error = %e, "index"))
        .ok()
}

/// Why a search ended without an answer.
pub(super) enum SearchError {
    Read(ReadError),
    Corrupt(FetchError),
}

impl SearchError {
    pub(super) fn into_fetch(self, offset: Offset) -> FetchError {
        match self {
            Self::Read(e) => fetch_error(&e, offset),
            Self::Corrupt(e) => e,
        }
    }
}

/// The first `data` entry within the bounds for which `is` holds; `is` stays true once it is. Reads O(log n) heads.
pub(super) async fn search(
    reader: &LedgerReader,
    (low, high): (EntryId, Option<EntryId>),
    is: impl Fn(&Envelope) -> bool,
) -> Result<Option<EntryId>, SearchError> {
    let mut low = low.0;
    // At `high` the answer is known to be yes, unless it is the end.
    let mut found = high;
    let mut high = high.map_or(reader.last_entry().0 + 1, |h| h.0);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut at = middle;
        let mut answer = None;
        while at < high && answer.is_none() {
            let head = reader.read_head(EntryId(at)).await.map_err(SearchError::Read)?;
            let e = envelope_of(&head.envelope).map_err(SearchError::Corrupt)?;
            if e.kind == Kind::Data {
                answer = Some(is(&e));
            } else {
                at += 1;
            }
        }
        match answer {
            Some(true) => {
                found = Some(EntryId(at));
                high = middle;
            }
            Some(false) => low = at + 1,
            None => high = middle,
        }
    }
    Ok(found)
}

/// The batches of an entry that end above `offset`.
pub(super) fn batches_of(
    envelope: &Envelope,
    entry: &Entry,
    offset: Offset,
    out: &mut Vec<StoredBatch>,
) -> Result<(), FetchError> {
    let mut at = envelope.base_offset.0;
    for batch in batches(entry.body()) {
        let batch = batch.map_err(corrupt)?;
        if envelope.compaction != Compaction::None {
            // Between batches records may be missing; each carries its own place.
            let base = batch.header.base_offset.0;
            if base < at || base >= envelope.next_offset().0 {
                return Err(corrupt(format!(
                    "batch at {base} in an entry of {at} to {}",
                    envelope.next_offset()
                )));
            }
            at = base;
        }
        let end = at + i64::from(batch.header.last_offset_delta) + 1;
        if end > offset.0 {
            out.push(StoredBatch {
                base_offset: Offset(at),
                append_time_ms: envelope.append_time_ms,
                bytes: batch.bytes,
            });
        }
        at = end;
    }
    Ok(())
}
