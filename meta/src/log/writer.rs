//! The one thread that writes.

use std::{io, path::PathBuf, sync::Arc};

use openraft::storage::IOFlushed;
use tidemill_runtime::{io::Disk, world};
use tokio::sync::{mpsc, oneshot};

use super::{
    files,
    format::{self, HEADER_LEN, Kind, SEGMENT_BYTES},
    load::{Segment, file_name},
    payload::Stored,
    store::{Place, Shared},
};
use crate::types::{LogId, NodeId, TypeConfig, Vote, term_of};

/// A group takes no further append above this many bytes.
const GROUP_BYTES: usize = 4 << 20;

/// The answer to a job: nothing, or why the disk failed.
pub(super) type Done = oneshot::Sender<io::Result<()>>;

/// Something to be written. Jobs are done in the order in which they were sent.
pub(super) enum Job {
    Append { first: u64, entries: Vec<Stored>, done: IOFlushed<TypeConfig> },
    Vote { vote: Vote, done: Done },
    TruncateFrom { index: u64, done: Done },
    Purge { upto: LogId, done: Done },
    Committed(LogId),
}

/// The writer's own state.
pub(super) struct Writer {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) node: NodeId,
    pub(super) segments: Vec<Segment>,
    pub(super) shared: Arc<Shared>,
}

