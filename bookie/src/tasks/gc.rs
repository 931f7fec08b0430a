//! Garbage collection (R20): the only thing that deletes a ledger.
//!
//! The listing of what the quorum knows only chooses whom to ask about; every deletion rests on linearizable reads of that
//! one ledger:
//!
//! - (a) gone: two reads in two passes say that the record does not exist, the second one under the ledger's lock;
//! - (b) moved away: a read says CLOSED, this bookie in no fragment and no repair names it; the same again under the lock.
//!
//! The lock is held until the delete is durable: adds, fences, listings and repairs of that ledger wait for it. A ledger id
//! that the quorum has not handed out yet is never deleted: such a quorum has forgotten something itself.

use std::{collections::HashSet, sync::Arc};

use tidemill_meta_client::MetaClient;
use tidemill_storage::{Completion, Engine, WriteOutcome};
use tidemill_types::{BookieId, LedgerId, LedgerRecord, LedgerState};
use tokio::sync::oneshot;

use crate::{
    boot::duties,
    records::{NoAnswer, Records, all_ledgers_of},
    shared::{Core, Serving},
};

/// A pass each so often, until it is dropped.
pub(crate) async fn run(core: Arc<Core>, client: MetaClient, serving: Arc<Serving>) {
    let mut collector = Collector::new(serving.engine.clone(), serving.id);
    loop {
        tokio::time::sleep(core.config.gc_pass()).await;
        match collector.pass(&client).await {
            Ok(Pass::Whole { deleted }) => {
                core.counters.gc_passes.inc();
                core.counters.gc_ledgers.inc_by(deleted.len() as u64);
                for ledger in deleted {
                    // What the quorum said about it once counts no more (R27).
                    serving.touches.forget(ledger);
                    tracing::info!(%ledger, "collected");
                }
            }
            Ok(Pass::EmptyListing) => {
                core.counters.gc_stopped.inc();
                tracing::warn!(
                    "the quorum lists no ledger of this bookie: nothing is deleted on the word of an empty list"
                );
            }
            Err(why) => {
                core.counters.gc_stopped.inc();
                tracing::info!(%why, "garbage collection ended early; nothing more is deleted in this pass");
            }
        }
    }
}

/// How a pass ended.
#[derive(Debug, PartialEq, Eq)]
enum Pass {
    /// Everything was looked at.
    Whole {
        /// Ledgers that are gone now.
        deleted: Vec<LedgerId>,
    },
    /// Ledgers are held and the quorum lists none.
    EmptyListing,
}

struct Collector {
    engine: Engine,
    bookie: BookieId,
    /// Ledgers that an earlier pass found gone. Ids are never reused, so this stays true.
    gone: HashSet<LedgerId>,
}

/// Why a ledger may be deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Gone,
    MovedAway,
}

impl Collector {
    fn new(engine: Engine, bookie: BookieId) -> Self {
        Self { engine, bookie, gone: HashSet::new() }
    }

    async fn pass(&mut self, records: &dyn Records) -> Result<Pass, NoAnswer> {
        let held = duties::held(&self.engine);
        if held.is_empty() {
            return Ok(Pass::Whole { deleted: Vec::new() });
        }
        let mut named = HashSet::new();
        all_ledgers_of(records, self.bookie, |r| {
            named.insert(r.id);
        })
        .await?;
        if named.is_empty() {
            return Ok(Pass::EmptyListing);
        }
        let handed_out_below = records.next_ledger().await?;
        let mut deleted = Vec::new();
        for ledger in held.into_iter().filter(|l| !named.contains(l)) {
            if ledger >= handed_out_below {
                tracing::error!(%ledger, next = %handed_out_below, "the quorum has never handed out a ledger that is held here: kept");
                continue;
            }
            let reason = match records.ledger(ledger).await? {
                None if self.gone.contains(&ledger) => Reason::Gone,
                None => {
                    self.gone.insert(ledger);
                    continue;
                }
                Some(r) if moved_away(&r, self.bookie) => Reason::MovedAway,
                Some(_) => continue,
            };
            if self.collect(records, ledger, reason).await? {
                self.gone.remove(&ledger);
                deleted.push(ledger);
            }
        }
        Ok(Pass::Whole { deleted })
    }

    /// Reads the record once more under the ledger's lock and deletes.
    async fn collect(
        &self,
        records: &dyn Records,
        ledger: LedgerId,
        reason: Reason,
    ) -> Result<bool, NoAnswer> {
        let Some(guard) = self.engine.begin_collect(ledger) else { return Ok(false) };
        // Dropping the guard gives the ledger back, also when the read fails.
        let still = match records.ledger(ledger).await? {
            None => reason == Reason::Gone,
            Some(r) => reason == Reason::MovedAway && moved_away(&r, self.bookie),
        };
        if !still {
            return Ok(false);
        }
        let (tx, rx) = oneshot::channel();
        guard.commit(Completion::new(move |outcome| {
            let _gone = tx.send(outcome);
        }));
        Ok(matches!(rx.await, Ok(WriteOutcome::Ok)))
    }
}

/// (b): OPEN and IN_RECOVERY are never collected by it (M18).
fn moved_away(record: &LedgerRecord, bookie: BookieId) -> bool {
    record.state == LedgerState::Closed && !record.names(bookie)
}
