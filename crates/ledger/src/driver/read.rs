//! Reads with fallback over the replicas.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tidemill_types::{BookieId, Entry, EntryHeader, EntryId, LedgerId, LedgerRecord};

use super::shared::Shared;
use crate::{
    ReadError,
    core::{
        ReadAnswer, Unknown,
        health::{Reason, Verdict},
        read::{Input, Output, ReadCore},
    },
    transport::{ReadItem, ReadSpec},
};

/// Most bytes asked for in one call.
const MAX_READ: usize = 32 << 20;

/// Reads one ledger up to a fixed bound. Cheap to clone.
#[derive(Clone)]
pub struct LedgerReader {
    shared: Arc<Shared>,
    record: Arc<LedgerRecord>,
    last: EntryId,
}

impl std::fmt::Debug for LedgerReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LedgerReader({} up to {})", self.record.id, self.last)
    }
}

/// Header and envelope of an entry, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// The header.
    pub header: EntryHeader,
    /// The envelope.
    pub envelope: Bytes,
}

/// What a read asks for.
#[derive(Clone, Copy)]
struct Want {
    from: EntryId,
    to: EntryId,
    max_bytes: u32,
    header_only: bool,
}

type Answers<T> = FuturesUnordered<BoxFuture<'static, (BookieId, ReadAnswer<Vec<T>>)>>;

impl LedgerReader {
    pub(crate) fn new(shared: Arc<Shared>, record: LedgerRecord, last: EntryId) -> Self {
        Self { shared, record: Arc::new(record), last }
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> LedgerId {
        self.record.id
    }

    /// The last entry that may be read, [`EntryId::NONE`] when there is none.
    #[must_use]
    pub fn last_entry(&self) -> EntryId {
        self.last
    }

    /// Moves the bound of a reader of an own open ledger up to the writer's LAC, and follows its fragments. Never moves it
    /// down.
    pub fn advance(&mut self, record: &LedgerRecord, last: EntryId) {
        if record.id == self.record.id && record.version > self.record.version {
            self.record = Arc::new(record.clone());
        }
        self.last = self.last.max(last);
    }

    /// One entry.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read(&self, entry: EntryId) -> Result<Entry, ReadError> {
        let want = Want { from: entry, to: entry, max_bytes: 1, header_only: false };
        let ledger = self.record.id;
        let mut run = self.run(want, move |items| entries(ledger, want, items)).await?;
        run.pop().ok_or(ReadError::Unknown { ledger, entry })
    }

    /// At least one entry from `from` on, in order without holes, at most up to `to` and about `max_bytes`
    /// (the first entry may pass it).
    ///
    /// # Errors
    /// [`ReadError`] about the first entry.
    pub async fn read_range(
        &self,
        from: EntryId,
        to: EntryId,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, ReadError> {
        let max_bytes = u32::try_from(max_bytes.clamp(1, MAX_READ)).unwrap_or(u32::MAX);
        let want = Want { from, to: to.max(from), max_bytes, header_only: false };
        let ledger = self.record.id;
        self.run(want, move |items| entries(ledger, want, items)).await
    }

    /// Header and envelope alone.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read_head(&self, entry: EntryId) -> Result<EntryHead, ReadError> {
        let want = Want { from: entry, to: entry, max_bytes: 1, header_only: true };
        let ledger = self.record.id;
        let mut run = self.run(want, move |items| heads(ledger, want, items)).await?;
        run.pop().ok_or(ReadError::Unknown { ledger, entry })
    }

    /// Heads of consecutive entries from `from` on, at least one, at most up to `to`.
    ///
    /// # Errors
    /// [`ReadError`] about the first entry.
    pub async fn read_heads(&self, from: EntryId, to: EntryId) -> Result<Vec<EntryHead>, ReadError> {
        let want = Want { from, to: to.max(from), max_bytes: 1 << 20, header_only: true };
        let ledger = self.record.id;
        self.run(want, move |items| heads(ledger, want, items)).await
    }

