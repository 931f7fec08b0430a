//! The shared maintenance tick, release, and what people and metrics see.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::PartitionLog;
use crate::{Description, LogState, ProduceError};

/// A pass over all producers of a partition, so not at every tick. What is expired is judged as such before it is forgotten.
const EXPIRY_PASS: Duration = Duration::from_mins(1);

impl PartitionLog {
    pub(super) fn maintain_at(self: &Arc<Self>, now: Duration) {
        let mut core = self.core.lock();
        if core.state != LogState::Serving {
            return;
        }
        let config = &self.ctx.config;
        let (roll_bytes, roll_age) = (config.roll_bytes(&core.config), config.roll_age(&core.config));
        if let Some(o) = core.open.as_ref().filter(|o| !o.closing) {
            // Empty means no `data` entry: such a ledger is never rolled.
            let due = o.data_entries > 0
                && (o.roll_wanted
                    || o.writer.length() >= roll_bytes
                    || now.saturating_sub(o.opened) >= roll_age);
            let idle = now.saturating_sub(o.last_append) >= config.idle_close
                && self.shared.in_flight() == 0
                && core.parked.is_empty();
            core.want_close = idle;
            core.want_roll = due && !idle;
        } else if core.open.is_none() && core.parked.is_empty() {
            core.parked.shrink_to_fit();
            core.unjudged.shrink_to_fit();
            core.chain.shrink_to_fit();
            self.shared.shrink();
            // Read-ahead and readers come back with the next catch-up read.
            self.catch_up.lock().take();
        }
        if now.saturating_sub(core.expired_at) >= EXPIRY_PASS {
            core.expired_at = now;
            let expired = self.expired_before(core.judged.append_time_ms.max(self.quorum_bound()));
            core.producers.expire(expired);
        }
        self.trim_if_due(&mut core, now);
        self.compact_if_due(&mut core, now);
        self.drive_if_needed(&mut core);
    }

    /// A time that surely has passed: a producer is not forgotten because the own clock is wrong.
    fn quorum_bound(&self) -> i64 {
        self.ctx.meta.quorum_time_ms().map_or(i64::MIN, |q| q.min(self.ctx.clock.realtime_ms()))
    }

    pub(super) async fn release_in_order(self: &Arc<Self>) -> LogState {
        {
            let mut core = self.core.lock();
            match core.state {
                LogState::Closed | LogState::Dropped => return core.state,
                // Nothing of it is in memory yet, and no ledger is open.
                LogState::Recovering => {
                    drop(core);
                    self.drop_log("released before it was taken over");
                    return LogState::Dropped;
                }
                LogState::Serving | LogState::Releasing => core.state = LogState::Releasing,
            }
            if core.driver {
                self.shared.kick.notify_one();
            }
            self.drive_if_needed(&mut core);
        }
        let done = self.until(|s| matches!(s, LogState::Closed | LogState::Dropped));
        match timeout(self.ctx.config.produce_wait, done).await {
            Ok(state) => state,
            Err(_) => {
                self.drop_log("what is in flight did not end");
                LogState::Dropped
            }
        }
    }

    /// Everything is closed: from here on nothing that needs ownership is answered (M27).
    pub(super) fn finish_release(&self) {
        let parked = {
            let mut core = self.core.lock();
            core.state = LogState::Closed;
            core.readable = false;
            std::mem::take(&mut core.parked)
        };
        for op in self.shared.stop() {
            op.done.into_iter().for_each(|d| d.failed(ProduceError::Unknown));
        }
        for op in parked {
            op.done.into_iter().for_each(|d| d.failed(ProduceError::NotWritten));
        }
        self.shared.progress.notify_waiters();
    }

    pub(super) fn description(&self) -> Description {
        let core = self.core.lock();
        let parked: usize = core.parked.iter().map(|o| o.bytes).sum();
        Description {
            partition: self.id,
            epoch: self.epoch,
            state: core.state,
            high_watermark: self.shared.high_watermark(),
            log_start: core.log_start,
            ledgers: core.chain.len(),
            open_ledger: core.open.as_ref().map(|o| o.ledger),
            degraded: core.open.as_ref().is_some_and(|o| o.degraded),
            pending_bytes: parked + self.shared.pending_bytes(),
            producers: core.producers.len(),
            cached_bytes: self.shared.cached_bytes(),
            compaction: core.compaction.as_ref().map(|c| c.status),
        }
    }
}
