//! What a bookie fences before it serves, when it may have forgotten something or was given up for lost.

use std::collections::HashMap;

use tidemill_storage::{Completion, Engine, WriteOutcome};
use tidemill_types::{BookieId, LedgerId, LedgerState};
use tokio::sync::oneshot;

use crate::records::{NoAnswer, PAGE, Records, all_ledgers_of};

/// R15, boot into limbo: every ledger that is not CLOSED and names this uuid in its last fragment. The quorum's state is
/// limbo by now, so nothing new names it while this lists.
pub(crate) async fn fence_open(
    records: &dyn Records,
    engine: &Engine,
    bookie: BookieId,
) -> Result<(), NoAnswer> {
    let mut fence = Vec::new();
    all_ledgers_of(records, bookie, |r| {
        let last = r.last_fragment().is_some_and(|f| f.ensemble.contains(&bookie));
        if r.state != LedgerState::Closed && last {
            fence.push(r.id);
        }
    })
    .await?;
    tracing::warn!(ledgers = fence.len(), "limbo: fencing the ledgers that this bookie may have forgotten");
    fence_all(engine, fence).await
}

/// R15, end of limbo, and 1.6, a uuid that was declared lost: every ledger that names it or is held, if not OPEN.
pub(crate) async fn fence_not_open(
    records: &dyn Records,
    engine: &Engine,
    bookie: BookieId,
) -> Result<(), NoAnswer> {
    let mut named = HashMap::new();
    all_ledgers_of(records, bookie, |r| {
        named.insert(r.id, r.state);
    })
    .await?;
    let mut fence: Vec<LedgerId> =
        named.iter().filter(|(_, s)| **s != LedgerState::Open).map(|(id, _)| *id).collect();
    for ledger in held(engine) {
        if !named.contains_key(&ledger) {
            // Gone counts as not OPEN.
            let open = records.ledger(ledger).await?.is_some_and(|r| r.state == LedgerState::Open);
            if !open {
                fence.push(ledger);
            }
        }
    }
    fence.sort_unstable();
    fence_all(engine, fence).await
}

/// Ids of all ledgers held.
pub(crate) fn held(engine: &Engine) -> Vec<LedgerId> {
    let mut all = Vec::new();
    loop {
        let page = engine.list_ledgers(all.last().copied(), PAGE as usize);
        let whole = page.len() < PAGE as usize;
        all.extend(page.iter().map(|s| s.ledger));
        if whole {
            return all;
        }
    }
}

async fn fence_all(engine: &Engine, ledgers: Vec<LedgerId>) -> Result<(), NoAnswer> {
    for part in ledgers.chunks(PAGE as usize) {
        let (tx, rx) = oneshot::channel();
        let done = Completion::new(move |outcome| {
            let _gone = tx.send(outcome);
        });
        engine.fence_all_of(part, done);
        match rx.await {
            Ok(WriteOutcome::Ok) => {}
            other => return Err(NoAnswer(format!("fences are not durable yet: {other:?}"))),
        }
    }
    Ok(())
}
