//! The handle of an owned partition.

mod barrier;
mod catch_up;
mod chain;
mod compact;
mod compact_input;
mod compact_output;
mod compact_swap;
mod core;
mod drive;
mod ensemble;
mod offsets;
mod op;
mod outcome;
mod read;
mod rebuild;
mod recover;
mod submit;
mod tail;
mod trim;
mod upkeep;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_record::Batch;
use tidemill_types::{Epoch, Offset, PartitionId, SessionId, TopicConfig, meta::PartitionView};

use self::{catch_up::CatchUp, core::Core, tail::Shared};
use crate::{
    BatchOutcome, Description, FetchError, ListedOffset, LogContext, LogCounters, LogState, OffsetSpec,
    ProduceError, ProduceOutcome, ReadResult, producers::Sequenced,
};

pub use self::op::{ProduceHandle, Reservation};

/// Why an operation on the chain did not end.
#[derive(Debug)]
enum Stop {
    /// Still the owner, as far as is known: again after a while.
    Retry(String),
    /// Not the owner any more.
    Drop(String),
}

/// One owned partition in one epoch. Work is driven by the callers' futures, by [`PartitionLog::maintain`], and, only
/// while a ledger is open or the chain is being changed, by one task.
pub struct PartitionLog {
    ctx: Arc<LogContext>,
    id: PartitionId,
    epoch: Epoch,
    /// The session named in the `Acquire` of this epoch: the only one that counts.
    session: SessionId,
    core: Mutex<Core>,
    shared: Arc<Shared>,
    catch_up: Mutex<Option<Box<CatchUp>>>,
}

impl PartitionLog {
    /// Takes a partition over whose `Acquire` gave `epoch`; `view` was read after it. Returns at once in state
    /// [`LogState::Recovering`]; produce calls wait until the state is rebuilt. Must be called on a tokio runtime.
    ///
    /// The log lives until [`PartitionLog::release`] or [`PartitionLog::abandon`]: dropping the handle alone does not end
    /// it while a ledger is open.
    #[must_use]
    pub fn open(
        ctx: Arc<LogContext>,
        view: PartitionView,
        epoch: Epoch,
        config: Arc<TopicConfig>,
    ) -> Arc<Self> {
        let log = Arc::new(Self {
            id: view.partition.id,
            epoch,
            session: view.partition.owner.map_or(SessionId::NONE, |o| o.session),
            shared: Shared::new(ctx.tail_cache.clone()),
            core: Mutex::new(Core::new(view, config)),
            catch_up: Mutex::new(None),
            ctx,
        });
        log.drive_if_needed(&mut log.core.lock());
        log
    }

