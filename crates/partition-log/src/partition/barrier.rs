//! Proof of ownership without a valid session (metadata, Sessions).

use std::{
    sync::Arc,
    task::{Context, Waker},
};

use futures::FutureExt;
use tokio::sync::oneshot;

use super::{PartitionLog, Stop};
use crate::{FetchError, LogState, envelope::Kind};

impl PartitionLog {
    pub(super) async fn prove_ownership(self: &Arc<Self>) -> Result<(), FetchError> {
        let rx = {
            let mut core = self.core.lock();
            if !answers(core.state) {
                return Err(FetchError::NotOwner);
            }
            if self.ctx.session.is_valid(self.session) {
                return Ok(());
            }
            let (tx, rx) = oneshot::channel();
            // Served by the next barrier that is sent, never by one that is under way: that proves nothing for us.
            core.barrier_waiters.push(tx);
            if !core.barrier_task {
                core.barrier_task = true;
                let me = self.clone();
                tokio::spawn(async move { me.run_barriers().await });
            }
            rx
        };
        let proved = rx.await.unwrap_or(false);
        // M27: not after the release was begun, whatever the barrier says.
        let mut core = self.core.lock();
        if proved && answers(core.state) {
            core.counters.barriers += 1;
            Ok(())
        } else {
            core.counters.barriers_refused += 1;
            tracing::debug!(target: "tidemill_rare", "barrier refused");
            Err(FetchError::NotOwner)
        }
    }

    /// One barrier after the other, each for all who waited when it was sent.
    async fn run_barriers(self: Arc<Self>) {
        loop {
            let waiters = {
                let mut core = self.core.lock();
                let waiters = std::mem::take(&mut core.barrier_waiters);
                if waiters.is_empty() {
                    core.barrier_task = false;
                    return;
                }
                waiters
            };
            let proved = tokio::select! {
                p = self.barrier() => p,
                () = self.gone() => false,
            };
            for tx in waiters {
                let _ = tx.send(proved);
            }
        }
    }

    async fn barrier(self: &Arc<Self>) -> bool {
        let sent = {
            let core = self.core.lock();
            // Polled once under the lock: that sends the entry, and its envelope says exactly what stands before it.
            core.open.as_ref().filter(|_| core.can_append()).map(|open| {
                let envelope = core.internal_envelope(Kind::Barrier).encode();
                let writer = open.writer.clone();
                let mut barrier = async move { writer.barrier(&envelope).await }.boxed();
                let first = barrier.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                (first, barrier)
            })
        };
        if let Some((first, barrier)) = sent {
            let result = match first {
                std::task::Poll::Ready(r) => r,
                std::task::Poll::Pending => barrier.await,
            };
            if result.is_ok() {
                return true;
            }
        }
        // No ledger takes it, or a close or a fence voids it. The read is sent after the request came, so it proves as much.
        match self.read_view().await.and_then(|v| self.check_owner(&v)) {
            Ok(()) => true,
            Err(Stop::Drop(why)) => {
                self.drop_log(&why);
                false
            }
            Err(Stop::Retry(why)) => {
                tracing::debug!(partition = %self.id, why, "ownership cannot be proved");
                false
            }
        }
    }
}

fn answers(state: LogState) -> bool {
    matches!(state, LogState::Recovering | LogState::Serving)
}
