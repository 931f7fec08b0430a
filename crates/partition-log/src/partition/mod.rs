//! The handle of an owned partition.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tidemill_record::Batch;
use tidemill_types::{Epoch, Offset, PartitionId, TopicConfig, meta::PartitionView};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    Description, FetchError, ListedOffset, LogContext, LogCounters, LogState, OffsetSpec, ProduceError,
    ProduceOutcome, ReadResult,
};

/// A share of the in-flight budget; given back when the batches are acknowledged or refused.
#[derive(Debug)]
pub struct Reservation {
    _permit: OwnedSemaphorePermit,
}

/// Resolves when the fate of a produce call is known. Dropping it does not take the call back.
#[derive(Debug)]
#[must_use]
pub struct ProduceHandle {
    receiver: oneshot::Receiver<Result<ProduceOutcome, ProduceError>>,
}

impl Future for ProduceHandle {
    type Output = Result<ProduceOutcome, ProduceError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(cx).map(|r| r.unwrap_or(Err(ProduceError::Unknown)))
    }
}

/// One owned partition in one epoch. Work is driven by the callers' futures, by [`PartitionLog::maintain`], and, only
/// while a ledger is open or being changed, by one task.
pub struct PartitionLog {
    _private: (),
}

impl PartitionLog {
    /// Takes a partition over whose `Acquire` gave `epoch`; `view` was read after it. Returns at once in state
    /// [`LogState::Recovering`]; produce calls wait until the state is rebuilt. Must be called on a tokio runtime.
    ///
    /// The log lives until [`PartitionLog::release`] or [`PartitionLog::abandon`]: dropping the handle alone does not end
    /// it while a ledger is open.
    #[must_use]
    pub fn open(
        _ctx: Arc<LogContext>,
        _view: PartitionView,
        _epoch: Epoch,
        _config: Arc<TopicConfig>,
    ) -> Arc<Self> {
        todo!()
    }

    /// The partition.
    #[must_use]
    pub fn id(&self) -> PartitionId {
        todo!()
    }

    /// The epoch that this log serves.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        todo!()
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> LogState {
        todo!()
    }

    /// Waits until the state is not [`LogState::Recovering`] and returns it.
    pub async fn ready(&self) -> LogState {
        todo!()
    }

    /// Offset behind the last acknowledged record, from memory.
    #[must_use]
    pub fn high_watermark(&self) -> Offset {
        todo!()
    }

    /// First offset of the log.
    #[must_use]
    pub fn log_start(&self) -> Offset {
        todo!()
    }

    /// New effective configuration of the topic.
    pub fn set_config(&self, _config: Arc<TopicConfig>) {
        todo!()
    }

    /// Takes `bytes` of the in-flight budget; waits for it up to the configured time.
    ///
    /// # Errors
    /// [`ProduceError::Overloaded`], [`ProduceError::TooLarge`].
    pub async fn reserve(&self, _bytes: usize) -> Result<Reservation, ProduceError> {
        todo!()
    }

    /// Appends batches, each checked with [`tidemill_record::check`], as one entry. Never waits: the order of calls is
    /// the order of offsets and of answers.
    pub fn submit(self: &Arc<Self>, _batches: Vec<Batch>, _reservation: Reservation) -> ProduceHandle {
        todo!()
    }

    /// [`PartitionLog::reserve`] and [`PartitionLog::submit`]. Order among calls that wait for the budget is the order in
    /// which they began to wait.
    ///
    /// # Errors
    /// [`ProduceError`].
    pub async fn produce(self: &Arc<Self>, _batches: Vec<Batch>) -> Result<ProduceOutcome, ProduceError> {
        todo!()
    }

    /// Reads from `offset` on: at least one batch when there is one, about `max_bytes`. At the high watermark: no batches,
    /// after proof of ownership. Does not wait for data.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn read(
        self: &Arc<Self>,
        _offset: Offset,
        _max_bytes: usize,
    ) -> Result<ReadResult, FetchError> {
        todo!()
    }

    /// Waits until the high watermark is above `offset`, or the log is not serving any more.
    pub async fn wait_for_data(&self, _offset: Offset) {
        todo!()
    }

    /// An offset by position or time; `None`: no record has such a timestamp.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn list_offset(
        self: &Arc<Self>,
        _spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, FetchError> {
        todo!()
    }

    /// Proves that this process owned the partition after the call began: by the session, else by a barrier, else by a
    /// linearizable read (metadata, Sessions).
    ///
    /// # Errors
    /// [`FetchError::NotOwner`].
    pub async fn confirm_ownership(self: &Arc<Self>) -> Result<(), FetchError> {
        todo!()
    }

    /// Moves the log start forward, at most to the high watermark. Returns the log start after it.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn advance_log_start(self: &Arc<Self>, _to: Offset) -> Result<Offset, FetchError> {
        todo!()
    }

    /// Gives the partition up in order: takes nothing new, finishes what is in flight, closes the open ledger. When it
    /// returns the state is [`LogState::Closed`] (or [`LogState::Dropped`]) and nothing that needs ownership is answered
    /// any more (M27): the `Release` may be sent.
    pub async fn release(self: &Arc<Self>) -> LogState {
        todo!()
    }

    /// Drops the partition at once: another owner was seen, or the session of this epoch is gone. Calls that were handed
    /// to a ledger end with outcome unknown, the others as not written.
    pub fn abandon(&self) {
        todo!()
    }

    /// Roll by age, idle close, expiry, memory. To be called about once a second; `now` is [`tidemill_runtime::Clock::boottime`].
    pub fn maintain(self: &Arc<Self>, _now: Duration) {
        todo!()
    }

    /// For people and metrics.
    #[must_use]
    pub fn describe(&self) -> Description {
        todo!()
    }

    /// Rare events of this process.
    #[must_use]
    pub fn counters(&self) -> LogCounters {
        todo!()
    }
}
