//! LACs: read at once or by long poll, written durably.

use std::time::Duration;

use tidemill_proto::bookie::{Code, ReadLacRequest, ReadLacResponse, WriteLacRequest};
use tidemill_storage::{Completion, LacOutcome};
use tidemill_types::{EntryId, LedgerId};
use tokio::{sync::OwnedSemaphorePermit, sync::oneshot, time::Instant};

use crate::{
    codes,
    shared::{Core, Serving},
};

/// Longest wait, ms.
const MAX_WAIT_MS: u32 = 30_000;

/// The LAC, when it is above `wait_above`, or after `max_wait_ms` what is known then. A caller that waits gives its place in
/// the control queue back.
pub(super) async fn read(
    core: &Core,
    serving: &Serving,
    r: &ReadLacRequest,
    place: OwnedSemaphorePermit,
) -> ReadLacResponse {
    let ledger = LedgerId(r.ledger);
    if r.max_wait_ms > MAX_WAIT_MS || r.wait_above.is_some_and(|a| a < -1) {
        return ReadLacResponse { code: Code::Invalid.into(), lac: -1 };
    }
    let Some(above) = r.wait_above else { return now(serving, ledger) };
    let Some(waiter) = serving.lacs.wait(ledger) else { return now(serving, ledger) };
    let until = Instant::now() + Duration::from_millis(u64::from(r.max_wait_ms));
    let mut place = Some(place);
    loop {
        let rose = waiter.rose();
        let answer = now(serving, ledger);
        // A ledger that is not held yet may come; an unknown is told at once.
        let wait = match answer.code() {
            Code::Ok => answer.lac <= above,
            Code::NoSuchLedger => true,
            _ => false,
        };
        if !wait {
            return answer;
        }
        place.take();
        tokio::select! {
            () = rose => {}
            () = tokio::time::sleep_until(until) => return now(serving, ledger),
            () = core.sup.token().cancelled() => {
                return ReadLacResponse { code: Code::NotReady.into(), lac: -1 };
            }
        }
    }
}

fn now(serving: &Serving, ledger: LedgerId) -> ReadLacResponse {
    let (code, lac) = match serving.engine.lac(ledger) {
        LacOutcome::Lac(lac) => (Code::Ok, lac.0),
        LacOutcome::NoSuchLedger => (Code::NoSuchLedger, -1),
        LacOutcome::Unknown(_) => (Code::Unknown, -1),
    };
    ReadLacResponse { code: code.into(), lac }
}

/// Stores an explicit LAC.
pub(super) async fn write(serving: &Serving, r: &WriteLacRequest) -> Code {
    if r.lac < 0 {
        return Code::Invalid;
    }
    let ledger = LedgerId(r.ledger);
    let (tx, rx) = oneshot::channel();
    let done = Completion::new(move |outcome| {
        let _gone = tx.send(outcome);
    });
    serving.engine.write_lac(ledger, EntryId(r.lac), done);
    let code = codes::write(rx.await.ok());
    serving.lacs.wake(&[ledger]);
    code
}
