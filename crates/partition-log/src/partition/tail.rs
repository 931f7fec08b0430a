//! What acknowledgements touch: entries in flight, the high watermark, the partition's part of the tail cache.
//!
//! The ledger's writer calls [`Shared::ack`] under its own lock. So nothing here calls a writer, and the core's lock,
//! under which writers are called, is never taken here.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_types::{EntryId, LedgerId, Offset};
use tokio::sync::Notify;

use super::op::{Done, Op, Place};
use crate::{
    StoredBatch,
    cache::{Tail as Evict, TailCache},
};

/// An acknowledged entry in the cache.
struct Cached {
    base: Offset,
    end: Offset,
    append_time_ms: i64,
    batches: Vec<(u32, Bytes)>,
    bytes: usize,
}

pub(super) struct Tail {
    /// The open ledger, while its acknowledgements count.
    ledger: Option<LedgerId>,
    lac: EntryId,
    /// Handed to the open ledger, in order.
    pending: VecDeque<Op>,
    /// Behind the last acknowledged record.
    acked: Place,
    cached: VecDeque<Cached>,
    cached_bytes: usize,
}

/// Shared by a partition log and the callbacks of its ledgers.
pub(super) struct Shared {
    tail: Mutex<Tail>,
    high_watermark: AtomicI64,
    in_flight: AtomicUsize,
    /// Parked entries wait for room in flight.
    pub(super) flush_wanted: AtomicBool,
    /// The high watermark or the state moved.
    pub(super) progress: Notify,
    /// Wakes the driver.
    pub(super) kick: Notify,
    cache: Arc<TailCache>,
    me: Weak<Self>,
}

impl Shared {
    pub(super) fn new(cache: Arc<TailCache>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            tail: Mutex::new(Tail {
                ledger: None,
                lac: EntryId::NONE,
                pending: VecDeque::new(),
                acked: Place::start(Offset(0)),
                cached: VecDeque::new(),
                cached_bytes: 0,
            }),
            high_watermark: AtomicI64::new(0),
            in_flight: AtomicUsize::new(0),
            flush_wanted: AtomicBool::new(false),
            progress: Notify::new(),
            kick: Notify::new(),
            cache,
            me: me.clone(),
        })
    }

    pub(super) fn high_watermark(&self) -> Offset {
        Offset(self.high_watermark.load(Ordering::Acquire))
    }

    pub(super) fn acked(&self) -> Place {
        self.tail.lock().acked
    }

    /// The last acknowledged entry of the open ledger.
    pub(super) fn lac(&self) -> EntryId {
        self.tail.lock().lac
    }

    /// Entries in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    pub(super) fn pending_bytes(&self) -> usize {
        self.tail.lock().pending.iter().map(|o| o.bytes).sum()
    }

    pub(super) fn cached_bytes(&self) -> usize {
        self.tail.lock().cached_bytes
    }

    /// The log as another owner left it.
    pub(super) fn adopt(&self, place: Place) {
        self.tail.lock().acked = place;
        self.high_watermark.store(place.next_offset.0, Ordering::Release);
        self.progress.notify_waiters();
    }

    /// From now on acknowledgements of this ledger count.
    pub(super) fn open(&self, ledger: LedgerId) {
        let mut t = self.tail.lock();
        t.ledger = Some(ledger);
        t.lac = EntryId::NONE;
    }

    /// Notes an entry that was handed to the open ledger. Its acknowledgement may have come already.
    pub(super) fn push(&self, ledger: LedgerId, op: Op) {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        let late = {
            let mut t = self.tail.lock();
            let late = op.entry <= t.lac;
            t.pending.push_back(op);
            late.then_some(t.lac)
        };
        if let Some(lac) = late {
            self.ack(ledger, lac);
        }
    }

    /// Everything up to `lac` is acknowledged for ever.
    pub(super) fn ack(&self, ledger: LedgerId, lac: EntryId) {
        let mut done: Vec<Done> = Vec::new();
        let mut sizes: Vec<u64> = Vec::new();
        {
            let mut t = self.tail.lock();
            if t.ledger != Some(ledger) {
                return;
            }
            t.lac = t.lac.max(lac);
            let mut n = 0;
            while let Some(mut op) = t.pending.pop_front_if(|op| op.entry <= lac) {
                n += 1;
                t.acked = op.place();
                done.append(&mut op.done);
                sizes.push(op.bytes as u64);
                t.cached_bytes += op.bytes;
                t.cached.push_back(Cached {
                    base: op.base,
                    end: op.end(),
                    append_time_ms: op.append_time_ms,
                    batches: op.batches,
                    bytes: op.bytes,
                });
            }
            self.in_flight.fetch_sub(n, Ordering::AcqRel);
            self.high_watermark.store(t.acked.next_offset.0, Ordering::Release);
        }
        if self.flush_wanted.swap(false, Ordering::AcqRel) {
            self.kick.notify_one();
        }
        if sizes.is_empty() {
            return;
        }
        done.into_iter().for_each(Done::written);
        self.progress.notify_waiters();
        let me: Weak<dyn Evict> = self.me.clone();
        self.cache.admit(&me, &sizes);
    }

    /// No acknowledgement counts any more; what was in flight, in order.
    pub(super) fn stop(&self) -> VecDeque<Op> {
        let mut t = self.tail.lock();
        t.ledger = None;
        self.in_flight.store(0, Ordering::Release);
        std::mem::take(&mut t.pending)
    }

    /// Lets a caller wait for the entry that holds `offset`. Gives it back when that is not in flight.
    pub(super) fn wait_for(&self, offset: Offset, done: Done) -> Option<Done> {
        let mut t = self.tail.lock();
        let i = t.pending.partition_point(|op| op.end() <= offset);
        match t.pending.get_mut(i) {
            Some(op) if op.base <= offset => {
                op.done.push(done);
                None
            }
            _ => Some(done),
        }
    }

    /// Batches from `offset` on, if that is in the cache: at least one entry, about `max_bytes`.
    pub(super) fn cached(&self, offset: Offset, max_bytes: usize) -> Option<Vec<StoredBatch>> {
        let t = self.tail.lock();
        let first = t.cached.partition_point(|c| c.end <= offset);
        if t.cached.get(first).is_none_or(|c| c.base > offset) {
            return None;
        }
        let mut out = Vec::new();
        let mut bytes = 0;
        for c in t.cached.range(first..) {
            if !out.is_empty() && bytes + c.bytes > max_bytes {
                break;
            }
            bytes += c.bytes;
            split(c.base, c.append_time_ms, &c.batches, offset, &mut out);
        }
        Some(out)
    }

    /// Gives back memory that an idle partition does not need.
    pub(super) fn shrink(&self) {
        let mut t = self.tail.lock();
        t.pending.shrink_to_fit();
        t.cached.shrink_to_fit();
    }
}

/// The batches of an entry that end above `offset`, with their offsets.
fn split(base: Offset, time: i64, batches: &[(u32, Bytes)], offset: Offset, out: &mut Vec<StoredBatch>) {
    let mut at = base.0;
    for (count, bytes) in batches {
        let end = at + i64::from(*count);
        if end > offset.0 {
            out.push(StoredBatch { base_offset: Offset(at), append_time_ms: time, bytes: bytes.clone() });
        }
        at = end;
    }
}

impl Evict for Shared {
    fn evict_oldest(&self) {
        let mut t = self.tail.lock();
        if let Some(c) = t.cached.pop_front() {
            t.cached_bytes -= c.bytes;
        }
    }
}
