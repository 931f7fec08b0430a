//! Fencing (R11, R25).

use futures::future::join_all;
use tidemill_proto::bookie::{Code, FenceResult};
use tidemill_storage::Completion;
use tidemill_types::{EntryId, LedgerId};
use tokio::sync::oneshot;

use crate::{
    codes,
    shared::{Core, Serving},
};

/// Most ledgers of a call.
pub(super) const MAX_LEDGERS: usize = 1_000;

/// Fences one ledger; answers when the fence and every add accepted before are durable and indexed. Never a negative.
pub(super) async fn one(core: &Core, serving: &Serving, ledger: LedgerId) -> (Code, EntryId) {
    core.counters.fences.inc();
    let (tx, rx) = oneshot::channel();
    serving.engine.fence(
        ledger,
        Completion::new(move |outcome| {
            // Nobody waits any more: the caller is gone, the fence stands.
            let _gone = tx.send(outcome);
        }),
    );
    // A completion that is never called belongs to an engine that stopped: nothing is known.
    codes::fence(rx.await.ok())
}

/// Fences all of these at once: they share commit groups.
pub(super) async fn many(core: &Core, serving: &Serving, ledgers: &[u64]) -> Vec<FenceResult> {
    let each = ledgers.iter().map(|&ledger| async move {
        let (code, lac) = one(core, serving, LedgerId(ledger)).await;
        FenceResult { ledger, code: code.into(), lac: lac.0 }
    });
    join_all(each).await
}
