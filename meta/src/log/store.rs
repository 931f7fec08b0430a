//! The log as openraft asks for it.

use std::{collections::VecDeque, io, path::PathBuf, sync::Arc};

use openraft::{
    LogState, OptionalSend,
    storage::{IOFlushed, RaftLogStorage},
};
use parking_lot::Mutex;
use tidemill_runtime::{
    io::{Disk, File},
    world,
};
use tokio::sync::{mpsc, oneshot};

use super::{
    files, load,
    payload::{self, Stored},
    reader::LogReader,
    writer::{Job, Writer},
};
use crate::{
    MetaStartError,
    types::{Entry, LogId, NodeId, TypeConfig, Vote, log_id},
};

/// Payload bytes of written entries that stay in memory; older ones are read from the file.
const CACHE_BYTES: usize = 64 << 20;
/// Jobs that wait for the writer.
const QUEUE: usize = 1_024;

/// Called once with the reason when the disk failed.
pub(crate) type OnFatal = Box<dyn Fn(&str) + Send + Sync>;

/// The log store. Clones share it.
#[derive(Clone)]
pub(crate) struct LogStore {
    pub(super) shared: Arc<Shared>,
    /// Gone once the store is closed: with the last sender the writer ends.
    jobs: Arc<Mutex<Option<mpsc::Sender<Job>>>>,
}

impl std::fmt::Debug for LogStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogStore")
    }
}

/// What readers and the writer share.
pub(super) struct Shared {
    inner: Mutex<Inner>,
    on_fatal: OnFatal,
}

struct Inner {
    purged: Option<LogId>,
    vote: Option<Vote>,
    committed: Option<LogId>,
    /// Index of the first slot.
    first: u64,
    slots: VecDeque<Slot>,
    /// Payload bytes in memory.
    cached: usize,
    /// Slots below have no payload in memory.
    cached_from: u64,
    poison: Option<String>,
}

#[derive(Clone)]
struct Slot {
    term: u64,
    entry: Option<Stored>,
    /// `None` until it is durable.
    place: Option<Place>,
}

/// Where an entry stands on disk.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) file: Arc<dyn File>,
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// An entry for a reader.
pub(super) enum Found {
    Here(u64, Stored),
    There(u64, u64, Place),
}

impl Shared {
    pub(super) fn poison(&self) -> Option<String> {
        self.inner.lock().poison.clone()
    }

    pub(super) fn set_poison(&self, why: &str) {
        self.inner.lock().poison.get_or_insert_with(|| why.to_owned());
        (self.on_fatal)(why);
    }

    pub(super) fn committed(&self) -> Option<LogId> {
        self.inner.lock().committed
    }

    pub(super) fn vote(&self) -> Option<Vote> {
        self.inner.lock().vote
    }

    /// These entries are durable.
    pub(super) fn written(&self, places: Vec<(u64, Place)>) {
        let mut s = self.inner.lock();
        for (index, place) in places {
            if let Some(slot) = s.slot_mut(index) {
                slot.place = Some(place);
            }
        }
        s.evict();
    }

    /// Entries of `range`, as one moment has them; at most `max_bytes` of payload, but at least one.
    pub(super) fn find(&self, range: std::ops::Range<u64>, max_bytes: usize) -> Vec<Found> {
        let s = self.inner.lock();
        let end = s.first + s.slots.len() as u64;
        let mut bytes = 0;
        let mut out = Vec::new();
        for index in range.start.max(s.first)..range.end.min(end) {
            let Some(slot) = s.slot(index) else { break };
            let found = match (&slot.entry, &slot.place) {
                (Some(e), _) => Found::Here(index, e.clone()),
                (None, Some(p)) => Found::There(index, slot.term, p.clone()),
                (None, None) => break,
            };
            bytes += match &found {
                Found::Here(_, e) => e.payload.len(),
                Found::There(_, _, p) => p.len,
            };
            if bytes > max_bytes && !out.is_empty() {
                break;
            }
            out.push(found);
        }
        out
    }
}

impl Inner {
    fn slot(&self, index: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(index.checked_sub(self.first)?).ok()?)
    }

    fn slot_mut(&mut self, index: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(index.checked_sub(self.first)?).ok()?)
    }

    fn last(&self) -> Option<LogId> {
        let at = self.first + self.slots.len() as u64;
        self.slots.back().map(|s| log_id(s.term, at - 1)).or(self.purged)
    }

    fn push(&mut self, entry: Stored, place: Option<Place>) {
        self.cached += entry.payload.len();
        self.slots.push_back(Slot { term: entry.term, entry: Some(entry), place });
    }

    /// Drops payloads of the oldest written entries above the bound.
    fn evict(&mut self) {
        self.cached_from = self.cached_from.max(self.first);
        while self.cached > CACHE_BYTES {
            let at = self.cached_from;
            let Some(slot) = self.slot_mut(at) else { return };
            if slot.place.is_none() {
                return;
            }
            let freed = slot.entry.take().map_or(0, |e| e.payload.len());
            self.cached -= freed;
            self.cached_from += 1;
        }
    }

    fn uncache(&mut self, slot: &Slot) {
        self.cached -= slot.entry.as_ref().map_or(0, |e| e.payload.len());
    }
}

