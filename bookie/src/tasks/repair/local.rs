//! What this bookie holds, and adds to itself.

use std::time::Duration;

use tidemill_ledger::core::{AddAnswer, Unknown, repair::Held};
use tidemill_proto::bookie::Code;
use tidemill_storage::{Engine, RangesOutcome, SpaceState, UnknownReason};
use tidemill_types::{Entry, LedgerId};

use crate::{
    service,
    shared::{Core, Serving},
};

/// A collection of the ledger that is listed is waited for (R20).
const COLLECT_TRIES: u32 = 250;
const COLLECT_PAUSE: Duration = Duration::from_millis(20);
/// A full queue is waited for.
const ADD_TRIES: u32 = 100;
const ADD_PAUSE: Duration = Duration::from_millis(100);

/// What is held of a ledger.
pub(super) async fn held(engine: &Engine, ledger: LedgerId) -> Held {
    for _ in 0..COLLECT_TRIES {
        let engine = engine.clone();
        match tidemill_runtime::work::blocking(move || engine.ranges(ledger)).await {
            Ok(RangesOutcome::Unknown(UnknownReason::Collecting)) => tokio::time::sleep(COLLECT_PAUSE).await,
            Ok(RangesOutcome::Ranges { ranges, complete }) => return Held::Ranges { ranges, complete },
            Ok(RangesOutcome::NoSuchLedger) => {
                return Held::Ranges { ranges: Vec::new(), complete: true };
            }
            // In limbo an unknown ledger is not denied; here it is to be filled up.
            Ok(RangesOutcome::Unknown(UnknownReason::Limbo)) => {
                return Held::Ranges { ranges: Vec::new(), complete: false };
            }
            Ok(RangesOutcome::Unknown(_)) | Err(_) => break,
        }
    }
    Held::Unknown
}

/// Recovery adds of the very bytes (R12); durable when the answer is Ok.
///
/// A lane without room takes none of them: what is kept for fences, deletions and the recovery of open ledgers is not for
/// copies, which can wait. A bookie that used it up for copies could not rewrite its segments after a deletion, and would
/// stay full for ever.
pub(super) async fn add(core: &Core, serving: &Serving, entries: &[Entry]) -> Vec<AddAnswer> {
    if serving.engine.info().lanes.iter().any(|l| l.space != SpaceState::ReadWrite) {
        return vec![AddAnswer::Unknown(Unknown::ReadOnly); entries.len()];
    }
    let mut answers = vec![AddAnswer::Unknown(Unknown::Undecided); entries.len()];
    let mut left: Vec<usize> = (0..entries.len()).collect();
    for _ in 0..ADD_TRIES {
        let bytes = left.iter().map(|i| entries[*i].bytes().clone()).collect();
        let codes = service::recovery_add(core, serving, bytes).await;
        let mut again = Vec::new();
        for (i, code) in left.into_iter().zip(codes) {
            answers[i] = match code {
                Code::Ok => AddAnswer::Ok,
                Code::Conflict => AddAnswer::Conflict,
                Code::Overloaded => {
                    again.push(i);
                    AddAnswer::Overloaded { retry_after: ADD_PAUSE }
                }
                Code::ReadOnly => AddAnswer::Unknown(Unknown::ReadOnly),
                _ => AddAnswer::Unknown(Unknown::Undecided),
            };
        }
        left = again;
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(ADD_PAUSE).await;
    }
    answers
}
