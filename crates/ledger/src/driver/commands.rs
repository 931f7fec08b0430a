//! Metadata calls and timers that a writer asks for.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tidemill_types::{
    EntryId, LedgerId, LedgerRecord,
    meta::{Command, EnsembleChange, Reply},
};

use super::{shared::Shared, writer::WriterShared};
use crate::{
    MetaError,
    core::{
        MetaOutcome,
        writer::{Attempt, Input},
    },
};

const BACKOFF: Duration = Duration::from_millis(50);
const LAST_BACKOFF: Duration = Duration::from_secs(1);
/// Pause before the same bytes go again to a bookie that could not say.
const RESEND: Duration = Duration::from_millis(100);

/// Sends the change; its outcome is the core's to settle. Without a session it waits for the partition to be dropped.
pub(crate) fn propose_change(w: &Arc<WriterShared>, change: EnsembleChange) {
    let (shared, w) = (w.shared.clone(), Arc::downgrade(w));
    tokio::spawn(async move {
        let mut wait = BACKOFF;
        loop {
            let outcome = match shared.meta.propose(Command::ChangeEnsemble(change.clone())).await {
                Ok(Ok(Reply::Ledger(record))) => MetaOutcome::Committed(record),
                Ok(Ok(_)) | Err(MetaError::OutcomeUnknown) => MetaOutcome::Unknown,
                Ok(Err(rejection)) => MetaOutcome::Rejected(rejection),
                Err(MetaError::Unavailable(_)) => {
                    // The bookie counts again meanwhile; the health task asks again at its pace.
                    if pause(&shared, &w, &mut wait).await
                        && let Some(w) = Weak::upgrade(&w)
                    {
                        w.step(Input::ChangeNotSent);
                    }
                    return;
                }
                Err(MetaError::SessionExpired) => {
                    if !pause(&shared, &w, &mut wait).await {
                        return;
                    }
                    continue;
                }
            };
            if let Some(w) = Weak::upgrade(&w) {
                w.step(Input::ChangeOutcome(outcome));
            }
            return;
        }
    });
}

/// False when nobody waits any more.
async fn pause(shared: &Shared, w: &Weak<WriterShared>, wait: &mut Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(*wait) => {}
        () = shared.stop.cancelled() => return false,
    }
    *wait = (*wait * 2).min(LAST_BACKOFF);
    Weak::upgrade(w).is_some_and(|w| !w.inner.lock().core.is_stopped())
}

/// Reads the record until there is an answer.
pub(crate) fn read_record(w: &Arc<WriterShared>) {
    let (shared, ledger, w) = (w.shared.clone(), w.ledger, Arc::downgrade(w));
    // The caller of a close reads by itself.
    if Weak::upgrade(&w).is_none_or(|w| !w.inner.lock().core.is_changing()) {
        return;
    }
    tokio::spawn(async move {
        let mut wait = BACKOFF;
        // Not at once: an outcome that is unknown now may be known soon, and a loop of re-sends must not spin.
        while pause(&shared, &w, &mut wait).await {
            if let Ok(record) = shared.meta.ledger(ledger).await {
                if let Some(w) = Weak::upgrade(&w) {
                    w.step(Input::Record(record));
                }
                return;
            }
        }
    });
}

/// Reads a record until there is an answer.
///
/// # Errors
/// The session is gone.
pub(crate) async fn record_of(shared: &Shared, ledger: LedgerId) -> Result<Option<LedgerRecord>, MetaError> {
    let mut wait = BACKOFF;
    loop {
        match shared.meta.ledger(ledger).await {
            Ok(r) => return Ok(r),
            Err(MetaError::SessionExpired) => return Err(MetaError::SessionExpired),
            Err(_) => {}
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LAST_BACKOFF);
    }
}

/// One timer for the resends of one step.
pub(crate) fn resend_later(w: &Arc<WriterShared>, list: Vec<(u8, Attempt, EntryId, Option<Duration>)>) {
    let Some(after) = list.iter().map(|(.., after)| after.unwrap_or(RESEND)).max() else { return };
    let w = Arc::downgrade(w);
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        if let Some(w) = Weak::upgrade(&w) {
            w.steps(list.iter().map(|(index, attempt, entry, _)| Input::ResendDue {
                index: *index,
                attempt: *attempt,
                entry: *entry,
            }));
        }
    });
}
