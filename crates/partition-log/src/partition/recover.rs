//! Take-over of the last ledger, and recovery of an own one that somebody fenced (1.8, 1.3 step 4).

use std::sync::Arc;

use tidemill_ledger::{MetaError, Recovered, RecoveredEnd};
use tidemill_types::{
    ChainElement, Entry, EntryId, LedgerId, LedgerRecord, LedgerState, Offset,
    meta::{LinkLedger, PartitionView, Rejection, TakeOver},
};
use tokio::time::sleep;

use super::{PartitionLog, Stop, drive::Events};
use crate::{LogState, ProduceError, envelope::Envelope};

/// A ledger whose end is stored.
pub(super) struct Settled {
    pub(super) record: LedgerRecord,
    /// L', linked in the same command.
    pub(super) next: Option<LedgerRecord>,
    /// The entry at the stored end, when recovery has just read it.
    pub(super) last: Option<Entry>,
}

impl PartitionLog {
    /// 1.8, Ownership: (2) read the chain, (3) recover, (4) `TakeOver`, (5) rebuild, only then serve produce.
    pub(super) async fn take_over(self: &Arc<Self>) -> Result<Option<Events>, Stop> {
        let given = self.core.lock().view.take();
        let view = match given {
            Some(view) => *view,
            None => self.read_view().await?,
        };
        self.check_owner(&view)?;
        self.adopt_chain(&view);
        let mut ledgers = view.ledgers;
        let (mut next, mut last_entry) = (None, None);
        if let Some(last) = ledgers.last_mut().filter(|l| l.state != LedgerState::Closed) {
            let base = view.partition.chain.last().map_or(Offset(0), |e| e.base_offset);
            let wanted = || !self.core.lock().unjudged.is_empty();
            let settled = self.settle_end(last.clone(), base, wanted).await?;
            *last = settled.record;
            (next, last_entry) = (settled.next, settled.last);
        }
        // Reads may start before L' exists and before the producers are known.
        let last_entry = self.last_of_chain(&ledgers, last_entry).await?;
        let end = self.end_of_chain(last_entry.as_ref())?;
        self.shared.adopt(end);
        self.core.lock().readable = true;
        let producers = self.rebuild(&ledgers, last_entry).await?;
        let mut core = self.core.lock();
        if core.state != LogState::Recovering {
            return Err(Stop::Drop("given up during the take-over".to_owned()));
        }
        core.producers = producers;
        core.judged = end;
        core.handed = end;
        core.state = LogState::Serving;
        let events = next.map(|record| self.start_ledger(&mut core, record));
        for call in std::mem::take(&mut core.unjudged) {
            self.judge_and_take(&mut core, call);
        }
        Ok(events)
    }

    /// Fenced is not "not owner": whoever still has the epoch recovers its own ledger and goes on in a new one.
    pub(super) async fn recover_own(self: &Arc<Self>) -> Result<Option<Events>, Stop> {
        let Some((ledger, base)) = self.core.lock().open.as_ref().map(|o| (o.ledger, o.base)) else {
            return Ok(None);
        };
        let view = self.read_view().await?;
        self.check_owner(&view)?;
        self.adopt_chain(&view);
        let wanted = || self.shared.in_flight() > 0 || !self.core.lock().parked.is_empty();
        let Some(record) = view.ledgers.into_iter().find(|l| l.id == ledger) else {
            return Err(Stop::Retry(format!("ledger {ledger} left the chain")));
        };
        let settled = self.settle_end(record, base, wanted).await?;
        let end = settled.record.last_entry.unwrap_or(EntryId::NONE);
        let mut core = self.core.lock();
        let Some(open) = core.open.take() else { return Ok(None) };
        // At or below the stored end: written. Above it: known not written, into the next ledger in order.
        let _ = open.writer.resolve(end);
        let lac = self.shared.lac();
        self.shared.ack(ledger, end);
        let rest = self.shared.stop();
        let acked = self.shared.acked();
        core.counters.own_recoveries += 1;
        tracing::debug!(target: "tidemill_rare", "owner recovered its own fenced ledger");
        let stored = settled.record.records.unwrap_or(0);
        if end < lac || acked.next_offset.0 != base.0.saturating_add_unsigned(stored) {
            tracing::error!(partition = %self.id, ledger = ledger.0, %end, %lac, "recovery ended below what was acknowledged");
            for op in rest {
                op.done.into_iter().for_each(|d| d.failed(ProduceError::Unknown));
            }
            drop(core);
            return Err(Stop::Drop("a recovered ledger contradicts its acknowledgements".to_owned()));
        }
        core.requeue(rest, acked);
        Ok(settled.next.map(|record| self.start_ledger(&mut core, record)))
    }

    pub(super) async fn read_view(&self) -> Result<PartitionView, Stop> {
        match self.ctx.meta.partition(self.id).await {
            Ok(Some(view)) => Ok(view),
            Ok(None) => Err(Stop::Drop("the partition does not exist any more".to_owned())),
            Err(e) => Err(Stop::from(e)),
        }
    }

    /// Ours is the epoch that the record names, by the session that acquired it.
    pub(super) fn check_owner(&self, view: &PartitionView) -> Result<(), Stop> {
        let p = &view.partition;
        if p.epoch == self.epoch && p.owner.is_some_and(|o| o.session == self.session) {
            Ok(())
        } else {
            Err(Stop::Drop(format!("epoch {} is the current one", p.epoch)))
        }
    }

