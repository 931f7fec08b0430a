//! A `data` entry on its way, and the callers that wait for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tidemill_types::{EntryId, Offset};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{ProduceError, ProduceOutcome};

/// A share of the in-flight budget; given back when the batches are acknowledged or refused.
#[derive(Debug)]
pub struct Reservation {
    pub(super) _permit: OwnedSemaphorePermit,
}

/// Resolves when the fate of a produce call is known. Dropping it does not take the call back.
#[derive(Debug)]
#[must_use]
pub struct ProduceHandle {
    pub(super) receiver: oneshot::Receiver<Result<ProduceOutcome, ProduceError>>,
}

impl Future for ProduceHandle {
    type Output = Result<ProduceOutcome, ProduceError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(cx).map(|r| r.unwrap_or(Err(ProduceError::Unknown)))
    }
}

/// A caller and what it is told when the entry is written.
pub(super) struct Done {
    pub(super) tx: oneshot::Sender<Result<ProduceOutcome, ProduceError>>,
    pub(super) outcome: ProduceOutcome,
    pub(super) reservation: Option<Reservation>,
}

impl Done {
    pub(super) fn written(self) {
        let _ = self.tx.send(Ok(self.outcome));
        drop(self.reservation);
    }

    pub(super) fn failed(self, e: ProduceError) {
        let _ = self.tx.send(Err(e));
        drop(self.reservation);
    }
}

/// A `data` entry that is not acknowledged. Its offsets never change, whichever ledger takes it.
pub(super) struct Op {
    /// In the ledger that it was handed to; without meaning before.
    pub(super) entry: EntryId,
    pub(super) base: Offset,
    pub(super) count: u32,
    pub(super) append_time_ms: i64,
    pub(super) max_timestamp_ms: i64,
    pub(super) max_timestamp_so_far_ms: i64,
    /// Records and bytes of each batch.
    pub(super) batches: Vec<(u32, Bytes)>,
    pub(super) bytes: usize,
    pub(super) done: Vec<Done>,
}

impl Op {
    /// Keeps the batches as parts of the encoded entry, so that the buffers in which they came are let go: those are up to twice as
    /// large, and the tail cache would hold them.
    pub(super) fn share(&mut self, body: &Bytes) {
        let mut at = 0;
        for (_, bytes) in &mut self.batches {
            let end = at + bytes.len();
            if end <= body.len() {
                *bytes = body.slice(at..end);
            }
            at = end;
        }
    }

    /// Offset behind its records.
    pub(super) fn end(&self) -> Offset {
        Offset(self.base.0 + i64::from(self.count))
    }

    /// The place in the log behind it.
    pub(super) fn place(&self) -> Place {
        Place {
            next_offset: self.end(),
            append_time_ms: self.append_time_ms,
            max_timestamp_ms: self.max_timestamp_so_far_ms,
        }
    }

    /// Whether `next`, which follows, may become part of the same entry.
    pub(super) fn takes(&self, next: &Self, max_bytes: usize) -> bool {
        self.bytes + next.bytes <= max_bytes
            && self.append_time_ms == next.append_time_ms
            && self.count.checked_add(next.count).is_some_and(|c| c <= crate::envelope::MAX_RECORDS)
    }

    /// Makes `next` part of this entry.
    pub(super) fn merge(&mut self, next: Self) {
        self.count += next.count;
        self.bytes += next.bytes;
        self.max_timestamp_ms = self.max_timestamp_ms.max(next.max_timestamp_ms);
        self.max_timestamp_so_far_ms = next.max_timestamp_so_far_ms;
        self.batches.extend(next.batches);
        self.done.extend(next.done);
    }
}

/// A place in the log: what is true behind the last entry before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset of the next record.
    pub(super) next_offset: Offset,
    /// Append time of the last record.
    pub(super) append_time_ms: i64,
    /// Largest timestamp of all records.
    pub(super) max_timestamp_ms: i64,
}

impl Place {
    pub(super) fn start(offset: Offset) -> Self {
        Self { next_offset: offset, append_time_ms: 0, max_timestamp_ms: -1 }
    }
}
