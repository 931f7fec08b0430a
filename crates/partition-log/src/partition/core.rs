//! What the core's lock guards: the order of offsets, producers, parked entries, the open ledger.
//!
//! Everything that is appended to a ledger is appended under this lock, so that an envelope says exactly what stands
//! before it. The lock is never held across an await and never taken by a callback of a writer.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use tidemill_ledger::{AppendHandle, AppendRefused, LedgerWriter};
use tidemill_record::Batch;
use tidemill_types::{
    ChainElement, EntryId, LedgerId, LedgerRecord, Offset, TopicConfig, meta::PartitionView,
};
use tokio::sync::oneshot;

use super::{
    compact::Compacting,
    op::{Done, Op, Place, Reservation},
    tail::Shared,
    trim::Trim,
};
use crate::{
    LogCounters, LogState, ProduceError, ProduceOutcome,
    envelope::{Compaction, Envelope, Kind},
    index::{IndexBuilder, Position},
    producers::Producers,
    roll_bytes,
};

/// A produce call that came before the producers' state was rebuilt.
pub(super) struct Call {
    pub(super) batches: Vec<Batch>,
    pub(super) tx: oneshot::Sender<Result<ProduceOutcome, ProduceError>>,
    pub(super) reservation: Option<Reservation>,
}

/// The open ledger.
pub(super) struct Open {
    pub(super) writer: LedgerWriter,
    pub(super) ledger: LedgerId,
    /// Offset of its first record.
    pub(super) base: Offset,
    /// First piece of the newest complete snapshot.
    state_entry: EntryId,
    /// Its last piece.
    state_end: EntryId,
    since_state: u64,
    /// `data` entries that were handed to it.
    pub(super) data_entries: u64,
    pub(super) index: IndexBuilder,
    /// Monotonic time of the opening and of the last append.
    pub(super) opened: Duration,
    pub(super) last_append: Duration,
    /// Nothing is handed to it: it is being closed, or fenced.
    pub(super) closing: bool,
    pub(super) fenced: bool,
    pub(super) degraded: bool,
    /// The writer asked for a roll; it asks once.
    pub(super) roll_wanted: bool,
    /// Bytes of batches that were handed to it, and whether they were found to be enough for a roll.
    bytes: u64,
    full: bool,
}

pub(super) struct Core {
    pub(super) state: LogState,
    /// Reads below the high watermark may be answered.
    pub(super) readable: bool,
    pub(super) config: Arc<TopicConfig>,
    /// What `open` was given; taken by the first try of the take-over.
    pub(super) view: Option<Box<PartitionView>>,
    pub(super) chain: Vec<ChainElement>,
    pub(super) log_start: Offset,
    /// Behind everything that was judged.
    pub(super) judged: Place,
    /// Behind everything that was handed to the open ledger.
    pub(super) handed: Place,
    pub(super) producers: Producers,
    /// Judged, in no ledger, in order.
    pub(super) parked: VecDeque<Op>,
    pub(super) unjudged: VecDeque<Call>,
    pub(super) open: Option<Box<Open>>,
    /// Created ahead in this epoch and not linked.
    pub(super) spare: Option<Box<LedgerRecord>>,
    pub(super) want_roll: bool,
    pub(super) want_close: bool,
    /// A ledger for the producers' state is wanted, though nothing waits to be written.
    pub(super) want_open: bool,
    pub(super) trim: Trim,
    /// Of a topic that is compacted.
    pub(super) compaction: Option<Box<Compacting>>,
    pub(super) driver: bool,
    pub(super) barrier_waiters: Vec<oneshot::Sender<bool>>,
    pub(super) barrier_task: bool,
    pub(super) counters: LogCounters,
    /// Monotonic time of the last look for producers to forget.
    pub(super) expired_at: Duration,
}

/// Numbers that handing out needs.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) state_entry_every: u64,
    pub(super) coalesce_after: usize,
    pub(super) coalesce_bytes: usize,
    pub(super) roll_bytes: u64,
    pub(super) now: Duration,
}

