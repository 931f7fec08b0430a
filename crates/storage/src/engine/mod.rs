//! The engine: what the service calls.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidemill_runtime::io::Disk;
use tidemill_types::{ClusterId, EntryId, Incarnation, LanePosition, LedgerId};

use crate::{
    config::EngineConfig,
    error::{OpenError, Poison},
    outcome::*,
    report::*,
    stats::Stats,
};

/// A bookie's storage. Clones share one engine.
#[derive(Clone, Debug)]
pub struct Engine {}

/// Lanes that were locked and read, not yet served.
#[derive(Debug)]
pub struct Scanned {}

/// The lock of a ledger that is about to be collected (R20). Dropping it gives the ledger back.
#[derive(Debug)]
pub struct CollectGuard {}

impl Scanned {
    /// What was found.
    #[must_use]
    pub fn report(&self) -> &BootReport {
        todo!()
    }
    /// R16, first step: the cookie of every lane names this incarnation as pending, durably.
    ///
    /// # Errors
    /// `OtherCluster`, `Io`.
    pub fn write_pending(&mut self, _cluster: ClusterId, _incarnation: Incarnation) -> Result<(), OpenError> {
        todo!()
    }
    /// R16, third step, to be called when the quorum knows the pending incarnation: confirms it in the cookies, seals what was scanned,
    /// opens a new segment on each lane and starts the lanes. The caller then confirms with the quorum and serves.
    ///
    /// # Errors
    /// `Config` when `write_pending` was not called, `Io`.
    pub fn finish(self, _finish: FinishBoot) -> Result<Engine, OpenError> {
        todo!()
    }
}

