//! Key compaction of an owned partition: when a pass is due, and its steps (broker rules 2.7).
//!
//! ```text
//! look at the chain -> keys of the dirty ledgers -> write output ledgers, close them -> Swap -> old ledgers go (R20)
//! ```
//!
//! Until the `Swap` nothing of it is seen: a crash leaves ledgers of this epoch in no chain, which the auditor removes once the
//! partition has another owner. Readers go on in the old list until the command is known to have committed.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tidemill_types::{Cleanup, EntryId, LedgerId, LedgerRecord, LedgerState, Offset, meta::PartitionView};

use super::{
    PartitionLog, Stop,
    catch_up::{envelope_of, fetch_error},
    core::Core,
};
use crate::{
    CompactionStatus, LogState,
    compaction::{Decision, Piece, Rule, decide, plan},
    envelope::Compaction,
};

/// Least time between two looks at a partition, and after a pass that failed.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What a look depends on: first and last ledger, their number, and the topic's wish.
type Seen = (LedgerId, LedgerId, usize, Cleanup);

/// Compaction of a partition, kept between its passes.
#[derive(Debug, Default)]
pub(super) struct Compacting {
    pub(super) status: CompactionStatus,
    /// What the last look that found nothing to do saw.
    seen: Option<Seen>,
    not_before: Duration,
    running: bool,
    /// Ledgers at the front of the chain that are known to be clean.
    clean: Vec<LedgerId>,
    /// From then on a tombstone of the clean ledgers may go, ms: by the last pass of this owner, and before its first one the
    /// latest time that an owner before it can have set.
    pub(super) horizon_ms: Option<i64>,
    /// Output of passes that failed, to be discarded.
    pub(super) orphans: Vec<LedgerId>,
}

/// A pass that is due.
pub(super) struct Job {
    /// What is read, with base offsets.
    pub(super) input: Vec<(LedgerRecord, Offset)>,
    /// So many of them are clean.
    pub(super) clean: usize,
    /// Base of the ledger behind them.
    pub(super) end: Offset,
    pub(super) log_start: Offset,
}

/// Why a pass did not end.
#[derive(Debug)]
pub(super) enum Failed {
    /// Again after a while.
    Later(String),
    /// The partition is being given up, or is lost.
    Gone,
}

impl From<Stop> for Failed {
    fn from(s: Stop) -> Self {
        match s {
            Stop::Retry(why) => Self::Later(why),
            Stop::Drop(_) => Self::Gone,
        }
    }
}

pub(super) fn later(what: &str, e: impl std::fmt::Display) -> Failed {
    Failed::Later(format!("{what}: {e}"))
}

impl PartitionLog {
    /// Starts a look when the chain is not the one that the last look saw.
    pub(super) fn compact_if_due(self: &Arc<Self>, core: &mut Core, now: Duration) {
        let cleanup = core.config.cleanup;
        if !cleanup.policy.compacts() {
            if core.compaction.as_ref().is_some_and(|c| !c.running) {
                core.compaction = None;
            }
            return;
        }
        let (Some(first), Some(last)) = (core.chain.first(), core.chain.last()) else { return };
        let seen = (first.ledger, last.ledger, core.chain.len(), cleanup);
        let confirmed = self.ctx.meta.confirmed_time_ms();
        let c = core.compaction.get_or_insert_default();
        let tombstones = c.horizon_ms.zip(confirmed).is_some_and(|(h, now)| h <= now);
        let news = c.seen != Some(seen) || tombstones || !c.orphans.is_empty();
        if c.running || now < c.not_before || !news {
            return;
        }
        c.running = true;
        let me = self.clone();
        tokio::spawn(async move { me.compact(seen, tombstones).await });
    }

    async fn compact(self: Arc<Self>, seen: Seen, tombstones: bool) {
        let result = tokio::select! {
            r = self.compact_once(tombstones) => r,
            () = self.gone() => Err(Failed::Gone),
        };
        let mut core = self.core.lock();
        let now = self.ctx.clock.boottime();
        let c = core.compaction.get_or_insert_default();
        c.running = false;
        c.status.progress_percent = None;
        c.not_before = now + PAUSE.0;
        match result {
            Ok(Done::Pass) => c.status.passes += 1,
            Ok(Done::NotDue) => c.seen = Some(seen),
            Ok(Done::NotYet) | Err(Failed::Gone) => {}
            Err(Failed::Later(why)) => {
                c.status.failed += 1;
                c.not_before = now + PAUSE.1;
                self.ctx.compaction.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(partition = %self.id, why, "compaction is put off");
            }
        }
    }

