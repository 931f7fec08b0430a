//! Retention and deletion of records: when a look is due, and what it does (broker rules 2.7).

use std::{sync::Arc, time::Duration};

use tidemill_types::{EntryId, LedgerId, LedgerRecord, LedgerState, Offset};

use super::{
    PartitionLog, Stop,
    catch_up::{envelope_of, fetch_error},
    core::Core,
};
use crate::{
    FetchError, LogState,
    retention::{Decision, OpenPiece, Piece, Rule, decide},
};

/// Least time between two passes of one partition, and after one that failed.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// Longest wait for a ledger that takes the producers' state.
const OPEN_WAIT: Duration = Duration::from_secs(10);

/// What the last pass saw: enough to know when another one can find something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trim {
    /// First and last ledger of the chain at that time.
    of: Option<(LedgerId, LedgerId)>,
    closed_bytes: u64,
    first_bytes: u64,
    /// Append time of the last record of the first ledger that has some, ms: before it is expired nothing goes by time. `None`:
    /// not known.
    first_last_append_ms: Option<i64>,
    not_before: Duration,
    running: bool,
}

impl Default for Trim {
    fn default() -> Self {
        Self {
            of: None,
            closed_bytes: 0,
            first_bytes: 0,
            first_last_append_ms: None,
            not_before: Duration::ZERO,
            running: false,
        }
    }
}

impl PartitionLog {
    pub(super) fn rule(&self, core: &Core) -> Rule {
        if !core.config.cleanup.policy.deletes() {
            return Rule::default();
        }
        let kept = core.config.retention_ms.map_or(self.ctx.config.retention, |ms| {
            Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
        });
        let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        Rule {
            bytes: core.config.retention_bytes,
            expired_at: self
                .ctx
                .meta
                .confirmed_time_ms()
                .and_then(|now| now.checked_sub(kept))
                .filter(|t| *t >= 0),
        }
    }

    /// Starts a pass when the figures of the last one say that something can have expired.
    pub(super) fn trim_if_due(self: &Arc<Self>, core: &mut Core, now: Duration) {
        let t = &core.trim;
        let (Some(first), Some(last)) = (core.chain.first(), core.chain.last()) else { return };
        if t.running || now < t.not_before || (first.ledger == last.ledger && core.open.is_some()) {
            return;
        }
        let rule = self.rule(core);
        let of = Some((first.ledger, last.ledger));
        let open_bytes = core.open.as_ref().map_or(0, |o| o.writer.length());
        let rest = (t.closed_bytes + open_bytes).saturating_sub(t.first_bytes);
        let news = t.of != of && (rule.bytes.is_some() || rule.expired_at.is_some());
        let due = news
            || rule.bytes.is_some_and(|limit| rest >= limit)
            || rule
                .expired_at
                .is_some_and(|expired| t.first_last_append_ms.is_none_or(|last| last <= expired));
        if !due {
            return;
        }
        core.trim.running = true;
        let me = self.clone();
        tokio::spawn(async move { me.trim(rule).await });
    }

    async fn trim(self: Arc<Self>, rule: Rule) {
        let result = tokio::select! {
            r = self.trim_pass(rule) => r,
            () = self.gone() => Ok(None),
        };
        let mut core = self.core.lock();
        let pause = match &result {
            Ok(_) => PAUSE.0,
            Err(error) => {
                tracing::warn!(partition = %self.id, %error, "retention is put off");
                PAUSE.1
            }
        };
        let seen = result.ok().flatten().unwrap_or(core.trim);
        core.trim = Trim { running: false, not_before: self.ctx.clock.boottime() + pause, ..seen };
    }

