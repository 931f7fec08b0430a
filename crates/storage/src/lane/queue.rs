//! The queue of a lane, bounded by bytes.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tidemill_types::EntryId;

use crate::{
    ledger::Ledger,
    outcome::{AckTo, AddKind, Completion, FenceOutcome, WriteOutcome},
};

/// Bytes that an operation without an entry counts for.
const SMALL: usize = 64;

/// What waits for the lane.
#[derive(Debug)]
pub(crate) enum Op {
    Add {
        ledger: Arc<Ledger>,
        entry: i64,
        lac: i64,
        bytes: Bytes,
        kind: AddKind,
        ack: AckTo,
    },
    /// The same bytes as an add that was accepted before: answered when that one is settled.
    Again {
        ledger: Arc<Ledger>,
        entry: i64,
        ack: AckTo,
    },
    /// Writes a record unless the fence is durable; answered after everything before it in any case (R25).
    Fence {
        ledger: Arc<Ledger>,
        done: Option<Completion<FenceOutcome>>,
    },
    Lac {
        ledger: Arc<Ledger>,
        lac: EntryId,
        done: Completion<WriteOutcome>,
    },
    Collect {
        ledger: Arc<Ledger>,
        done: Completion<WriteOutcome>,
    },
}

impl Op {
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Add { bytes, .. } => bytes.len() + SMALL,
            _ => SMALL,
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    ops: VecDeque<Op>,
    bytes: usize,
    stopping: bool,
    stopped: bool,
}

#[derive(Debug)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
    max_bytes: usize,
}

/// Why an operation was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Stopped,
}

impl Queue {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { inner: Mutex::default(), wake: Condvar::new(), max_bytes }
    }

    /// Queues an operation. Adds are refused past the limit; the others are small and must get through.
    pub(crate) fn push(&self, op: Op) -> Result<(), (Refused, Op)> {
        let mut q = self.inner.lock();
        if q.stopping || q.stopped {
            return Err((Refused::Stopped, op));
        }
        let weight = op.weight();
        if matches!(op, Op::Add { .. }) && q.bytes + weight > self.max_bytes {
            return Err((Refused::Full, op));
        }
        q.bytes += weight;
        q.ops.push_back(op);
        drop(q);
        self.wake.notify_one();
        Ok(())
    }

    /// Takes what fits into a group of `max` bytes, at least one operation when there is any.
    pub(crate) fn take(&self, max: usize, into: &mut Vec<Op>) {
        let mut q = self.inner.lock();
        let mut sum = 0;
        while let Some(op) = q.ops.front() {
            sum += op.weight();
            if sum > max && !into.is_empty() {
                break;
            }
            if let Some(op) = q.ops.pop_front() {
                q.bytes -= op.weight();
                into.push(op);
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.inner.lock().bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inner.lock().ops.is_empty()
    }

    /// Nothing more is taken; what is queued will still be written.
    pub(crate) fn stop(&self) {
        self.inner.lock().stopping = true;
        self.wake.notify_all();
    }

    pub(crate) fn stopping(&self) -> bool {
        self.inner.lock().stopping
    }

    /// Nothing is taken and nothing will be written.
    pub(crate) fn stopped(&self) -> bool {
        self.inner.lock().stopped
    }

    /// Drops everything without an answer.
    pub(crate) fn abandon(&self) {
        let ops = {
            let mut q = self.inner.lock();
            q.stopped = true;
            q.stopping = true;
            q.bytes = 0;
            std::mem::take(&mut q.ops)
        };
        self.wake.notify_all();
        drop(ops);
    }

    /// Waits until there is something to do, or for `timeout`.
    pub(crate) fn wait(&self, timeout: Option<Duration>) {
        let mut q = self.inner.lock();
        if !q.ops.is_empty() || q.stopping {
            return;
        }
        match timeout {
            Some(t) => drop(self.wake.wait_for(&mut q, t)),
            None => self.wake.wait(&mut q),
        }
    }
}