    /// The partition.
    #[must_use]
    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// The epoch that this log serves.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> LogState {
        self.core.lock().state
    }

    /// Waits until the state is not [`LogState::Recovering`] and returns it.
    pub async fn ready(&self) -> LogState {
        self.until(|s| s != LogState::Recovering).await
    }

    /// Offset behind the last acknowledged record, from memory.
    #[must_use]
    pub fn high_watermark(&self) -> Offset {
        self.shared.high_watermark()
    }

    /// First offset of the log.
    #[must_use]
    pub fn log_start(&self) -> Offset {
        self.core.lock().log_start
    }

    /// New effective configuration of the topic. Copies and ack quorum count from the next ledger on.
    pub fn set_config(&self, config: Arc<TopicConfig>) {
        self.core.lock().config = config;
    }

    /// Takes `bytes` of the in-flight budget; waits for it up to the configured time.
    ///
    /// # Errors
    /// [`ProduceError::Overloaded`], [`ProduceError::TooLarge`].
    pub async fn reserve(&self, bytes: usize) -> Result<Reservation, ProduceError> {
        self.reserve_bytes(bytes).await
    }

    /// Appends batches, each checked with [`tidemill_record::check()`], as one entry. Never waits: the order of calls is
    /// the order of offsets and of answers.
    pub fn submit(self: &Arc<Self>, batches: Vec<Batch>, reservation: Reservation) -> ProduceHandle {
        self.submit_call(batches, reservation)
    }

    /// [`PartitionLog::reserve`] and [`PartitionLog::submit`]. Order among calls that wait for the budget is the order in
    /// which they began to wait.
    ///
    /// # Errors
    /// [`ProduceError`].
    pub async fn produce(self: &Arc<Self>, batches: Vec<Batch>) -> Result<ProduceOutcome, ProduceError> {
        let reservation = self.reserve(batches.iter().map(|b| b.bytes.len()).sum()).await?;
        self.submit(batches, reservation).await
    }

    /// What became of a batch: decided, not guessed. One that is pushed is waited for, a take-over too. With `close` nothing new
    /// is taken from this producer epoch (and older ones) afterwards, so that "not written" stays true.
    ///
    /// # Errors
    /// [`FetchError`]: ask again, perhaps another owner.
    pub async fn batch_outcome(
        self: &Arc<Self>,
        batch: Sequenced,
        close: bool,
    ) -> Result<BatchOutcome, FetchError> {
        self.outcome_of(batch, close).await
    }

    /// Reads from `offset` on: at least one batch when there is one, about `max_bytes`. At the high watermark: no batches,
    /// after proof of ownership. Does not wait for data.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn read(self: &Arc<Self>, offset: Offset, max_bytes: usize) -> Result<ReadResult, FetchError> {
        self.read_from(offset, max_bytes).await
    }

    /// Waits until the high watermark is above `offset`, or the log is not serving any more.
    pub async fn wait_for_data(&self, offset: Offset) {
        self.until(|s| self.high_watermark() > offset || matches!(s, LogState::Closed | LogState::Dropped))
            .await;
    }

    /// An offset by position or time; `None`: no record has such a timestamp.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn list_offset(self: &Arc<Self>, spec: OffsetSpec) -> Result<Option<ListedOffset>, FetchError> {
        self.find_offset(spec).await
    }

    /// Proves that this process owned the partition after the call began: by the session, else by a barrier, else by a
    /// linearizable read (metadata, Sessions).
    ///
    /// # Errors
    /// [`FetchError::NotOwner`].
    pub async fn confirm_ownership(self: &Arc<Self>) -> Result<(), FetchError> {
        self.prove_ownership().await
    }

    /// Moves the log start forward, at most to the high watermark. Returns the log start after it.
    ///
    /// # Errors
    /// [`FetchError`]; with `Unavailable` the log start may move later.
    pub async fn advance_log_start(self: &Arc<Self>, to: Offset) -> Result<Offset, FetchError> {
        self.move_log_start(to).await
    }

    /// Deletes the records below `before`: as [`PartitionLog::advance_log_start`], but an offset beyond the high watermark is
    /// refused, and a ledger for the producers' state is opened first when the last one that has it is to go.
    ///
    /// # Errors
    /// [`FetchError`]; with `Unavailable` the log start may move later.
    pub async fn delete_records(self: &Arc<Self>, before: Offset) -> Result<Offset, FetchError> {
        self.delete_below(before).await
    }

    /// Gives the partition up in order: takes nothing new, finishes what is in flight, closes the open ledger. When it
    /// returns the state is [`LogState::Closed`] (or [`LogState::Dropped`]) and nothing that needs ownership is answered
    /// any more (M27): the `Release` may be sent.
    pub async fn release(self: &Arc<Self>) -> LogState {
        self.release_in_order().await
    }

    /// Drops the partition at once: another owner was seen, or the session of this epoch is gone. Calls that were handed
    /// to a ledger end with outcome unknown, the others as not written.
    pub fn abandon(&self) {
        self.drop_log("abandoned");
    }

    /// Roll by size and age, idle close, expiry, memory. To be called about once a second; `now` is
    /// [`tidemill_runtime::Clock::boottime`].
    pub fn maintain(self: &Arc<Self>, now: Duration) {
        self.maintain_at(now);
    }

    /// For people and metrics.
    #[must_use]
    pub fn describe(&self) -> Description {
        self.description()
    }

    /// Rare events of this log.
    #[must_use]
    pub fn counters(&self) -> LogCounters {
        self.core.lock().counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An idle partition: taken over, no open ledger, no task, no caller. Beside these it has 16 bytes per ledger of its
    /// chain, at most about 32 of them (ledger protocol 1.8), and what its producers left.
    #[test]
    fn an_idle_partition_costs_at_most_a_kibibyte() {
        let counts = 2 * 2 * size_of::<usize>();
        let chain = 4 * size_of::<tidemill_types::ChainElement>();
        let size = size_of::<PartitionLog>() + size_of::<Shared>() + counts + chain;
        assert!(size <= 1024, "{size} bytes");
    }
}