    pub(super) fn adopt_chain(&self, view: &PartitionView) {
        let mut core = self.core.lock();
        core.chain.clone_from(&view.partition.chain);
        // The view may be older than the link of the ledger that is open.
        if let Some((ledger, base_offset)) = core.open.as_ref().map(|o| (o.ledger, o.base))
            && core.chain.iter().all(|e| e.ledger != ledger)
        {
            core.chain.push(ChainElement { ledger, base_offset });
        }
        core.log_start = core.log_start.max(view.partition.log_start);
    }

    /// Recovers the ledger of `record`, stores its end, and links L' in the same command when `wanted`.
    async fn settle_end(
        &self,
        record: LedgerRecord,
        base: Offset,
        wanted: impl Fn() -> bool + Send,
    ) -> Result<Settled, Stop> {
        let ledger = record.id;
        let found = self.ctx.ledgers.recover_known(record).await;
        let found = found.map_err(|e| Stop::Retry(format!("recovery: {e}")))?;
        let end = match found {
            Recovered::Closed(record) => return Ok(Settled { record, next: None, last: None }),
            Recovered::Decided(end) => end,
        };
        let records = records_up_to_end(&end, base).await?;
        let next = if wanted() { Some(self.create_ledger().await?) } else { None };
        let base_offset = Offset(base.0.saturating_add_unsigned(records));
        let item = TakeOver {
            partition: self.id,
            epoch: self.epoch,
            close: tidemill_types::meta::CloseLedger { records, ..end.close.clone() },
            append: next.as_ref().map(|n| LinkLedger { ledger: n.id, base_offset }),
        };
        let mut settled = self.send_take_over(ledger, item, next).await?;
        // Another recoverer may have stored another end.
        settled.last = end.last.filter(|e| settled.record.last_entry == Some(e.header().entry));
        Ok(settled)
    }

    /// Sends the same command until its outcome is settled: by its answer, or by the ledger's record (1.8).
    async fn send_take_over(
        &self,
        ledger: LedgerId,
        item: TakeOver,
        next: Option<LedgerRecord>,
    ) -> Result<Settled, Stop> {
        let mut wait = self.ctx.config.retry.0;
        loop {
            let refused = match self.ctx.meta.take_over(item.clone()).await {
                Ok(Ok(())) => None,
                Ok(Err(r @ (Rejection::EpochMismatch { .. } | Rejection::SessionExpired))) => {
                    return Err(Stop::from(r));
                }
                Ok(Err(r)) => Some(r),
                Err(MetaError::SessionExpired) => return Err(Stop::from(MetaError::SessionExpired)),
                Err(MetaError::OutcomeUnknown) => {
                    self.core.lock().counters.settled_unknown += 1;
                    None
                }
                Err(MetaError::Unavailable(_)) => {
                    self.pause(&mut wait).await?;
                    continue;
                }
            };
            let view = self.view_until_answered(&mut wait).await?;
            self.check_owner(&view)?;
            self.adopt_chain(&view);
            let linked = |id: LedgerId| view.partition.chain.last().is_some_and(|e| e.ledger == id);
            let record = view.ledgers.into_iter().find(|l| l.id == ledger);
            match (record, refused) {
                // Closed by this command or by another recoverer: its end counts.
                (Some(record), _) if record.state == LedgerState::Closed => {
                    let (linked, spare): (Vec<_>, Vec<_>) = next.into_iter().partition(|n| linked(n.id));
                    self.core.lock().spare = spare.into_iter().next().map(Box::new);
                    return Ok(Settled { record, next: linked.into_iter().next(), last: None });
                }
                (None, _) => return Err(Stop::Retry(format!("ledger {ledger} left the chain"))),
                // Settled as not applied: recover again.
                (Some(_), Some(r)) => return Err(Stop::from(r)),
                // It may still commit: the same command again.
                (Some(_), None) => self.pause(&mut wait).await?,
            }
        }
    }

    /// Reads the partition until there is an answer.
    pub(super) async fn view_until_answered(
        &self,
        wait: &mut std::time::Duration,
    ) -> Result<PartitionView, Stop> {
        loop {
            match self.read_view().await {
                Err(Stop::Retry(_)) => self.pause(wait).await?,
                other => return other,
            }
        }
    }

    /// Waits before another try; ends when the log was given up meanwhile.
    pub(super) async fn pause(&self, wait: &mut std::time::Duration) -> Result<(), Stop> {
        tokio::select! {
            () = sleep(*wait) => {}
            () = self.gone() => return Err(Stop::Drop("given up".to_owned())),
        }
        *wait = (*wait * 2).min(self.ctx.config.retry.1);
        Ok(())
    }
}

/// Records of a recovered ledger: its last envelope says where they end, whatever its kind.
async fn records_up_to_end(end: &RecoveredEnd, base: Offset) -> Result<u64, Stop> {
    let last = end.close.last_entry;
    if last == EntryId::NONE {
        return Ok(0);
    }
    let envelope = match &end.last {
        Some(entry) => entry.envelope(),
        None => {
            let head = end.reader.read_head(last).await;
            head.map_err(|e| Stop::Retry(format!("last entry: {e}")))?.envelope
        }
    };
    let envelope = Envelope::decode(&envelope).map_err(|e| Stop::Retry(format!("last entry: {e}")))?;
    u64::try_from(envelope.next_offset().0 - base.0)
        .map_err(|_| Stop::Retry(format!("the last entry ends below base offset {base}")))
}
