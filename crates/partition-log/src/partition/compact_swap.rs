//! The command that puts the output into the chain, and the removal of output that never got there.

use std::sync::Arc;

use tidemill_ledger::MetaError;
use tidemill_types::{
    LedgerId,
    meta::{Command, Compaction, CompactionStep, MAX_BATCH, Rejection, Reply},
};

use super::{PartitionLog, Stop, compact::Failed};

impl PartitionLog {
    /// Sends the swap until its outcome is settled: by its answer, or by the chain (1.8). When it was not applied the new ledgers
    /// are discarded.
    pub(super) async fn swap(self: &Arc<Self>, old: Vec<LedgerId>, new: Vec<LedgerId>) -> Result<(), Failed> {
        if let Err(e) = self.check_serving() {
            self.keep_orphans(new);
            return Err(e);
        }
        let step = CompactionStep::Swap { old: old.clone(), new: new.clone() };
        let command = Command::Compact(Compaction { partition: self.id, epoch: self.epoch, step });
        let mut wait = self.ctx.config.retry.0;
        loop {
            let refused = match self.ctx.meta.propose(command.clone()).await {
                Ok(Ok(Reply::Partition(p))) => {
                    self.adopt_swap(&old, &p.chain);
                    return Ok(());
                }
                Ok(Ok(other)) => Some(format!("unexpected reply {other:?}")),
                Ok(Err(Rejection::EpochMismatch { .. } | Rejection::SessionExpired))
                | Err(MetaError::SessionExpired) => return Err(Failed::Gone),
                Ok(Err(r)) => Some(r.to_string()),
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
            // Some of them may have been trimmed since.
            if view.partition.chain.iter().any(|e| new.contains(&e.ledger)) {
                self.adopt_chain(&view);
                self.swapped();
                return Ok(());
            }
            match refused {
                // Settled as not applied: another command changed the list meanwhile.
                Some(why) => {
                    self.keep_orphans(new);
                    return Err(Failed::Later(format!("the swap was refused: {why}")));
                }
                // It may still be applied: the same command again, which then finds the new list.
                None => self.pause(&mut wait).await?,
            }
        }
    }

    /// The new list takes the place of the old one here too; what was linked behind it meanwhile stays.
    fn adopt_swap(&self, old: &[LedgerId], chain: &[tidemill_types::ChainElement]) {
        let mut core = self.core.lock();
        let ours = core.chain.iter().map(|e| e.ledger).take(old.len());
        if ours.eq(old.iter().copied()) {
            let last = core.chain.get(old.len()).map(|e| e.ledger);
            let new = chain.iter().take_while(|e| Some(e.ledger) != last).cloned();
            let rest = core.chain.iter().skip(old.len()).cloned();
            core.chain = new.chain(rest).collect();
        }
        drop(core);
        self.swapped();
    }

    /// Whoever reads in an old ledger looks for its place in the new ones.
    fn swapped(&self) {
        if let Some(c) = self.core.lock().compaction.as_mut() {
            c.horizon_ms = None;
        }
        self.forget_readers();
    }

    pub(super) fn keep_orphans(&self, ledgers: Vec<LedgerId>) {
        if !ledgers.is_empty() {
            self.core.lock().compaction.get_or_insert_default().orphans.extend(ledgers);
        }
    }

    /// Removes what passes that failed left. Refused for ledgers that stand in the chain after all.
    pub(super) async fn discard_orphans(&self) -> Result<(), Failed> {
        let mut ledgers = match self.core.lock().compaction.as_ref() {
            Some(c) if !c.orphans.is_empty() => c.orphans.clone(),
            _ => return Ok(()),
        };
        ledgers.truncate(MAX_BATCH);
        let step = CompactionStep::Discard { ledgers: ledgers.clone() };
        let command = Command::Compact(Compaction { partition: self.id, epoch: self.epoch, step });
        match self.ctx.meta.propose(command).await {
            Ok(Ok(_)) => {}
            Ok(Err(r @ (Rejection::EpochMismatch { .. } | Rejection::SessionExpired))) => {
                return Err(Failed::from(Stop::from(r)));
            }
            // They are of use to nobody, and removed with the epoch at the latest.
            Ok(Err(r)) => tracing::warn!(partition = %self.id, error = %r, "output of a compaction stays"),
            Err(e) => return Err(Failed::from(Stop::from(e))),
        }
        if let Some(c) = self.core.lock().compaction.as_mut() {
            c.orphans.retain(|l| !ledgers.contains(l));
        }
        Ok(())
    }
}