    /// The first entry for which `at_or_after` answers `Some(true)`, by header-only reads; the answers must be monotonic
    /// over the entries, `None` for entries that say nothing (kinds without an offset), which are skipped.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn partition_point(
        &self,
        at_or_after: impl Fn(&EntryHead) -> Option<bool> + Send,
    ) -> Result<Option<EntryId>, ReadError> {
        // Everything before `low` answers false or nothing; `found` is the lowest entry known to answer true.
        let (mut low, mut high) = (0, self.last.0 + 1);
        let mut found = None;
        while low < high {
            let mid = low + (high - low) / 2;
            // The next entry from the middle on that says something.
            let mut at = mid;
            let mut answer = None;
            while at < high && answer.is_none() {
                answer = at_or_after(&self.read_head(EntryId(at)).await?);
                if answer.is_none() {
                    at += 1;
                }
            }
            match answer {
                Some(true) => {
                    found = Some(EntryId(at));
                    high = mid;
                }
                Some(false) => low = at + 1,
                None => high = mid,
            }
        }
        Ok(found)
    }

    /// Replicas of the fragment in the order in which they are asked: healthy ones first, spread by ledger.
    fn replicas(&self, entry: EntryId) -> Vec<BookieId> {
        let Some(f) = self.record.fragment_of(entry) else { return Vec::new() };
        let mut out = f.ensemble.clone();
        if !out.is_empty() {
            let n = out.len();
            out.rotate_left(usize::try_from(self.record.id.0).unwrap_or(0) % n);
        }
        let table = self.shared.table();
        out.sort_by_key(|b| {
            let known = table.get(*b).is_some_and(|i| i.live);
            let well = !matches!(
                self.shared.verdict(*b),
                Some(Verdict::Away(_) | Verdict::Change(Reason::Away | Reason::OtherIdentity | Reason::Lost))
            );
            (!known, !well)
        });
        out
    }

    async fn run<T: Send + 'static>(
        &self,
        want: Want,
        check: impl Fn(Vec<ReadItem>) -> ReadAnswer<Vec<T>> + Clone + Send + 'static,
    ) -> Result<Vec<T>, ReadError> {
        let (ledger, entry) = (self.record.id, want.from);
        if entry.0 < 0 || entry > self.last {
            return Err(ReadError::OutOfRange { ledger, entry, last: self.last });
        }
        // A run stays within one fragment and below the bound.
        let fragments = &self.record.fragments;
        let next = fragments.iter().map(|f| f.first_entry).filter(|f| *f > entry).min();
        let to = want.to.min(self.last).min(next.map_or(self.last, EntryId::prev));
        let want = Want { to, ..want };
        let mut core = ReadCore::new(entry, self.replicas(entry));
        let mut out: Vec<Output<Vec<T>>> = Vec::new();
        let mut answers: Answers<T> = FuturesUnordered::new();
        core.start(&mut out);
        let start = tokio::time::Instant::now();
        let slow = self.shared.read_times.slow(self.shared.config.speculative_read);
        loop {
            for o in std::mem::take(&mut out) {
                match o {
                    Output::Ask(b) => answers.push(self.ask(b, want, check.clone())),
                    Output::ReadRecord => {
                        let record = self.shared.meta.ledger(ledger).await?;
                        core.step(Input::Record(record), &mut out);
                    }
                    Output::Found(run) => return Ok(run),
                    Output::NoSuchEntry => return Err(ReadError::NoSuchEntry { ledger, entry }),
                    Output::Deleted => return Err(ReadError::Deleted(ledger)),
                    Output::Unknown => return Err(ReadError::Unknown { ledger, entry }),
                }
            }
            if !out.is_empty() {
                continue;
            }
            match tokio::time::timeout(slow, answers.next()).await {
                Ok(Some((bookie, answer))) => {
                    self.shared.read_times.answered(start.elapsed());
                    core.step(Input::Answer { bookie, answer }, &mut out);
                }
                Ok(None) => return Err(ReadError::Unknown { ledger, entry }),
                Err(_) => {
                    self.shared.read_times.answered(start.elapsed());
                    core.step(Input::Slow, &mut out);
                    // Everybody was asked: wait for whoever answers.
                    if out.is_empty()
                        && let Some((bookie, answer)) = answers.next().await
                    {
                        core.step(Input::Answer { bookie, answer }, &mut out);
                    }
                }
            }
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        bookie: BookieId,
        want: Want,
        check: impl Fn(Vec<ReadItem>) -> ReadAnswer<Vec<T>> + Send + 'static,
    ) -> BoxFuture<'static, (BookieId, ReadAnswer<Vec<T>>)> {
        let spec = ReadSpec {
            ledger: self.record.id,
            first: want.from,
            last: want.to,
            max_bytes: want.max_bytes,
            header_only: want.header_only,
            fence: false,
        };
        let timeout = self.shared.config.add_timeout;
        match self.shared.target(bookie) {
            None => futures::future::ready((bookie, ReadAnswer::Unknown(Unknown::Closed))).boxed(),
            Some(target) => {
                let call = self.shared.transport.read(target, spec);
                async move {
                    match tokio::time::timeout(timeout, call).await {
                        Ok(items) => (bookie, check(items)),
                        Err(_) => (bookie, ReadAnswer::Unknown(Unknown::TimedOut)),
                    }
                }
                .boxed()
            }
        }
    }
}

/// Takes the run of good items from the first entry on; a bad first one decides the answer.
fn collect<T>(
    want: Want,
    items: Vec<ReadItem>,
    decode: impl Fn(EntryId, Bytes) -> Option<T>,
) -> ReadAnswer<Vec<T>> {
    let mut out = Vec::with_capacity(items.len());
    let mut next = want.from;
    for (entry, answer) in items {
        if entry != next || entry > want.to {
            break;
        }
        match answer {
            ReadAnswer::Found(bytes) => match decode(entry, bytes) {
                Some(t) => out.push(t),
                // The end-to-end check failed here: unknown, whatever the bookie thinks.
                None if out.is_empty() => return ReadAnswer::Unknown(Unknown::Corrupt),
                None => break,
            },
            ReadAnswer::Negative(n) if out.is_empty() => return ReadAnswer::Negative(n),
            ReadAnswer::Unknown(u) if out.is_empty() => return ReadAnswer::Unknown(u),
            ReadAnswer::Negative(_) | ReadAnswer::Unknown(_) => break,
        }
        next = next.next();
    }
    if out.is_empty() { ReadAnswer::Unknown(Unknown::Refused) } else { ReadAnswer::Found(out) }
}

fn entries(ledger: LedgerId, want: Want, items: Vec<ReadItem>) -> ReadAnswer<Vec<Entry>> {
    collect(want, items, |entry, bytes| {
        Entry::decode(bytes).ok().filter(|e| e.header().ledger == ledger && e.header().entry == entry)
    })
}

fn heads(ledger: LedgerId, want: Want, items: Vec<ReadItem>) -> ReadAnswer<Vec<EntryHead>> {
    collect(want, items, |entry, bytes| {
        let header = EntryHeader::parse(&bytes).ok()?;
        header.check_head(&bytes).ok()?;
        let envelope = bytes.slice(tidemill_types::entry::HEADER_LEN..header.head_len());
        (header.ledger == ledger && header.entry == entry).then_some(EntryHead { header, envelope })
    })
}
