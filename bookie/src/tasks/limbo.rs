//! The end of limbo (R15).
//!
//! It ends when no ledger that is not CLOSED names the uuid in its last fragment, every entry of every fragment that names it
//! is here again (older fragments of an open ledger: up to the next fragment), and every ledger that names it or is held, if
//! not OPEN, is fenced. The order: look, fence, tell the quorum (which checks the first condition again), then drop the
//! durable flag.

use tidemill_ledger::core::repair::{expected, missing};
use tidemill_meta_client::MetaClient;
use tidemill_storage::{Engine, RangesOutcome};
use tidemill_types::{BookieId, BookieState, LedgerRecord, LedgerState};

use crate::{
    boot::{disks, duties},
    records::{NoAnswer, all_ledgers_of},
    shared::Serving,
};

/// Leaves limbo if all is back. `Ok(false)`: something is still missing.
pub(super) async fn leave(
    client: &MetaClient,
    serving: &Serving,
    state: BookieState,
) -> Result<bool, NoAnswer> {
    let (engine, id) = (&serving.engine, serving.id);
    let mut named = Vec::new();
    all_ledgers_of(client, id, |r| named.push(r)).await?;
    if let Some(blocking) = named.iter().find(|r| blocks(r, id)) {
        tracing::debug!(ledger = %blocking.id, "limbo waits for this ledger to be closed");
        return Ok(false);
    }
    let (looked, engine_) = (named, engine.clone());
    let missing = tidemill_runtime::work::blocking(move || {
        looked.iter().find(|r| !all_back(&engine_, r, id)).map(|r| r.id)
    });
    if let Some(ledger) = missing.await.map_err(|e| NoAnswer(e.to_string()))? {
        tracing::debug!(%ledger, "limbo waits for entries of this ledger");
        return Ok(false);
    }
    duties::fence_not_open(client, engine, id).await?;
    if state == BookieState::Limbo {
        let session = client.session().ok_or_else(|| NoAnswer("there is no session".to_owned()))?;
        match session.set_member_state(id, BookieState::Rw, false).await? {
            Ok(()) => {}
            Err(rejection) => {
                tracing::debug!(%rejection, "the quorum keeps the bookie in limbo");
                return Ok(false);
            }
        }
    }
    // A crash before this leaves the flag: the next boot finds it, does the fences again and drops it.
    disks::set_limbo(engine, false).await.map_err(|e| NoAnswer(format!("{e:?}")))?;
    serving.set_state(BookieState::Rw);
    tracing::info!(bookie = %id, "limbo is over: everything is back");
    Ok(true)
}

/// A ledger that is not CLOSED and names the bookie in its last fragment.
fn blocks(record: &LedgerRecord, bookie: BookieId) -> bool {
    record.state != LedgerState::Closed
        && record.last_fragment().is_some_and(|f| f.ensemble.contains(&bookie))
}

/// Whether every entry that the record expects here is held.
fn all_back(engine: &Engine, record: &LedgerRecord, bookie: BookieId) -> bool {
    let expected = expected(record, bookie);
    if expected.is_empty() {
        return true;
    }
    match engine.ranges(record.id) {
        RangesOutcome::Ranges { ranges, .. } => missing(&expected, &ranges).is_empty(),
        RangesOutcome::NoSuchLedger | RangesOutcome::Unknown(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{
        EntryId, EntryRange, Epoch, Fragment, FragmentSeq, LedgerId, MemberId, PartitionId, TopicId, Version,
    };
    use uuid::Uuid;

    use super::*;

    fn range(first: i64, last: i64) -> EntryRange {
        EntryRange { first: EntryId(first), last: EntryId(last) }
    }

    fn record(state: LedgerState, last: Option<i64>, fragments: &[(i64, BookieId)]) -> LedgerRecord {
        LedgerRecord {
            id: LedgerId(1),
            version: Version(1),
            partition: PartitionId { topic: TopicId(1), index: 0 },
            epoch: Epoch(1),
            ack_quorum: 1,
            state,
            last_entry: last.map(EntryId),
            length: None,
            records: None,
            fragments: fragments
                .iter()
                .map(|(first, b)| Fragment {
                    first_entry: EntryId(*first),
                    ensemble: vec![*b],
                    under: vec![],
                })
                .collect(),
            fragment_seq: FragmentSeq(0),
            unchecked: false,
            repair: None,
            created_ms: 0,
        }
    }

    #[test]
    fn what_is_expected_ends_at_the_next_fragment_or_at_the_end() {
        let (me, other) = (MemberId(Uuid::from_u128(1)), MemberId(Uuid::from_u128(2)));
        let closed = record(LedgerState::Closed, Some(29), &[(0, me), (10, other), (20, me)]);
        assert_eq!(expected(&closed, me), [range(0, 9), range(20, 29)]);
        let open = record(LedgerState::Open, None, &[(0, me), (10, other)]);
        assert_eq!(expected(&open, me), [range(0, 9)]);
        assert!(!blocks(&open, me) && blocks(&open, other) && !blocks(&closed, me));
        let empty = record(LedgerState::Closed, Some(-1), &[(0, me)]);
        assert!(expected(&empty, me).is_empty());
        let short = record(LedgerState::Closed, Some(4), &[(0, me), (10, other)]);
        assert_eq!(expected(&short, me), [range(0, 4)]);
    }
}
