//! The fate of a batch, shared by the handles of its records.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use super::DeliveryError;

/// Where an acknowledged record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMeta {
    /// Partition index.
    pub partition: u32,
    /// Its offset; `None` when the broker only remembers that it was written (`DUPLICATE_SEQUENCE`).
    pub offset: Option<i64>,
    /// The broker's append time, ms since the Unix epoch.
    pub append_time: i64,
}

/// Base offset and append time of a written batch, or why it is not known to be written.
pub(crate) type Outcome = Result<(Option<i64>, i64), DeliveryError>;

/// A batch as the handles see it.
#[derive(Debug)]
pub(crate) struct BatchState {
    partition: u32,
    outcome: OnceLock<Outcome>,
    wakers: Mutex<Vec<Waker>>,
}

impl BatchState {
    pub(crate) fn new(partition: u32) -> Arc<Self> {
        Arc::new(Self { partition, outcome: OnceLock::new(), wakers: Mutex::new(Vec::new()) })
    }

    /// Decides the batch; only the first decision counts. Says whether this was the first.
    pub(crate) fn resolve(&self, outcome: Outcome) -> bool {
        let first = self.outcome.set(outcome).is_ok();
        // Wakers that come after the decision see it under the lock, so none is left behind.
        let wakers = std::mem::take(&mut *self.wakers.lock());
        wakers.into_iter().for_each(Waker::wake);
        first
    }

    pub(crate) fn is_resolved(&self) -> bool {
        self.outcome.get().is_some()
    }
}

/// Handle to a sent record: await it for its place in the log, or drop it; the record is sent either way.
#[derive(Debug)]
pub struct Delivery {
    batch: Arc<BatchState>,
    index: u32,
    /// Place among the batch's wakers.
    slot: Option<usize>,
}

impl Delivery {
    #[inline]
    pub(crate) fn new(batch: Arc<BatchState>, index: u32) -> Self {
        Self { batch, index, slot: None }
    }

    /// The partition that the record goes to.
    #[must_use]
    pub fn partition(&self) -> u32 {
        self.batch.partition
    }

    /// Whether both records are in the same batch: then they have the same fate, at the same moment.
    #[inline]
    #[must_use]
    pub fn same_batch(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.batch, &other.batch)
    }

    /// Another handle to the same record.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::new(self.batch.clone(), self.index)
    }

    /// The result, if it is there.
    #[must_use]
    pub fn try_get(&self) -> Option<Result<RecordMeta, DeliveryError>> {
        self.batch.outcome.get().map(|o| match o {
            Ok((base, append_time)) => Ok(RecordMeta {
                partition: self.batch.partition,
                offset: base.map(|b| b.saturating_add(i64::from(self.index))),
                append_time: *append_time,
            }),
            Err(e) => Err(e.clone()),
        })
    }
}

impl Future for Delivery {
    type Output = Result<RecordMeta, DeliveryError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(done) = self.try_get() {
            return Poll::Ready(done);
        }
        let slot = {
            let mut wakers = self.batch.wakers.lock();
            if self.batch.is_resolved() {
                None
            } else {
                let slot = self.slot.unwrap_or(wakers.len());
                match wakers.get_mut(slot) {
                    Some(w) => w.clone_from(cx.waker()),
                    None => wakers.push(cx.waker().clone()),
                }
                Some(slot)
            }
        };
        self.slot = slot;
        match self.try_get() {
            Some(done) => Poll::Ready(done),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_handles_of_a_batch_get_their_own_offset() {
        let batch = BatchState::new(3);
        let handles = futures::future::join_all((0..4).map(|i| Delivery::new(batch.clone(), i)));
        let waiting = tokio::spawn(handles);
        tokio::task::yield_now().await;
        assert!(batch.resolve(Ok((Some(10), 99))));
        assert!(!batch.resolve(Ok((Some(11), 99))));
        let offsets: Vec<_> = waiting.await.unwrap().into_iter().map(|r| r.unwrap().offset).collect();
        assert_eq!(offsets, [Some(10), Some(11), Some(12), Some(13)]);
    }
}