impl Engine {
    /// Locks the lanes, reads cookies, control files, footers and the groups of unsealed segments. Writes nothing but LOCK files.
    ///
    /// # Errors
    /// Any [`OpenError`].
    pub fn open_scan(_disk: Arc<dyn Disk>, _config: EngineConfig) -> Result<Scanned, OpenError> {
        todo!()
    }
    /// Adds one entry; the answer goes to `done`.
    pub fn add(&self, _entry: Bytes, _kind: AddKind, _done: Completion<AddOutcome>) {
        todo!()
    }
    /// Adds entries of one connection; answers go to `sink`, those that need no write at once, in one call.
    pub fn add_batch(&self, _adds: Vec<AddRequest>, _sink: &Arc<dyn AckSink>) {
        todo!()
    }
    /// Whether the quorum must be asked before a plain add to this ledger (R27).
    #[must_use]
    pub fn first_touch(&self, _ledger: LedgerId) -> FirstTouch {
        todo!()
    }
    /// Hands in the verdict "a linearizable read says OPEN and names this uuid in the last fragment".
    #[must_use]
    pub fn admit(&self, _ticket: TouchTicket) -> Admission {
        todo!()
    }
    /// Raises the first-touch mark; it never goes down.
    pub fn raise_mark(&self, _mark: LedgerId) {
        todo!()
    }
    /// Fences a ledger, one that is not held too (R11, R25).
    pub fn fence(&self, _ledger: LedgerId, _done: Completion<FenceOutcome>) {
        todo!()
    }
    /// Fences all of these; answers once, when all are done (limbo boot, R15).
    pub fn fence_all_of(&self, _ledgers: &[LedgerId], _done: Completion<WriteOutcome>) {
        todo!()
    }
    /// Stores an explicit LAC; a lower one than known is `Ok` and nothing is written.
    pub fn write_lac(&self, _ledger: LedgerId, _lac: EntryId, _done: Completion<WriteOutcome>) {
        todo!()
    }
    /// Highest LAC known of a ledger.
    #[must_use]
    pub fn lac(&self, _ledger: LedgerId) -> LacOutcome {
        todo!()
    }
    /// Reads one entry; may wait for the disk.
    #[must_use]
    pub fn read(&self, _ledger: LedgerId, _entry: EntryId, _mode: ReadMode) -> ReadOutcome {
        todo!()
    }
    /// Reads one entry if that needs no disk.
    #[must_use]
    pub fn try_read_cached(&self, _ledger: LedgerId, _entry: EntryId, _mode: ReadMode) -> Option<ReadOutcome> {
        todo!()
    }
    /// Reads consecutive entries from `first` on, up to `max_entries` and `max_bytes` (at least one entry). The first answer that is not
    /// `Entry` ends the list and is its last item.
    #[must_use]
    pub fn read_range(
        &self,
        _ledger: LedgerId,
        _first: EntryId,
        _max_entries: usize,
        _max_bytes: usize,
        _mode: ReadMode,
    ) -> Vec<(EntryId, ReadOutcome)> {
        todo!()
    }
    /// The highest entry held.
    #[must_use]
    pub fn last_entry(&self, _ledger: LedgerId, _mode: ReadMode) -> LastEntryOutcome {
        todo!()
    }
    /// Ledgers held with an id above `after`, in order, at most `limit`.
    #[must_use]
    pub fn list_ledgers(&self, _after: Option<LedgerId>, _limit: usize) -> Vec<LedgerSummary> {
        todo!()
    }
    /// One ledger, if held.
    #[must_use]
    pub fn ledger(&self, _ledger: LedgerId) -> Option<LedgerSummary> {
        todo!()
    }
    /// Which entries of a ledger are held; may wait for the disk.
    #[must_use]
    pub fn ranges(&self, _ledger: LedgerId) -> RangesOutcome {
        todo!()
    }
    /// The engine as a whole.
    #[must_use]
    pub fn info(&self) -> EngineInfo {
        todo!()
    }
    /// Last synced group of each lane, for the session renewal (R16).
    #[must_use]
    pub fn positions(&self) -> Vec<LanePosition> {
        todo!()
    }
    /// Counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        todo!()
    }
    /// Whether the bookie is in limbo.
    #[must_use]
    pub fn limbo(&self) -> bool {
        todo!()
    }
    /// Sets or clears limbo, durably on all lanes before it returns.
    ///
    /// # Errors
    /// [`Poison`]: the cookie could not be made durable, the engine has stopped.
    pub fn set_limbo(&self, _limbo: bool) -> Result<(), Poison> {
        todo!()
    }
    /// Refuses plain adds (admin). Not durable.
    pub fn set_read_only(&self, _read_only: bool) {
        todo!()
    }
    /// Takes the lock of a ledger before its record is read for the last time (R20). `None` when it is not held or locked already.
    /// Adds and fences that come meanwhile wait; listings and reads of what is missing answer `Unknown(Collecting)`.
    #[must_use]
    pub fn begin_collect(&self, _ledger: LedgerId) -> Option<CollectGuard> {
        todo!()
    }
    /// One round of maintenance: removes a dead segment or rewrites one below the live share. `throttle` is called with the bytes
    /// copied and may sleep. Answers whether there was something to do.
    ///
    /// # Errors
    /// [`Poison`] after a failed sync.
    pub fn maintain(&self, _throttle: &dyn Fn(u64)) -> Result<bool, Poison> {
        todo!()
    }
    /// Runs every lane once (`Driver::Inline`). Answers the time, as the clock's `boottime`, at which it wants to be run again at the latest.
    pub fn step(&self) -> Option<Duration> {
        todo!()
    }
    /// The reason why the engine stopped, if it has.
    #[must_use]
    pub fn poisoned(&self) -> Option<Poison> {
        todo!()
    }
    /// Writes what is queued and a closing group, then stops the lanes. Later calls answer `Unknown(Stopped)`.
    pub fn shutdown(&self) {
        todo!()
    }
}

impl CollectGuard {
    /// Deletes the ledger durably and raises the mark above it (R20, R27).
    pub fn commit(self, _done: Completion<WriteOutcome>) {
        todo!()
    }
    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> LedgerId {
        todo!()
    }
}
