//! The engine: what the service calls.

mod info;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_runtime::io::Disk;
use tidemill_types::{ClusterId, EntryId, EntryRange, Incarnation, LanePosition, LedgerId};

use crate::{
    accept::accept,
    acks::Acks,
    boot::{self, Boot},
    collect,
    config::{Driver, EngineConfig},
    driver::Threads,
    error::{OpenError, Poison},
    fence,
    lane::Next,
    ledger::Ledger,
    lookup,
    outcome::{
        AckSink, AckTo, AddKind, AddOutcome, AddRequest, Admission, Completion, FenceOutcome, FirstTouch,
        LacOutcome, LastEntryOutcome, RangesOutcome, ReadMode, ReadOutcome, TouchTicket, UnknownReason,
        WriteOutcome,
    },
    range::{self, Wanted},
    report::{BootReport, EngineInfo, FinishBoot, LedgerSummary},
    rewrite,
    scrub::{self, ScrubPosition, Scrubbed},
    shared::Shared,
    stats::Stats,
};

/// A bookie's storage. Clones share one engine; when the last one is dropped the lanes write what is queued and stop.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    threads: Arc<Threads>,
}

/// Lanes that were locked and read, not yet served.
#[derive(Debug)]
pub struct Scanned {
    boot: Boot,
}

/// The lock of a ledger that is about to be collected (R20). Dropping it gives the ledger back.
#[derive(Debug)]
pub struct CollectGuard {
    shared: Arc<Shared>,
    ledger: Option<Arc<Ledger>>,
    id: LedgerId,
}

/// The answer of one add goes to a closure.
struct Once(Mutex<Option<Completion<AddOutcome>>>);

impl AckSink for Once {
    fn acked(&self, acks: Vec<(u64, AddOutcome)>) {
        for (_, outcome) in acks {
            let done = self.0.lock().take();
            if let Some(done) = done {
                done.answer(outcome);
            }
        }
    }
}

impl Scanned {
    /// What was found.
    #[must_use]
    pub fn report(&self) -> &BootReport {
        &self.boot.report
    }

    /// R16, first step: the cookie of every lane names this incarnation as pending, durably.
    ///
    /// # Errors
    /// `OtherCluster`, `Io`.
    pub fn write_pending(&mut self, cluster: ClusterId, incarnation: Incarnation) -> Result<(), OpenError> {
        self.boot.write_pending(cluster, incarnation)
    }

    /// R16, third step, to be called when the quorum knows the pending incarnation: confirms it in the cookies, seals what was scanned,
    /// opens a new segment on each lane and starts the lanes. The caller then confirms with the quorum and serves. The engine is in limbo if
    /// `finish` says so, if it was before, or if the scan found a loss (R15).
    ///
    /// # Errors
    /// `Config` when `write_pending` was not called, `Io`.
    pub fn finish(self, finish: FinishBoot) -> Result<Engine, OpenError> {
        let shared = Arc::new(boot::finish(self.boot, finish)?);
        let threads = match shared.config.driver {
            Driver::Inline { .. } => Threads::none(&shared),
            Driver::Threads => {
                Threads::start(&shared).map_err(|e| OpenError::io("starting threads for", "lanes", e))?
            }
        };
        Ok(Engine { shared, threads: Arc::new(threads) })
    }
}

impl Engine {
    /// Locks the lanes, reads cookies, control files, footers and the groups of unsealed segments. Writes nothing but LOCK files.
    ///
    /// # Errors
    /// Any [`OpenError`].
    pub fn open_scan(disk: Arc<dyn Disk>, config: EngineConfig) -> Result<Scanned, OpenError> {
        Ok(Scanned { boot: boot::scan(disk, config)? })
    }

    /// Adds one entry; the answer goes to `done`.
    pub fn add(&self, entry: Bytes, kind: AddKind, done: Completion<AddOutcome>) {
        let sink: Arc<dyn AckSink> = Arc::new(Once(Mutex::new(Some(done))));
        self.add_batch(vec![AddRequest { request: 0, entry, kind }], &sink);
    }

    /// Adds entries of one connection; answers go to `sink`, those that need no write at once, in one call.
    pub fn add_batch(&self, adds: Vec<AddRequest>, sink: &Arc<dyn AckSink>) {
        let mut acks = Acks::default();
        for a in adds {
            let ack = AckTo { sink: Arc::clone(sink), request: a.request };
            accept(&self.shared, a.entry, a.kind, ack, &mut acks);
        }
        acks.send();
    }