impl Core {
    pub(super) fn new(view: PartitionView, config: Arc<TopicConfig>) -> Self {
        let start = Place::start(Offset(0));
        Self {
            state: LogState::Recovering,
            readable: false,
            config,
            chain: view.partition.chain.clone(),
            log_start: view.partition.log_start,
            view: Some(Box::new(view)),
            judged: start,
            handed: start,
            producers: Producers::default(),
            parked: VecDeque::new(),
            unjudged: VecDeque::new(),
            open: None,
            spare: None,
            want_roll: false,
            want_close: false,
            want_open: false,
            trim: Trim::default(),
            compaction: None,
            driver: false,
            barrier_waiters: Vec::new(),
            barrier_task: false,
            counters: LogCounters::default(),
            expired_at: Duration::ZERO,
        }
    }

    /// Whether the open ledger takes entries.
    pub(super) fn can_append(&self) -> bool {
        self.open.as_ref().is_some_and(|o| !o.closing && !o.fenced)
    }

    /// Whether the open ledger takes an entry now.
    fn has_room(&self, shared: &Shared, limits: Limits) -> bool {
        self.can_append() && shared.in_flight() < limits.coalesce_after
    }

    /// Takes a judged entry: into the open ledger, or parked behind what waits already.
    pub(super) fn take(&mut self, shared: &Shared, limits: Limits, op: Op) {
        self.parked.push_back(op);
        self.flush(shared, limits);
        if !self.parked.is_empty() && self.can_append() {
            shared.flush_wanted.store(true, std::sync::atomic::Ordering::Release);
            // The acknowledgement that would have flushed may have come before the flag was there.
            if self.has_room(shared, limits) {
                self.flush(shared, limits);
            }
        }
    }

    /// Hands parked entries out, neighbours together (they only wait while others are in flight, or no ledger is open).
    pub(super) fn flush(&mut self, shared: &Shared, limits: Limits) {
        while self.has_room(shared, limits) {
            let Some(mut op) = self.parked.pop_front() else { return };
            while limits.coalesce_after != usize::MAX
                && self.parked.front().is_some_and(|next| op.takes(next, limits.coalesce_bytes))
            {
                let Some(next) = self.parked.pop_front() else { break };
                op.merge(next);
            }
            if let Err(op) = self.hand(shared, limits, op) {
                self.parked.push_front(*op);
                return;
            }
        }
    }

    fn hand(&mut self, shared: &Shared, limits: Limits, mut op: Op) -> Result<(), Box<Op>> {
        if self.open.as_ref().is_some_and(|o| o.since_state >= limits.state_entry_every) {
            self.append_state();
        }
        let Some(open) = &mut self.open else { return Err(Box::new(op)) };
        let envelope = Envelope {
            kind: Kind::Data,
            compaction: Compaction::None,
            count: op.count,
            base_offset: op.base,
            append_time_ms: op.append_time_ms,
            max_timestamp_ms: op.max_timestamp_ms,
            max_timestamp_so_far_ms: op.max_timestamp_so_far_ms,
            state_entry: open.state_entry,
            hashes: Bytes::new(),
        };
        let body: Vec<Bytes> = op.batches.iter().map(|(_, b)| b.clone()).collect();
        match open.writer.append_shared(&envelope.encode(), &body) {
            Ok((entry, encoded)) => {
                op.entry = entry;
                op.share(&encoded);
                let bytes = op.bytes as u64;
                open.since_state += bytes;
                open.data_entries += 1;
                open.bytes += bytes;
                // At once, not with the next tick: in a second a ledger can become many times as large. Only once: when the roll
                // is put off, the ticks ask again.
                if !open.full && open.bytes >= roll_bytes(&self.config, limits.roll_bytes) {
                    open.full = true;
                    self.want_roll = true;
                    shared.kick.notify_one();
                }
                open.last_append = limits.now;
                let at = Position {
                    entry: op.entry,
                    offset: op.base,
                    max_timestamp_so_far_ms: op.max_timestamp_so_far_ms,
                };
                open.index.note(at, bytes);
                self.handed = op.place();
                shared.push(open.ledger, op);
                Ok(())
            }
            Err(e) => {
                open.refused(e);
                shared.kick.notify_one();
                Err(Box::new(op))
            }
        }
    }

