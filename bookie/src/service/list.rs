//! What is held.

use std::{sync::Arc, time::Duration};

use tidemill_proto::bookie::{
    Code, HeldLedger, ListLedgersRequest, ListLedgersResponse, ListRangesRequest, ListRangesResponse, Range,
};
use tidemill_storage::{Engine, LedgerSummary, RangesOutcome, UnknownReason};
use tidemill_types::{EntryRange, LedgerId};

use crate::shared::Serving;

/// Most ledgers of a call.
const MAX_LEDGERS: u32 = 10_000;
/// A collection of the ledger that is listed is waited for so many times so long (R20), then the answer is unknown.
const COLLECT_TRIES: u32 = 50;
const COLLECT_PAUSE: Duration = Duration::from_millis(20);

/// Ledgers held, in order of id.
pub(super) async fn ledgers(serving: &Arc<Serving>, r: &ListLedgersRequest) -> ListLedgersResponse {
    if !(1..=MAX_LEDGERS).contains(&r.limit) {
        return ListLedgersResponse { code: Code::Invalid.into(), ledgers: Vec::new() };
    }
    let engine = serving.engine.clone();
    let after = (r.after > 0).then_some(LedgerId(r.after));
    let limit = r.limit as usize;
    let held = tidemill_runtime::work::blocking(move || {
        engine.list_ledgers(after, limit).into_iter().map(|s| held(&engine, &s)).collect()
    });
    match held.await {
        Ok(ledgers) => ListLedgersResponse { code: Code::Ok.into(), ledgers },
        Err(_) => ListLedgersResponse { code: Code::Unknown.into(), ledgers: Vec::new() },
    }
}

fn held(engine: &Engine, s: &LedgerSummary) -> HeldLedger {
    let entries = match engine.ranges(s.ledger) {
        RangesOutcome::Ranges { ranges, .. } => ranges.iter().map(count).sum(),
        RangesOutcome::NoSuchLedger | RangesOutcome::Unknown(_) => 0,
    };
    HeldLedger { ledger: s.ledger.0, fenced: s.fenced, lac: s.lac.0, last_entry: s.last_entry.0, entries }
}

fn count(r: &EntryRange) -> u64 {
    u64::try_from(r.last.0 - r.first.0 + 1).unwrap_or(0)
}

/// Which entries of a ledger are held between `first` and `last`. In limbo the ranges are told with `CODE_UNKNOWN`: what
/// lies outside of them is not denied.
pub(super) async fn ranges(serving: &Arc<Serving>, r: &ListRangesRequest) -> ListRangesResponse {
    if r.first < 0 || r.last < r.first {
        return ListRangesResponse { code: Code::Invalid.into(), ranges: Vec::new() };
    }
    let ledger = LedgerId(r.ledger);
    for _ in 0..COLLECT_TRIES {
        let engine = serving.engine.clone();
        let outcome = tidemill_runtime::work::blocking(move || engine.ranges(ledger)).await;
        match outcome {
            Ok(RangesOutcome::Unknown(UnknownReason::Collecting)) => tokio::time::sleep(COLLECT_PAUSE).await,
            Ok(RangesOutcome::Ranges { ranges, complete }) => {
                let code = if complete { Code::Ok } else { Code::Unknown };
                return ListRangesResponse { code: code.into(), ranges: clip(&ranges, r.first, r.last) };
            }
            Ok(RangesOutcome::NoSuchLedger) => {
                return ListRangesResponse { code: Code::NoSuchLedger.into(), ranges: Vec::new() };
            }
            Ok(RangesOutcome::Unknown(_)) | Err(_) => break,
        }
    }
    ListRangesResponse { code: Code::Unknown.into(), ranges: Vec::new() }
}

fn clip(ranges: &[EntryRange], first: i64, last: i64) -> Vec<Range> {
    ranges
        .iter()
        .map(|r| Range { first: r.first.0.max(first), last: r.last.0.min(last) })
        .filter(|r| r.first <= r.last)
        .collect()
}

#[cfg(test)]
mod tests {
    use tidemill_types::EntryId;

    use super::*;

    #[test]
    fn ranges_are_clipped() {
        let r = |first, last| EntryRange { first: EntryId(first), last: EntryId(last) };
        let held = [r(0, 4), r(6, 9), r(20, 30)];
        assert_eq!(clip(&held, 3, 6), [Range { first: 3, last: 4 }, Range { first: 6, last: 6 }]);
        assert_eq!(clip(&held, 10, 19), []);
        assert_eq!(count(&held[1]), 4);
    }
}