    /// Whether the quorum must be asked before a plain add to this ledger (R27).
    #[must_use]
    pub fn first_touch(&self, ledger: LedgerId) -> FirstTouch {
        let held = self.shared.ledgers.get(ledger);
        let needed = if self.shared.limbo() {
            !held.is_some_and(|l| l.state.lock().admitted)
        } else {
            held.is_none() && self.shared.ledgers.mark().is_none_or(|m| ledger < m)
        };
        if needed {
            let generation = self.shared.ledgers.generation(ledger);
            FirstTouch::Ask(TouchTicket { ledger, generation })
        } else {
            FirstTouch::NotNeeded
        }
    }

    /// Hands in the verdict "a linearizable read says OPEN and names this uuid in the last fragment".
    #[must_use]
    pub fn admit(&self, ticket: TouchTicket) -> Admission {
        let TouchTicket { ledger, generation } = ticket;
        match self.shared.ledgers.admit(ledger, generation, || self.shared.new_ledger(ledger, false)) {
            Ok(()) => Admission::Admitted,
            Err(generation) => Admission::Stale(TouchTicket { ledger, generation }),
        }
    }

    /// Raises the first-touch mark; it never goes down.
    pub fn raise_mark(&self, mark: LedgerId) {
        self.shared.ledgers.raise_mark(mark);
    }

    /// Fences a ledger, one that is not held too (R11, R25).
    pub fn fence(&self, ledger: LedgerId, done: Completion<FenceOutcome>) {
        fence::fence(&self.shared, ledger, done);
    }

    /// Fences all of these; answers once, when all are done (limbo boot, R15).
    pub fn fence_all_of(&self, ledgers: &[LedgerId], done: Completion<WriteOutcome>) {
        fence::fence_all_of(&self.shared, ledgers, done);
    }

    /// Stores an explicit LAC; a lower one than known is `Ok` and nothing is written.
    pub fn write_lac(&self, ledger: LedgerId, lac: EntryId, done: Completion<WriteOutcome>) {
        fence::write_lac(&self.shared, ledger, lac, done);
    }

    /// Highest LAC known of a ledger.
    #[must_use]
    pub fn lac(&self, ledger: LedgerId) -> LacOutcome {
        if self.shared.poisoned().is_some() {
            return LacOutcome::Unknown(UnknownReason::Stopped);
        }
        if self.shared.limbo() {
            return LacOutcome::Unknown(UnknownReason::Limbo);
        }
        match self.shared.ledgers.get(ledger) {
            Some(l) => LacOutcome::Lac(l.state.lock().lac()),
            None => LacOutcome::NoSuchLedger,
        }
    }

    /// Reads one entry; may wait for the disk.
    #[must_use]
    pub fn read(&self, ledger: LedgerId, entry: EntryId, mode: ReadMode) -> ReadOutcome {
        lookup::read(&self.shared, ledger, entry, mode)
    }

    /// Reads one entry if that needs no disk.
    #[must_use]
    pub fn try_read_cached(&self, ledger: LedgerId, entry: EntryId, mode: ReadMode) -> Option<ReadOutcome> {
        lookup::read_cached(&self.shared, ledger, entry, mode)
    }

    /// Reads consecutive entries from `first` on, up to `max_entries` and `max_bytes` (at least one entry). The first answer that is not
    /// `Entry` ends the list and is its last item.
    #[must_use]
    pub fn read_range(
        &self,
        ledger: LedgerId,
        first: EntryId,
        max_entries: usize,
        max_bytes: usize,
        mode: ReadMode,
    ) -> Vec<(EntryId, ReadOutcome)> {
        range::read_range(&self.shared, Wanted { ledger, first, max_entries, max_bytes }, mode)
    }

    /// The highest entry held.
    #[must_use]
    pub fn last_entry(&self, ledger: LedgerId, mode: ReadMode) -> LastEntryOutcome {
        range::last_entry(&self.shared, ledger, mode)
    }

    /// Ledgers held with an id above `after`, in order, at most `limit`.
    #[must_use]
    pub fn list_ledgers(&self, after: Option<LedgerId>, limit: usize) -> Vec<LedgerSummary> {
        self.shared.ledgers.after(after, limit).iter().filter_map(|l| info::summary(l)).collect()
    }

    /// One ledger, if held.
    #[must_use]
    pub fn ledger(&self, ledger: LedgerId) -> Option<LedgerSummary> {
        self.shared.ledgers.get(ledger).and_then(|l| info::summary(&l))
    }

    /// Which entries of a ledger are held; may wait for the disk.
    #[must_use]
    pub fn ranges(&self, ledger: LedgerId) -> RangesOutcome {
        range::ranges(&self.shared, ledger)
    }

    /// The engine as a whole.
    #[must_use]
    pub fn info(&self) -> EngineInfo {
        info::info(&self.shared)
    }