    /// Appends a snapshot of the state as of here.
    pub(super) fn append_state(&mut self) {
        let pieces = self.producers.snapshot(self.handed.next_offset);
        let mut range: Option<(EntryId, EntryId)> = None;
        for piece in pieces {
            let Some(handle) = self.append_internal(Kind::State, &[piece]) else { return };
            range = Some((range.map_or(handle.entry(), |r| r.0), handle.entry()));
        }
        if let (Some(open), Some((first, last))) = (&mut self.open, range) {
            (open.state_entry, open.state_end) = (first, last);
            open.since_state = 0;
        }
    }

    /// The envelope of an entry without records that would be appended now.
    pub(super) fn internal_envelope(&self, kind: Kind) -> Envelope {
        Envelope {
            kind,
            compaction: Compaction::None,
            count: 0,
            base_offset: self.handed.next_offset,
            append_time_ms: self.handed.append_time_ms,
            max_timestamp_ms: -1,
            max_timestamp_so_far_ms: self.handed.max_timestamp_ms,
            state_entry: self.open.as_ref().map_or(EntryId::NONE, |o| o.state_entry),
            hashes: Bytes::new(),
        }
    }

    /// Appends an entry without records; `None` when the ledger takes none.
    pub(super) fn append_internal(&mut self, kind: Kind, body: &[Bytes]) -> Option<AppendHandle> {
        let envelope = self.internal_envelope(kind).encode();
        let open = self.open.as_mut()?;
        match open.writer.append(&envelope, body) {
            Ok(h) => Some(h),
            Err(e) => {
                open.refused(e);
                None
            }
        }
    }

    /// Whether the open ledger has a complete snapshot that is acknowledged.
    pub(super) fn has_durable_state(&self, lac: EntryId) -> bool {
        self.open.as_ref().is_some_and(|o| o.state_entry != EntryId::NONE && o.state_durable(lac))
    }

    /// Puts back what a ledger did not get, in front of what waits.
    pub(super) fn requeue(&mut self, ops: VecDeque<Op>, acked: Place) {
        for op in ops.into_iter().rev() {
            self.parked.push_front(op);
        }
        self.handed = acked;
    }

    /// Lets a caller wait for the entry that holds `offset`, wherever it is; answers at once when it is written.
    pub(super) fn wait_for(&mut self, shared: &Shared, offset: Offset, done: Done) {
        let Some(done) = shared.wait_for(offset, done) else { return };
        let i = self.parked.partition_point(|op| op.end() <= offset);
        match self.parked.get_mut(i) {
            Some(op) if op.base <= offset => op.done.push(done),
            // Acknowledged since it was judged.
            _ if offset < shared.high_watermark() => done.written(),
            _ => done.failed(ProduceError::Unknown),
        }
    }
}

impl Open {
    pub(super) fn new(writer: LedgerWriter, base: Offset, now: Duration) -> Self {
        Self {
            ledger: writer.ledger(),
            writer,
            base,
            state_entry: EntryId::NONE,
            state_end: EntryId::NONE,
            since_state: 0,
            data_entries: 0,
            index: IndexBuilder::default(),
            opened: now,
            last_append: now,
            closing: false,
            fenced: false,
            degraded: false,
            roll_wanted: false,
            bytes: 0,
            full: false,
        }
    }

    fn state_durable(&self, lac: EntryId) -> bool {
        self.state_end <= lac
    }

    fn refused(&mut self, e: AppendRefused) {
        match e {
            AppendRefused::Stopped(_) => self.fenced = true,
            AppendRefused::Closing(_) => self.closing = true,
            AppendRefused::Entry(e) => {
                // Sizes were checked before an offset was given out: only a bug gets here. Going on would leave a hole.
                tracing::error!(ledger = self.ledger.0, error = %e, "the ledger's format refuses an entry");
                self.fenced = true;
            }
        }
    }
}
