//! Garbage collection (R20): the only thing that deletes a ledger. What may be deleted, [`crate::collector`] decides.
//!
//! The lock of a ledger is held from before the last read of its record until the delete is durable: adds, fences, listings and
//! repairs of that ledger wait for it.

use std::{collections::BTreeSet, sync::Arc};

use tidemill_meta_client::{MetaClient, Session};
use tidemill_storage::{Completion, WriteOutcome};
use tidemill_types::{LedgerId, SessionId};
use tokio::sync::oneshot;

use crate::{
    boot::duties,
    collector::{Begin, Collector, Facts, Me, Reason, Rules, Verdict},
    records::{NoAnswer, Records, all_ledgers_of},
    shared::{Core, Serving},
};

/// A pass each so often, until it is dropped.
pub(crate) async fn run(core: Arc<Core>, client: MetaClient, serving: Arc<Serving>) {
    let me = Me { bookie: serving.id, cluster: serving.cluster, incarnation: serving.incarnation };
    let mut gc = Gc { serving, collector: Collector::new(me, Rules::default()) };
    loop {
        tokio::time::sleep(core.config.gc_pass()).await;
        let session = || client.session().filter(Session::is_valid_now).map(|s| s.id());
        match gc.pass(&client, session).await {
            Ok(Pass::Whole { deleted }) => {
                core.counters.gc_passes.inc();
                core.counters.gc_ledgers.inc_by(deleted.len() as u64);
                for ledger in deleted {
                    // What the quorum said about it once counts no more (R27).
                    gc.serving.touches.forget(ledger);
                    tracing::info!(%ledger, "collected");
                }
            }
            Ok(Pass::Stopped) => {
                core.counters.gc_stopped.inc();
            }
            Err(why) => {
                gc.collector.failed();
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
    /// Ledgers are held, the quorum lists none, and that is not proven.
    Stopped,
}

struct Gc {
    serving: Arc<Serving>,
    collector: Collector,
}

impl Gc {
    /// `session`: the one that is valid at the time of the call.
    async fn pass(
        &mut self,
        records: &dyn Records,
        session: impl Fn() -> Option<SessionId>,
    ) -> Result<Pass, NoAnswer> {
        let held = duties::held(&self.serving.engine);
        let mut named = BTreeSet::new();
        if !held.is_empty() {
            all_ledgers_of(records, self.serving.id, |r| {
                named.insert(r.id);
            })
            .await?;
        }
        // Behind the listing: what the quorum shows of itself must not be older.
        let (cluster, next_ledger) = records.cluster().await?;
        let standing = if named.is_empty() { records.standing(self.serving.id).await? } else { None };
        let limbo = self.serving.engine.limbo();
        let facts = Facts { held, named, cluster, next_ledger, standing, session: session(), limbo };
        let suspects = match self.collector.begin(&facts) {
            Begin::Nothing => Vec::new(),
            Begin::Unproven(why) => {
                tracing::warn!(
                    %why, held = facts.held.len(),
                    "the quorum lists no ledger of this bookie: nothing is deleted on its word"
                );
                return Ok(Pass::Stopped);
            }
            Begin::Look { suspects, strangers, empty } => {
                for ledger in strangers {
                    tracing::error!(%ledger, next = %next_ledger, "the quorum has never handed out a ledger that is held here: kept");
                }
                if empty {
                    tracing::info!(
                        held = suspects.len(),
                        "the quorum lists no ledger of this bookie, and shows that it knows it"
                    );
                }
                suspects
            }
        };
        let mut deleted = Vec::new();
        for ledger in suspects {
            let record = records.ledger(ledger).await?;
            let Verdict::Lock(reason) = self.collector.read(ledger, record.as_ref()) else { continue };
            if self.collect(records, ledger, reason).await? {
                self.collector.deleted(ledger);
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
        let Some(guard) = self.serving.engine.begin_collect(ledger) else { return Ok(false) };
        // Dropping the guard gives the ledger back, also when the read fails.
        let record = records.ledger(ledger).await?;
        if !self.collector.read_again(reason, record.as_ref()) {
            return Ok(false);
        }
        let (tx, rx) = oneshot::channel();
        guard.commit(Completion::new(move |outcome| {
            let _gone = tx.send(outcome);
        }));
        Ok(matches!(rx.await, Ok(WriteOutcome::Ok)))
    }
}
