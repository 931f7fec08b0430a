//! Opening, rolling and closing ledgers (1.5, 1.8).

use std::sync::Arc;

use tidemill_ledger::{CloseError, CloseTicket, Closed, CommitError, MetaError};
use tidemill_types::{
    ChainElement, EntryId, LedgerRecord, Offset,
    meta::{Append, CloseLedger, Command, LinkLedger, Rejection, Reply, Roll},
};
use tokio::time::timeout;

use super::{
    PartitionLog, Stop,
    core::{Core, Open},
    drive::Events,
};
use crate::{LogState, envelope::Kind};

impl PartitionLog {
    /// The first ledger after a close, or of the chain: created, linked by `Append`, opened.
    pub(super) async fn open_ledger(self: &Arc<Self>) -> Result<Option<Events>, Stop> {
        let record = self.create_ledger().await?;
        let base_offset = self.shared.acked().next_offset;
        let prev = self.core.lock().chain.last().map(|e| e.ledger);
        let command = Command::Append(Append {
            partition: self.id,
            epoch: self.epoch,
            prev,
            append: LinkLedger { ledger: record.id, base_offset },
        });
        let mut wait = self.ctx.config.retry.0;
        loop {
            let refused = match self.ctx.meta.propose(command.clone()).await {
                Ok(Ok(_)) => break,
                Ok(Err(r @ (Rejection::EpochMismatch { .. } | Rejection::SessionExpired))) => {
                    return Err(Stop::from(r));
                }
                Ok(Err(r)) => Some(r),
                Err(MetaError::OutcomeUnknown) => {
                    self.core.lock().counters.settled_unknown += 1;
                    None
                }
                Err(MetaError::SessionExpired) => return Err(Stop::from(MetaError::SessionExpired)),
                Err(MetaError::Unavailable(_)) => {
                    self.pause(&mut wait).await?;
                    continue;
                }
            };
            let view = self.view_until_answered(&mut wait).await?;
            self.check_owner(&view)?;
            self.adopt_chain(&view);
            if view.partition.chain.last().is_some_and(|e| e.ledger == record.id) {
                break;
            }
            match refused {
                // Settled as not applied: with the chain as it is now, and another ledger.
                Some(r) => return Err(Stop::from(r)),
                None => self.pause(&mut wait).await?,
            }
        }
        let mut core = self.core.lock();
        if !matches!(core.state, LogState::Serving | LogState::Releasing) {
            return Ok(None);
        }
        Ok(Some(self.start_ledger(&mut core, record)))
    }

    /// Writes to a ledger that is linked: its base offset is final. Entry 0 is the state.
    pub(super) fn start_ledger(self: &Arc<Self>, core: &mut Core, record: LedgerRecord) -> Events {
        let ledger = record.id;
        let base_offset = core.handed.next_offset;
        if core.chain.last().is_none_or(|e| e.ledger != ledger) {
            core.chain.push(ChainElement { ledger, base_offset });
        }
        let writer = self.ctx.ledgers.open_writer(record);
        let shared = self.shared.clone();
        shared.open(ledger);
        writer.on_ack(Box::new(move |lac| shared.ack(ledger, lac)));
        let events = writer.events();
        let limits = self.limits();
        core.open = Some(Box::new(Open::new(writer, base_offset, limits.now)));
        core.want_roll = false;
        core.want_close = false;
        core.want_open = false;
        core.append_state();
        core.flush(&self.shared, limits);
        events
    }

    /// Closes the open ledger and goes on in L' (1.8). Put off when the quorum does not answer: the ledger grows on.
    pub(super) async fn roll(self: &Arc<Self>) -> Result<Option<Events>, Stop> {
        self.core.lock().want_roll = false;
        let next = match self.create_ledger().await {
            Ok(next) => next,
            Err(Stop::Retry(why)) => {
                tracing::warn!(partition = %self.id, why, "roll put off");
                return Ok(None);
            }
            Err(drop) => return Err(drop),
        };
        let Some(ticket) = self.begin_close().await else {
            self.core.lock().spare = Some(Box::new(next));
            return Ok(None);
        };
        let Some((records, base_offset)) = self.records_at(&ticket) else { return Ok(None) };
        if records == 0 {
            self.core.lock().spare = Some(Box::new(next));
            self.resume(ticket);
            return Ok(None);
        }
        let (partition, epoch, ledger) = (self.id, self.epoch, next.id);
        let roll = move |close: CloseLedger| {
            Command::Roll(Roll { partition, epoch, close, append: LinkLedger { ledger, base_offset } })
        };
        let linked = match self.commit(ticket, records, roll).await? {
            None => {
                self.core.lock().spare = Some(Box::new(next));
                return Ok(None);
            }
            Some(Some(Reply::Partition(p))) => p.chain.last().is_some_and(|e| e.ledger == ledger),
            // The effect was found in the record, which does not say who closed it.
            Some(_) => {
                let mut wait = self.ctx.config.retry.0;
                let view = self.view_until_answered(&mut wait).await?;
                self.check_owner(&view)?;
                self.adopt_chain(&view);
                view.partition.chain.last().is_some_and(|e| e.ledger == ledger)
            }
        };
        let mut core = self.core.lock();
        if !matches!(core.state, LogState::Serving | LogState::Releasing) {
            return Ok(None);
        }
        if linked {
            return Ok(Some(self.start_ledger(&mut core, next)));
        }
        core.spare = Some(Box::new(next));
        Ok(None)
    }