impl Writer {
    /// Works until all senders are gone. Blocks: for a thread of its own.
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut carried = None;
        while let Some(job) = carried.take().or_else(|| jobs.blocking_recv()) {
            carried = self.work(job, &mut jobs);
        }
    }

    /// [`Self::run`] as a task, for a simulation, which has one thread.
    pub(super) async fn run_inline(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut carried = None;
        loop {
            let job = match carried.take() {
                Some(job) => job,
                None => match jobs.recv().await {
                    Some(job) => job,
                    None => return,
                },
            };
            world::disk_delay().await;
            carried = self.work(job, &mut jobs);
        }
    }

    /// Does a job and the appends that may share its sync; returns the first job of another kind.
    fn work(&mut self, job: Job, jobs: &mut mpsc::Receiver<Job>) -> Option<Job> {
        match job {
            Job::Append { .. } | Job::Committed(_) => return self.group(job, jobs),
            Job::Vote { vote, done } => {
                let result = self.guarded(|w| files::write_vote(&*w.disk, &w.dir, &vote));
                let _gone = done.send(result);
            }
            Job::TruncateFrom { index, done } => {
                let result = self.guarded(|w| w.truncate_from(index));
                let _gone = done.send(result);
            }
            Job::Purge { upto, done } => {
                let result = self.guarded(|w| w.purge(&upto));
                let _gone = done.send(result);
            }
        }
        None
    }

    /// Does `what` unless the disk failed before; a failure is final (R17).
    fn guarded<T>(&mut self, what: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        if let Some(why) = self.shared.poison() {
            return Err(io::Error::other(why));
        }
        what(self).inspect_err(|e| self.shared.set_poison(&format!("the raft log cannot be written: {e}")))
    }

    /// Writes this job and the appends that wait behind it with one sync; returns the first job of another kind.
    fn group(&mut self, first: Job, jobs: &mut mpsc::Receiver<Job>) -> Option<Job> {
        let mut appends = Vec::new();
        let mut committed = None;
        let mut bytes = 0;
        let mut next = Some(first);
        let mut carried = None;
        while let Some(job) = next.take() {
            match job {
                Job::Append { first, entries, done } => {
                    bytes += entries.iter().map(|e| format::record_len(e.payload.len())).sum::<usize>();
                    appends.push((first, entries, done));
                }
                Job::Committed(id) => committed = Some(id),
                other => {
                    carried = Some(other);
                    break;
                }
            }
            if bytes < GROUP_BYTES {
                next = jobs.try_recv().ok();
            }
        }
        let result = self.guarded(|w| w.write_group(&appends, committed));
        for (_, _, done) in appends {
            done.io_completed(result.as_ref().copied().map_err(|e| io::Error::new(e.kind(), e.to_string())));
        }
        carried
    }

    fn write_group(
        &mut self,
        appends: &[(u64, Vec<Stored>, IOFlushed<TypeConfig>)],
        committed: Option<LogId>,
    ) -> io::Result<()> {
        let mut written = Vec::new();
        for (first, entries, _) in appends {
            if entries.is_empty() {
                continue;
            }
            let segment = self.segment_for(*first)?;
            let mut buffer = Vec::new();
            for (index, e) in (*first..).zip(entries) {
                let offset = segment.end + buffer.len() as u64;
                format::encode(&mut buffer, e.kind, index, e.term, segment.synced, &e.payload);
                segment.offsets.push(offset);
                written.push((index, Place { file: segment.file.clone(), offset, len: e.payload.len() }));
            }
            segment.file.write_at(&buffer, segment.end)?;
            segment.end += buffer.len() as u64;
        }
        if let Some(id) = committed {
            self.write_mark(&id)?;
        }
        if !written.is_empty() {
            self.sync_active()?;
            self.shared.written(written);
        }
        Ok(())
    }

    /// Not synced by itself: a lost mark only means that a boot applies less until it hears from the leader.
    fn write_mark(&mut self, id: &LogId) -> io::Result<()> {
        let Some(segment) = self.segments.last_mut() else { return Ok(()) };
        let mut buffer = Vec::new();
        format::encode(&mut buffer, Kind::Committed, id.index, term_of(id), segment.synced, &[]);
        segment.file.write_at(&buffer, segment.end)?;
        segment.end += buffer.len() as u64;
        Ok(())
    }

    fn sync_active(&mut self) -> io::Result<()> {
        if let Some(s) = self.segments.last_mut()
            && s.synced < s.end
        {
            s.file.sync_data()?;
            s.synced = s.end;
        }
        Ok(())
    }

    /// The file to append entry `index` to; a new one when the last is full or does not end just before it.
    fn segment_for(&mut self, index: u64) -> io::Result<&mut Segment> {
        let fits = self.segments.last().is_some_and(|s| s.next() == index && s.end < SEGMENT_BYTES);
        if !fits {
            // Only the last file may have a torn tail.
            self.sync_active()?;
            let folder = self.dir.join("log");
            let path = folder.join(file_name(index));
            let file = self.disk.create(&path, 0)?;
            file.write_at(&format::header(self.node, index), 0)?;
            file.sync_data()?;
            self.disk.sync_dir(&folder)?;
            let header = HEADER_LEN as u64;
            let segment =
                Segment { path, file, first: index, offsets: Vec::new(), end: header, synced: header };
            self.segments.push(segment);
        }
        self.segments.last_mut().ok_or_else(|| io::Error::other("no log file"))
    }

    /// Removes entries from the end backward, so that a crash on the way leaves no hole.
    fn truncate_from(&mut self, index: u64) -> io::Result<()> {
        while let Some(s) = self.segments.last_mut() {
            if s.first >= index {
                self.disk.remove(&s.path)?;
                self.disk.sync_dir(&self.dir.join("log"))?;
                self.segments.pop();
                continue;
            }
            let keep = usize::try_from(index - s.first).unwrap_or(usize::MAX);
            if let Some(&offset) = s.offsets.get(keep) {
                s.file.set_len(offset)?;
                s.file.sync_data()?;
                s.offsets.truncate(keep);
                s.end = offset;
                s.synced = offset;
                // Marks behind the cut went with it.
                if let Some(id) = self.shared.committed() {
                    self.write_mark(&id)?;
                }
            }
            break;
        }
        Ok(())
    }

    /// `purged` first: a file that is gone must be known to be gone.
    fn purge(&mut self, upto: &LogId) -> io::Result<()> {
        files::write_purged(&*self.disk, &self.dir, upto)?;
        let gone = self.segments.iter().take_while(|s| s.next() <= upto.index + 1).count();
        for s in self.segments.drain(..gone) {
            self.disk.remove(&s.path)?;
        }
        if gone > 0 {
            self.disk.sync_dir(&self.dir.join("log"))?;
        }
        Ok(())
    }
}