    /// Last synced group of each lane, for the session renewal (R16).
    #[must_use]
    pub fn positions(&self) -> Vec<LanePosition> {
        self.shared.lanes.iter().map(|l| *l.position.lock()).collect()
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let queued: usize = self.shared.lanes.iter().map(|l| l.queue.bytes()).sum();
        self.shared.counters.snapshot(queued as u64, self.shared.damage.entries())
    }

    /// Whether the bookie is in limbo.
    #[must_use]
    pub fn limbo(&self) -> bool {
        self.shared.limbo()
    }

    /// Sets or clears limbo, durably on all lanes before it returns.
    ///
    /// # Errors
    /// [`Poison`]: the cookie could not be made durable, the engine has stopped.
    pub fn set_limbo(&self, limbo: bool) -> Result<(), Poison> {
        // Into limbo: first in memory, so that nothing is denied meanwhile. Out of it: only when that is durable.
        if limbo {
            self.shared.limbo.store(true, Ordering::SeqCst);
        }
        self.shared.change_cookies(|c| c.limbo = limbo)?;
        self.shared.limbo.store(limbo, Ordering::SeqCst);
        Ok(())
    }

    /// Refuses plain adds (admin). Not durable.
    pub fn set_read_only(&self, read_only: bool) {
        self.shared.read_only.store(read_only, Ordering::Relaxed);
    }

    /// Takes the lock of a ledger before its record is read for the last time (R20). `None` when it is not held or locked already.
    /// Adds and fences that come meanwhile wait; listings and reads of what is missing answer `Unknown(Collecting)`.
    #[must_use]
    pub fn begin_collect(&self, ledger: LedgerId) -> Option<CollectGuard> {
        let locked = collect::lock(&self.shared, ledger)?;
        Some(CollectGuard { shared: Arc::clone(&self.shared), ledger: Some(locked), id: ledger })
    }

    /// One round of maintenance: removes a dead segment or rewrites one below the live share. `throttle` is called with the bytes
    /// copied and may sleep. Answers whether there was something to do.
    ///
    /// # Errors
    /// [`Poison`] after a failed sync.
    pub fn maintain(&self, throttle: &dyn Fn(u64)) -> Result<bool, Poison> {
        rewrite::maintain(&self.shared, throttle)
    }

    /// Where the scrub of an earlier boot stood.
    #[must_use]
    pub fn scrub_position(&self) -> ScrubPosition {
        scrub::position(&self.shared)
    }

    /// Reads the next sealed segment and checks every byte of it that matters; moves the position on and keeps it on disk. `pace` is
    /// called with the bytes read, may sleep, and says whether to go on. Waits for the disk.
    pub fn scrub(&self, at: &mut ScrubPosition, pace: &dyn Fn(u64) -> bool) -> Scrubbed {
        scrub::step(&self.shared, at, pace)
    }

    /// Stored entries that are known to be damaged: found by scrubbing or by a reader, and not replaced yet.
    #[must_use]
    pub fn damaged(&self) -> Vec<(LedgerId, Vec<EntryRange>)> {
        self.shared.damage.all()
    }

    /// Runs every lane once (`Driver::Inline`). Answers the time, as the clock's `boottime`, at which it wants to be run again at the latest.
    pub fn step(&self) -> Option<Duration> {
        let mut due = None;
        for core in &self.shared.cores {
            let mut core = core.lock();
            loop {
                match core.step(&self.shared) {
                    Next::Again => {}
                    Next::At(at) => {
                        due = [due, at].into_iter().flatten().min();
                        break;
                    }
                    Next::Stopped => break,
                }
            }
        }
        due
    }

    /// Whether no lane takes anything any more.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.shared.lanes.iter().all(|lane| lane.queue.stopped())
    }

    /// The reason why the engine stopped, if it has.
    #[must_use]
    pub fn poisoned(&self) -> Option<Poison> {
        self.shared.poisoned().cloned()
    }

    /// Writes what is queued and a closing group, then stops the lanes. Later calls answer `Unknown(Stopped)`.
    pub fn shutdown(&self) {
        for lane in &self.shared.lanes {
            lane.queue.stop();
        }
        if matches!(self.shared.config.driver, Driver::Inline { .. }) {
            self.step();
        }
        self.threads.join();
    }
}

impl CollectGuard {
    /// Deletes the ledger durably and raises the mark above it (R20, R27).
    pub fn commit(mut self, done: Completion<WriteOutcome>) {
        if let Some(ledger) = self.ledger.take() {
            collect::commit(&self.shared, &ledger, done);
        }
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> LedgerId {
        self.id
    }
}

impl Drop for CollectGuard {
    fn drop(&mut self) {
        if let Some(ledger) = self.ledger.take() {
            collect::release(&self.shared, &ledger);
        }
    }
}
