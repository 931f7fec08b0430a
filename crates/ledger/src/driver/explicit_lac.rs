//! Tells the LACs of ledgers that went idle: one task for all ledgers of the process.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures::{FutureExt, StreamExt, stream};
use tidemill_types::{EntryId, LedgerId};
use tokio_util::sync::CancellationToken;

use super::{shared::Shared, writer::WriterShared};

/// Calls to bookies under way at once: many ledgers may go idle together.
const AT_ONCE: usize = 64;

pub(crate) async fn run(shared: Weak<Shared>, stop: CancellationToken) {
    loop {
        let Some(s) = shared.upgrade() else { return };
        let (delay, tick) = (s.config.explicit_lac_delay, s.config.explicit_lac_delay / 2);
        let now = s.now();
        let due: Vec<_> =
            s.writers().into_iter().filter_map(|w| w.lac_due(now, delay).map(|lac| (w, lac))).collect();
        let telling = stream::iter(due).for_each_concurrent(AT_ONCE, |(w, lac)| tell(&s, w, lac));
        tokio::select! {
            () = telling.then(|()| tokio::time::sleep(tick.max(Duration::from_millis(1)))) => {}
            () = stop.cancelled() => return,
        }
        drop(s);
    }
}

/// To all members at once. A reader wants QC answers, so it sees it when all but Qa - 1 of them have it.
async fn tell(shared: &Arc<Shared>, writer: Arc<WriterShared>, lac: EntryId) {
    let members = writer.members();
    let calls = members.iter().map(|bookie| {
        let call = shared.target(*bookie).map(|t| shared.transport.write_lac(t, writer.ledger, lac));
        async {
            match call {
                Some(call) => tokio::time::timeout(shared.config.add_timeout, call).await.unwrap_or(false),
                None => false,
            }
        }
    });
    let told = futures::future::join_all(calls).await.into_iter().filter(|ok| *ok).count();
    let needed = members.len().saturating_sub(usize::from(writer.ack_quorum()).saturating_sub(1));
    if told < needed {
        tracing::debug!(ledger = LedgerId(writer.ledger.0).0, %lac, told, needed, "explicit LAC: told again later");
        writer.lac_not_told(lac);
    }
}