    async fn compact_once(self: &Arc<Self>, tombstones: bool) -> Result<Done, Failed> {
        let Ok(_turn) = self.ctx.compactions.acquire().await else { return Ok(Done::NotYet) };
        self.discard_orphans().await?;
        let view = self.read_view().await?;
        if let Err(Stop::Drop(why) | Stop::Retry(why)) = self.check_owner(&view) {
            self.drop_log(&why);
            return Err(Failed::Gone);
        }
        let (input, limited) = self.compactable(&view);
        let pieces = self.pieces(&input).await?;
        let rule = {
            let mut core = self.core.lock();
            let cleanup = core.config.cleanup;
            let log_start = core.log_start;
            let latest_horizon = self.horizon_ms(&cleanup);
            let c = core.compaction.get_or_insert_default();
            c.status.dirty_permille = Some(plan::dirty_permille(&pieces));
            let clean = plan::clean_prefix(&pieces);
            c.clean = input.iter().take(clean).map(|(l, _)| l.id).collect();
            if clean > 0 && c.status.passes == 0 {
                // Others compacted these, and what horizons they gave is known to nobody without reading it all.
                c.horizon_ms.get_or_insert(latest_horizon);
            }
            c.status.clean_to = pieces.get(clean).map(|p| p.base).or(end_of(&pieces)).unwrap_or(log_start);
            let least = cleanup.min_dirty_permille.unwrap_or(self.ctx.config.min_dirty_permille);
            Rule { min_dirty_permille: least, tombstones_due: tombstones }
        };
        let (clean, end) = match (decide(&pieces, rule), end_of(&pieces)) {
            (Decision::Run { clean }, Some(end)) => (clean, end),
            _ if limited => return Ok(Done::NotYet),
            _ => return Ok(Done::NotDue),
        };
        let log_start = self.core.lock().log_start.max(view.partition.log_start);
        self.ctx.compaction.running.fetch_add(1, Ordering::Relaxed);
        let running = Running(self);
        let result = self.pass(Job { input, clean, end, log_start }).await;
        drop(running);
        result.map(|()| Done::Pass)
    }

    /// CLOSED ledgers that a pass may take: not the last of the chain, and not the newest with the producers' state. Also
    /// whether an open ledger without a durable state keeps one back for a moment.
    fn compactable(&self, view: &PartitionView) -> (Vec<(LedgerRecord, Offset)>, bool) {
        let core = self.core.lock();
        let durable = core.has_durable_state(self.shared.lac());
        let ledgers = &view.ledgers;
        let newest = ledgers.iter().rposition(|l| l.records.is_some_and(|n| n > 0)).unwrap_or(0);
        let bound = if durable { ledgers.len() } else { newest }.min(ledgers.len().saturating_sub(1));
        let input = (ledgers.iter().zip(&view.partition.chain))
            .take(bound)
            .take_while(|(l, _)| l.state == LedgerState::Closed)
            .map(|(l, e)| (l.clone(), e.base_offset))
            .collect();
        (input, !durable && core.open.is_some())
    }

    /// What is known of them. Of a ledger that is not known yet its last entry says whether it is clean; behind the first dirty
    /// one nobody asks.
    async fn pieces(&self, input: &[(LedgerRecord, Offset)]) -> Result<Vec<Piece>, Failed> {
        let known = self.core.lock().compaction.as_ref().map(|c| c.clean.clone()).unwrap_or_default();
        let mut pieces = Vec::with_capacity(input.len());
        let mut all_clean = true;
        for (l, base) in input {
            if all_clean && !known.contains(&l.id) {
                all_clean = self.is_clean(l).await?;
            }
            pieces.push(Piece {
                base: *base,
                span: l.records.unwrap_or(0),
                bytes: l.length.unwrap_or(0),
                clean: all_clean,
            });
        }
        Ok(pieces)
    }

    async fn is_clean(&self, l: &LedgerRecord) -> Result<bool, Failed> {
        let end = l.last_entry.unwrap_or(EntryId::NONE);
        if end < EntryId::FIRST {
            return Ok(false);
        }
        let head = self.ctx.ledgers.reader(l.clone()).read_head(end).await;
        let head = head.map_err(|e| later("last entry", fetch_error(&e, Offset(0))))?;
        let envelope = envelope_of(&head.envelope).map_err(|e| later("last entry", e))?;
        Ok(envelope.compaction == Compaction::Clean)
    }

    /// Ends a pass whose partition is being given up: a release waits for nothing here.
    pub(super) fn check_serving(&self) -> Result<(), Failed> {
        if self.core.lock().state == LogState::Serving { Ok(()) } else { Err(Failed::Gone) }
    }

    pub(super) fn note_progress(&self, percent: u64) {
        if let Some(c) = self.core.lock().compaction.as_mut() {
            c.status.progress_percent = Some(u8::try_from(percent.min(100)).unwrap_or(100));
        }
    }
}

/// What a look came to.
enum Done {
    Pass,
    NotDue,
    /// Nothing to do for a reason that is over soon.
    NotYet,
}

/// Counts a pass while it runs, however it ends.
struct Running<'a>(&'a PartitionLog);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.ctx.compaction.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn end_of(pieces: &[Piece]) -> Option<Offset> {
    pieces.last().map(|p| Offset(p.base.0.saturating_add_unsigned(p.span)))
}