impl LogStore {
    /// Reads the log of a member's folder and starts the writer. `keep` is held until the writer has ended: the lock
    /// on the folder.
    pub(crate) fn open<K: Send + 'static>(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        node: NodeId,
        keep: K,
        on_fatal: OnFatal,
    ) -> Result<(Self, oneshot::Receiver<()>), MetaStartError> {
        let vote = files::read_vote_file(&*disk, &dir)?;
        let loaded = load::load(&*disk, &dir, node)?;
        if loaded.dropped > 0 {
            tracing::warn!(bytes = loaded.dropped, "dropped the unsynced tail of the raft log");
        }
        let mut inner = Inner {
            purged: loaded.purged,
            vote,
            committed: loaded.committed,
            first: loaded.first,
            slots: VecDeque::with_capacity(loaded.entries.len()),
            cached: 0,
            cached_from: loaded.first,
            poison: None,
        };
        let mut places = loaded.segments.iter().flat_map(|s| {
            (s.first..).zip(&s.offsets).map(|(index, offset)| (index, s.file.clone(), *offset))
        });
        let mut next_place = places.find(|(index, ..)| *index >= loaded.first);
        for entry in loaded.entries {
            let len = entry.payload.len();
            let place = next_place.take().map(|(_, file, offset)| Place { file, offset, len });
            // A copy of its own: a slice would keep the whole file's bytes in memory.
            let entry = Stored { payload: bytes::Bytes::copy_from_slice(&entry.payload), ..entry };
            inner.push(entry, place);
            next_place = places.next();
        }
        drop(places);
        inner.evict();
        let shared = Arc::new(Shared { inner: Mutex::new(inner), on_fatal });
        let (jobs, rx) = mpsc::channel(QUEUE);
        let (ended, on_end) = oneshot::channel();
        let thread_dir = dir.clone();
        let writer = Writer { disk, dir, node, segments: loaded.segments, shared: shared.clone() };
        let store = Self { shared, jobs: Arc::new(Mutex::new(Some(jobs))) };
        if world::simulated() {
            tokio::spawn(async move {
                writer.run_inline(rx).await;
                drop(keep);
                let _gone = ended.send(());
            });
            return Ok((store, on_end));
        }
        std::thread::Builder::new()
            .name("raft-log".to_owned())
            .spawn(move || {
                writer.run(rx);
                drop(keep);
                let _gone = ended.send(());
            })
            .map_err(|e| MetaStartError::io("starting the log's thread for", thread_dir, e))?;
        Ok((store, on_end))
    }

    async fn send(&self, job: Job) -> io::Result<()> {
        let jobs = self.jobs.lock().clone().ok_or_else(|| io::Error::other("the raft log is closed"))?;
        jobs.send(job).await.map_err(|_| io::Error::other("the raft log is closed"))
    }

    async fn ask(&self, job: impl FnOnce(super::writer::Done) -> Job) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        self.send(job(done)).await?;
        answer.await.map_err(|_| io::Error::other("the raft log is closed"))?
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let s = self.shared.inner.lock();
        Ok(LogState { last_purged_log_id: s.purged, last_log_id: s.last() })
    }

    async fn get_log_reader(&mut self) -> LogReader {
        LogReader { shared: self.shared.clone() }
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let vote = *vote;
        self.ask(|done| Job::Vote { vote, done }).await?;
        self.shared.inner.lock().vote = Some(vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let Some(id) = committed else { return Ok(()) };
        self.shared.inner.lock().committed = Some(id);
        self.send(Job::Committed(id)).await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.shared.committed())
    }

    async fn append<I>(&mut self, entries: I, done: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut first = None;
        let mut stored = Vec::new();
        for entry in entries {
            first.get_or_insert(entry.log_id.index);
            stored.push(payload::store(entry).map_err(io::Error::other)?);
        }
        let Some(first) = first else {
            done.io_completed(Ok(()));
            return Ok(());
        };
        {
            // Readable from here on; durable when `done` is called.
            let mut s = self.shared.inner.lock();
            if s.slots.is_empty() {
                // After a snapshot was installed, or in the tests of openraft, the log begins anywhere.
                s.first = first;
                s.cached_from = first;
            }
            let next = s.first + s.slots.len() as u64;
            if first != next {
                return Err(io::Error::other(format!("entry {first} appended where {next} should stand")));
            }
            for e in &stored {
                s.push(e.clone(), None);
            }
        }
        self.send(Job::Append { first, entries: stored, done }).await
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let index = last.map_or(0, |id| id.index + 1);
        {
            let mut s = self.shared.inner.lock();
            while s.first + s.slots.len() as u64 > index {
                let Some(slot) = s.slots.pop_back() else { break };
                s.uncache(&slot);
            }
            s.cached_from = s.cached_from.min(index.max(s.first));
        }
        self.ask(|done| Job::TruncateFrom { index, done }).await
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        {
            let mut s = self.shared.inner.lock();
            if s.purged >= Some(upto) {
                return Ok(());
            }
            s.purged = Some(upto);
            while s.first <= upto.index {
                let Some(slot) = s.slots.pop_front() else { break };
                s.uncache(&slot);
                s.first += 1;
            }
            if s.slots.is_empty() {
                s.first = upto.index + 1;
            }
            s.cached_from = s.cached_from.max(s.first);
        }
        self.ask(|done| Job::Purge { upto, done }).await
    }
}

impl LogStore {
    /// No further writes: the writer does what was sent and ends.
    pub(crate) fn close(&self) {
        self.jobs.lock().take();
    }

    /// Bytes of payload between the purge and the end that are in memory: a figure for the metrics.
    pub(crate) fn cached_bytes(&self) -> usize {
        self.shared.inner.lock().cached
    }
}