    async fn trim_pass(self: &Arc<Self>, rule: Rule) -> Result<Option<Trim>, FetchError> {
        let Ok(_turn) = self.ctx.trims.acquire().await else { return Ok(None) };
        let view = self.ctx.meta.partition(self.id).await;
        let view = view.map_err(|e| FetchError::Unavailable(e.to_string()))?.ok_or(FetchError::NotOwner)?;
        if let Err(Stop::Drop(why) | Stop::Retry(why)) = self.check_owner(&view) {
            self.drop_log(&why);
            return Err(FetchError::NotOwner);
        }
        let closed: Vec<(&LedgerRecord, Offset)> = (view.ledgers.iter().zip(&view.partition.chain))
            .take_while(|(l, _)| l.state == LedgerState::Closed)
            .map(|(l, e)| (l, e.base_offset))
            .collect();
        let mut pieces: Vec<Piece> = closed
            .iter()
            .map(|(l, base)| Piece {
                base: *base,
                records: l.records.unwrap_or(0),
                bytes: l.length.unwrap_or(0),
                last_append_ms: None,
            })
            .collect();
        let (open, log_start) = {
            let core = self.core.lock();
            let has_state = core.has_durable_state(self.shared.lac());
            let open = core.open.as_ref();
            let open = open.map(|o| OpenPiece { base: o.base, bytes: o.writer.length(), has_state });
            (open, core.log_start.max(view.partition.log_start))
        };
        loop {
            match decide(&pieces, open, rule, log_start) {
                Decision::NeedTime(i) => {
                    let time = self.last_append(closed[i].0, log_start).await?;
                    pieces[i].last_append_ms = Some(time);
                }
                Decision::OpenFirst => {
                    let mut core = self.core.lock();
                    if core.open.is_none() && core.state == LogState::Serving {
                        core.want_open = true;
                        self.drive_if_needed(&mut core);
                    }
                    return Ok(None);
                }
                Decision::TrimTo(to) => {
                    let from = log_start;
                    let now = self.move_log_start(to).await?;
                    tracing::info!(partition = %self.id, %from, to = %now, "retention moved the log start");
                    return Ok(None);
                }
                Decision::Keep => break,
            }
        }
        let ends = view.partition.chain.first().zip(view.partition.chain.last());
        Ok(Some(Trim {
            of: ends.map(|(f, l)| (f.ledger, l.ledger)),
            closed_bytes: pieces.iter().map(|p| p.bytes).sum(),
            first_bytes: pieces.first().map_or(0, |p| p.bytes),
            // Without records there is nothing that could expire.
            first_last_append_ms: pieces
                .iter()
                .find(|p| p.records > 0)
                .map_or(Some(i64::MAX), |p| p.last_append_ms),
            ..Trim::default()
        }))
    }

    /// Append time of the last record of a closed ledger: its last entry tells it, whatever its kind.
    async fn last_append(&self, ledger: &LedgerRecord, log_start: Offset) -> Result<i64, FetchError> {
        let end = ledger.last_entry.unwrap_or(EntryId::NONE);
        if end < EntryId::FIRST {
            return Ok(i64::MIN);
        }
        let reader = self.ctx.ledgers.reader(ledger.clone());
        let head = reader.read_head(end).await.map_err(|e| fetch_error(&e, log_start))?;
        Ok(envelope_of(&head.envelope)?.append_time_ms)
    }

    pub(super) async fn delete_below(self: &Arc<Self>, before: Offset) -> Result<Offset, FetchError> {
        let log_start = self.check_readable()?;
        // The end is the owner's to know.
        self.prove_ownership().await?;
        let high_watermark = self.shared.high_watermark();
        if before > high_watermark {
            return Err(FetchError::OutOfRange { offset: before, log_start, high_watermark });
        }
        if before > log_start && before > self.state_bound().await? {
            let opened = tokio::time::timeout(OPEN_WAIT, self.open_for_state()).await;
            opened.map_err(|_| FetchError::Unavailable("no ledger could be opened in time".to_owned()))??;
        }
        self.move_log_start(before).await
    }

    /// Opens a ledger and waits until the producers' state is acknowledged in it.
    async fn open_for_state(self: &Arc<Self>) -> Result<(), FetchError> {
        loop {
            let moved = self.shared.progress.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let lac = {
                let mut core = self.core.lock();
                if core.state != LogState::Serving {
                    return Err(FetchError::NotOwner);
                }
                if core.has_durable_state(self.shared.lac()) {
                    return Ok(());
                }
                if core.open.is_none() {
                    core.want_open = true;
                    self.drive_if_needed(&mut core);
                }
                core.open.as_ref().map(|o| o.writer.watch_lac())
            };
            match lac {
                Some(mut lac) => tokio::select! {
                    _ = lac.changed() => {}
                    () = moved => {}
                },
                None => moved.await,
            }
        }
    }
}
