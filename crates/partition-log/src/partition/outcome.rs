//! The question after a batch's fate (2.1: nothing is guessed).

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{PartitionLog, op::Done};
use crate::{
    BatchOutcome, FetchError, LogState, ProduceError, ProduceOutcome,
    producers::{Sequenced, Verdict},
};

impl PartitionLog {
    pub(super) async fn outcome_of(
        self: &Arc<Self>,
        batch: Sequenced,
        close: bool,
    ) -> Result<BatchOutcome, FetchError> {
        // The producers' state is rebuilt before anything is said about them.
        self.until(|s| s != LogState::Recovering).await;
        // Only an owner knows what is not written: a later one may have written it.
        self.prove_ownership().await?;
        let pending = {
            let mut core = self.core.lock();
            if core.state != LogState::Serving {
                return Err(FetchError::NotOwner);
            }
            let now = self.append_time(&core);
            let expired = self.expired_before(now);
            let verdict = core.producers.judge(&batch, self.shared.high_watermark(), expired);
            if close && !core.producers.close(batch.id, batch.epoch, now) {
                return Err(FetchError::Unavailable("too many producers are closed".to_owned()));
            }
            match verdict {
                Verdict::Duplicate { offset, append_time_ms, .. } => {
                    return Ok(BatchOutcome::Written { place: Some((offset, append_time_ms)) });
                }
                Verdict::OldDuplicate => return Ok(BatchOutcome::Written { place: None }),
                Verdict::Fenced { .. } => return Ok(BatchOutcome::Forgotten),
                _ if !core.producers.knows(batch.id, expired) => return Ok(BatchOutcome::NoState),
                Verdict::Append | Verdict::Closed | Verdict::OutOfOrder { .. } | Verdict::UnknownProducer => {
                    return Ok(BatchOutcome::NotWritten);
                }
                Verdict::WaitFor { pushed, offset, append_time_ms } => {
                    let (tx, rx) = oneshot::channel();
                    let outcome = ProduceOutcome { base_offset: offset, append_time_ms, duplicate: true };
                    core.wait_for(&self.shared, pushed, Done { tx, outcome, reservation: None });
                    rx
                }
            }
        };
        match pending.await {
            Ok(Ok(o)) => Ok(BatchOutcome::Written { place: Some((o.base_offset, o.append_time_ms)) }),
            Ok(Err(ProduceError::NotWritten)) => Ok(BatchOutcome::NotWritten),
            // The next owner decides.
            Ok(Err(_)) | Err(_) => Err(FetchError::NotOwner),
        }
    }
}
