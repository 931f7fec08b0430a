//! Produce: judged, ordered and handed out in one step under the core's lock.

use std::{
    cmp,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tidemill_ledger::BookieTable;
use tidemill_record::Batch;
use tidemill_types::{BookieState, EntryId, Offset};
use tokio::{sync::oneshot, time::timeout};

use super::{
    PartitionLog,
    core::{Call, Core, Limits},
    op::{Done, Op, ProduceHandle, Reservation},
};
use crate::{
    LogState, ProduceError, ProduceOutcome,
    producers::{Sequenced, Verdict},
};

/// How far the append time of a call that waits may lie behind the clock.
const SHARED_TIME_MS: i64 = 100;

/// What the batches of a call are, all alike.
enum Judged {
    New,
    Known { outcome: ProduceOutcome, wait: Option<Offset>, rebuilt: bool },
}

impl PartitionLog {
    pub(super) async fn reserve_bytes(&self, bytes: usize) -> Result<Reservation, ProduceError> {
        let max = self.ctx.config.max_entry_bytes.min(self.ctx.config.in_flight_bytes);
        if bytes > max {
            return Err(ProduceError::TooLarge { bytes, max });
        }
        let permits = u32::try_from(bytes).map_err(|_| ProduceError::TooLarge { bytes, max })?;
        let wait = self.ctx.config.produce_wait;
        self.wait_for_disks(wait).await?;
        match timeout(wait, self.ctx.in_flight.clone().acquire_many_owned(permits)).await {
            Ok(Ok(permit)) => Ok(Reservation { _permit: permit }),
            _ => Err(ProduceError::Overloaded { retry_after: wait }),
        }
    }

    /// Back-pressure before the batch is handed to anybody: nothing of it is written when the disks stay full. Whoever comes
    /// later waits only for what is left of the wait, or many batches of one stream would each wait in turn.
    async fn wait_for_disks(&self, wait: Duration) -> Result<(), ProduceError> {
        let mut bookies = self.ctx.meta.bookies();
        let since = &self.ctx.full_since;
        let some = bookies.borrow().iter().any(|b| b.state == BookieState::Ro);
        let ack_quorum = if some { self.core.lock().config.replication.ack_quorum } else { 0 };
        if !are_full(&bookies.borrow(), ack_quorum) {
            if since.load(Ordering::Relaxed) != 0 {
                since.store(0, Ordering::Relaxed);
            }
            return Ok(());
        }
        let now = u64::try_from(self.ctx.clock.boottime().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let first = match since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => now,
            Err(first) => first,
        };
        let left = wait.saturating_sub(Duration::from_millis(now.saturating_sub(first)));
        let room = timeout(left, bookies.wait_for(|table| !are_full(table, ack_quorum))).await;
        match room {
            Ok(_) => Ok(()),
            Err(_) => Err(ProduceError::DiskFull { ack_quorum, retry_after: wait }),
        }
    }

    pub(super) fn submit_call(
        self: &Arc<Self>,
        batches: Vec<Batch>,
        reservation: Reservation,
    ) -> ProduceHandle {
        let (tx, receiver) = oneshot::channel();
        let call = Call { batches, tx, reservation: Some(reservation) };
        let mut core = self.core.lock();
        match core.state {
            LogState::Recovering => core.unjudged.push_back(call),
            LogState::Serving => {
                self.judge_and_take(&mut core, call);
                self.drive_if_needed(&mut core);
            }
            LogState::Releasing | LogState::Closed | LogState::Dropped => {
                let _ = call.tx.send(Err(ProduceError::NotOwner));
            }
        }
        ProduceHandle { receiver }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            state_entry_every: self.ctx.config.state_entry_every,
            coalesce_after: self.ctx.config.coalesce_after,
            coalesce_bytes: self.ctx.config.coalesce_bytes,
            roll_bytes: self.ctx.config.roll_bytes,
            now: self.ctx.clock.boottime(),
        }
    }

    /// Own clock, but not far ahead of the quorum's, and never back (metadata, Time).
    pub(super) fn append_time(&self, core: &Core) -> i64 {
        let own = self.ctx.clock.realtime_ms();
        let ahead = i64::try_from(self.ctx.config.append_time_ahead.as_millis()).unwrap_or(i64::MAX);
        let bound = self.ctx.meta.quorum_time_ms().map_or(i64::MAX, |q| q.saturating_add(ahead));
        cmp::max(core.judged.append_time_ms, cmp::min(own, bound))
    }

    /// Append time at or below which a producer's last batch makes it forgotten.
    pub(super) fn expired_before(&self, now_ms: i64) -> i64 {
        let expiry = i64::try_from(self.ctx.config.producer_expiry.as_millis()).unwrap_or(i64::MAX);
        now_ms.saturating_sub(expiry)
    }

    pub(super) fn judge_and_take(self: &Arc<Self>, core: &mut Core, call: Call) {
        // Calls that wait together share a time, so that they can become one entry.
        let now = self.append_time(core);
        let append_time_ms = match core.parked.back() {
            Some(op) if now - op.append_time_ms <= SHARED_TIME_MS => op.append_time_ms,
            _ => now,
        };
        let (base, judged) = (core.judged.next_offset, self.judge(core, &call.batches, append_time_ms));
        match judged {
            Err(e) => {
                let _ = call.tx.send(Err(e));
            }
            Ok(Judged::Known { outcome, wait, rebuilt }) => {
                core.counters.duplicates_after_take_over += u64::from(rebuilt);
                if rebuilt {
                    tracing::debug!(target: "tidemill_rare", "duplicate answered from rebuilt state");
                }
                let done = Done { tx: call.tx, outcome, reservation: call.reservation };
                match wait {
                    None => done.written(),
                    Some(offset) => core.wait_for(&self.shared, offset, done),
                }
            }
            Ok(Judged::New) => {
                let max_timestamp_ms =
                    call.batches.iter().map(|b| b.header.max_timestamp).max().unwrap_or(-1);
                let batches: Vec<_> = call.batches.into_iter().map(|b| (records(&b), b.bytes)).collect();
                let op = Op {
                    entry: EntryId::NONE,
                    base,
                    count: batches.iter().map(|(n, _)| n).sum(),
                    append_time_ms,
                    max_timestamp_ms,
                    max_timestamp_so_far_ms: core.judged.max_timestamp_ms.max(max_timestamp_ms),
                    bytes: batches.iter().map(|(_, b)| b.len()).sum(),
                    batches,
                    done: vec![Done {
                        tx: call.tx,
                        outcome: ProduceOutcome { base_offset: base, append_time_ms, duplicate: false },
                        reservation: call.reservation,
                    }],
                };
                core.judged = op.place();
                core.take(&self.shared, self.limits(), op);
            }
        }
    }

    /// Judges the batches of a call and notes new ones. All or nothing: after an error nothing has changed.
    fn judge(&self, core: &mut Core, batches: &[Batch], append_time_ms: i64) -> Result<Judged, ProduceError> {
        self.check_sizes(core, batches)?;
        let ids: Vec<i64> = match batches {
            [_] => Vec::new(),
            many => many.iter().filter_map(|b| Sequenced::of(&b.header)).map(|s| s.id).collect(),
        };
        let saved = core.producers.saved(ids.iter().copied());
        let result = self.judge_each(core, batches, append_time_ms);
        if result.is_err() {
            core.producers.restore(saved);
        }
        result
    }

    fn check_sizes(&self, core: &Core, batches: &[Batch]) -> Result<(), ProduceError> {
        if batches.is_empty() {
            return Err(ProduceError::Empty);
        }
        let max = self.ctx.config.max_message_bytes(&core.config);
        let mut sum = 0;
        for b in batches {
            if b.bytes.len() > max {
                return Err(ProduceError::TooLarge { bytes: b.bytes.len(), max });
            }
            if b.header.attributes.is_transactional() {
                return Err(ProduceError::Transactional);
            }
            sum += b.bytes.len();
        }
        let max = self.ctx.config.max_entry_bytes;
        if sum > max { Err(ProduceError::TooLarge { bytes: sum, max }) } else { Ok(()) }
    }

    fn judge_each(
        &self,
        core: &mut Core,
        batches: &[Batch],
        append_time_ms: i64,
    ) -> Result<Judged, ProduceError> {
        let hwm = self.shared.high_watermark();
        let expired = self.expired_before(append_time_ms);
        let mut next = core.judged.next_offset;
        let mut result: Option<Judged> = None;
        for (n, b) in batches.iter().enumerate() {
            let sequenced = Sequenced::of(&b.header);
            let verdict = match &sequenced {
                Some(s) if !core.producers.has_room_for(s.id) => {
                    return Err(ProduceError::Overloaded { retry_after: Duration::from_mins(1) });
                }
                Some(s) => core.producers.judge(s, hwm, expired),
                None => Verdict::Append,
            };
            let known = |offset, append_time_ms, wait, rebuilt| Judged::Known {
                outcome: ProduceOutcome { base_offset: offset, append_time_ms, duplicate: true },
                wait,
                rebuilt,
            };
            let one = match (verdict, sequenced) {
                (Verdict::Append, s) => {
                    if let Some(s) = s {
                        // More than are remembered could not be recognised again.
                        let mine = batches[..n].iter().filter(|b| b.header.producer_id == s.id).count();
                        if mine >= tidemill_runtime::defaults::PRODUCER_BATCHES {
                            return Err(ProduceError::Rebatched);
                        }
                        core.producers.push(&s, next, append_time_ms, hwm);
                    }
                    next = Offset(next.0 + i64::from(records(b)));
                    Judged::New
                }
                (Verdict::Duplicate { offset, append_time_ms, rebuilt }, _) => {
                    known(offset, append_time_ms, None, rebuilt)
                }
                (Verdict::WaitFor { pushed, offset, append_time_ms }, _) => {
                    known(offset, append_time_ms, Some(pushed), false)
                }
                (Verdict::OldDuplicate, _) => return Err(ProduceError::DuplicateSequence),
                (Verdict::OutOfOrder { expected }, s) => {
                    return Err(ProduceError::OutOfOrder { expected, found: s.map_or(-1, |s| s.first) });
                }
                (Verdict::Fenced { current }, s) => {
                    return Err(ProduceError::ProducerFenced { current, found: s.map_or(-1, |s| s.epoch) });
                }
                (Verdict::UnknownProducer, s) => {
                    return Err(ProduceError::UnknownProducer { id: s.map_or(-1, |s| s.id) });
                }
                (Verdict::Closed, s) => {
                    return Err(ProduceError::ProducerClosed { id: s.map_or(-1, |s| s.id) });
                }
            };
            result = Some(match (result, one) {
                (None, one) => one,
                (Some(Judged::New), Judged::New) => Judged::New,
                (
                    Some(Judged::Known { outcome, wait: a, rebuilt }),
                    Judged::Known { wait: b, rebuilt: r, .. },
                ) => Judged::Known { outcome, wait: a.max(b), rebuilt: rebuilt | r },
                _ => return Err(ProduceError::Rebatched),
            });
        }
        result.ok_or(ProduceError::Empty)
    }
}

/// Whether full disks leave no ack quorum. Bookies that are away count as writable: they come back, or are replaced.
fn are_full(table: &BookieTable, ack_quorum: u8) -> bool {
    let count = |state| table.iter().filter(|b| b.state == state).count();
    count(BookieState::Rw) < usize::from(ack_quorum) && count(BookieState::Ro) > 0
}

/// Records of a checked batch.
fn records(b: &Batch) -> u32 {
    u32::try_from(i64::from(b.header.last_offset_delta) + 1).unwrap_or(0)
}