    /// Closes an idle ledger, or the last one before a release.
    pub(super) async fn close_open(self: &Arc<Self>) -> Result<Option<Events>, Stop> {
        self.core.lock().want_close = false;
        let Some(ticket) = self.begin_close().await else { return Ok(None) };
        let Some((records, _)) = self.records_at(&ticket) else { return Ok(None) };
        let epoch = Some(self.epoch);
        let done = self.commit(ticket, records, move |close| Command::Close { close, epoch }).await?;
        let mut core = self.core.lock();
        if core.state == LogState::Releasing
            && done.is_none()
            && core.open.as_ref().is_some_and(|o| !o.fenced)
        {
            // The quorum does not answer: the next owner recovers the ledger.
            if let Some(o) = core.open.take() {
                o.writer.abandon();
            }
        }
        Ok(None)
    }

    /// Appends the `index` entry, waits for it, and stops pushing. `None`: fenced, or dropped.
    async fn begin_close(self: &Arc<Self>) -> Option<CloseTicket> {
        let (writer, index) = {
            let mut core = self.core.lock();
            let open = core.open.as_mut()?;
            open.closing = true;
            let writer = open.writer.clone();
            let body = (!open.index.is_empty()).then(|| open.index.encode());
            (writer, body.and_then(|b| core.append_internal(Kind::Index, &[b])))
        };
        if let Some(handle) = index {
            // Without it the ledger has no index, and a search reads heads: always right, only slower.
            let _ = timeout(self.ctx.config.index_wait, handle).await;
        }
        let ticket = tokio::select! {
            t = writer.begin_close() => t,
            () = self.gone() => return None,
        };
        match ticket {
            Ok(ticket) => Some(ticket),
            Err(e) => {
                tracing::info!(partition = %self.id, error = %e, "close not begun");
                let mut core = self.core.lock();
                if let Some(o) = core.open.as_mut() {
                    o.fenced |= matches!(e, CloseError::Fenced);
                }
                None
            }
        }
    }

    /// Records up to the end of the close, and the offset behind them.
    fn records_at(&self, ticket: &CloseTicket) -> Option<(u64, Offset)> {
        let core = self.core.lock();
        let open = core.open.as_ref()?;
        // What is acknowledged up to the end has been told; nothing above it will be.
        self.shared.ack(open.ledger, ticket.last_entry());
        let end = self.shared.acked().next_offset;
        Some((u64::try_from(end.0 - open.base.0).unwrap_or(0), end))
    }

    /// Sends the close until it is settled. `None`: not closed, the ledger goes on or is fenced. When it is closed what lies
    /// above the end waits for the next ledger.
    async fn commit(
        self: &Arc<Self>,
        ticket: CloseTicket,
        records: u64,
        make: impl Fn(CloseLedger) -> Command + Send,
    ) -> Result<Option<Option<Reply>>, Stop> {
        let end: EntryId = ticket.last_entry();
        let outcome = tokio::select! {
            o = ticket.commit(records, make) => o,
            () = self.gone() => return Err(Stop::Drop("given up".to_owned())),
        };
        match outcome {
            Ok(Closed { reply, .. }) => {
                let mut core = self.core.lock();
                let Some(open) = core.open.take() else { return Ok(None) };
                self.shared.ack(open.ledger, end);
                let rest = self.shared.stop();
                core.counters.rolls_with_pending += u64::from(!rest.is_empty());
                core.counters.settled_unknown += u64::from(reply.is_none());
                if !rest.is_empty() {
                    tracing::debug!(target: "tidemill_rare", "roll with pending entries");
                }
                if reply.is_none() {
                    tracing::debug!(target: "tidemill_rare", "close of unknown outcome settled");
                }
                let acked = self.shared.acked();
                core.requeue(rest, acked);
                Ok(Some(reply))
            }
            Err(CommitError::Fenced) => {
                if let Some(o) = self.core.lock().open.as_mut() {
                    o.fenced = true;
                }
                Ok(None)
            }
            Err(CommitError::Refused(ticket, r)) => match Stop::from(r) {
                // Settled. It may be L' that does not fit, so another try takes another one.
                Stop::Retry(why) => {
                    self.resume(ticket);
                    Err(Stop::Retry(format!("close refused: {why}")))
                }
                drop => Err(drop),
            },
            Err(CommitError::NotSent(ticket, e)) => {
                tracing::warn!(partition = %self.id, error = %e, "close put off");
                self.resume(ticket);
                Ok(None)
            }
            Err(CommitError::SessionExpired) => Err(Stop::Drop("the session is gone".to_owned())),
        }
    }

    /// The ledger goes on.
    fn resume(self: &Arc<Self>, ticket: CloseTicket) {
        let resumed = ticket.resume();
        let mut core = self.core.lock();
        let Some(open) = core.open.as_mut() else { return };
        match resumed {
            Ok(()) => open.closing = false,
            Err(_) => open.fenced = true,
        }
        core.flush(&self.shared, self.limits());
    }
}
