//! Calls on the control connection.

use std::time::Duration;

use bytes::Bytes;
use tidemill_proto::bookie::{
    Code, FenceRequest, ListRangesRequest, ReadLacRequest, RecoveryAddRequest, WriteLacRequest,
    bookie_control_client::BookieControlClient,
};
use tidemill_types::{EntryId, EntryRange, LedgerId};
use tonic::transport::Channel;

use super::{Target, codes, identity};
use crate::core::{AddAnswer, FenceAnswer, Unknown, repair::Held};

pub(super) async fn fence(
    mut client: BookieControlClient<Channel>,
    target: Target,
    ledgers: Vec<LedgerId>,
) -> Vec<FenceAnswer> {
    let request =
        FenceRequest { identity: Some(identity(&target)), ledgers: ledgers.iter().map(|l| l.0).collect() };
    let mut out = match client.fence(request).await {
        Ok(r) => {
            let results = r.into_inner().results;
            ledgers
                .iter()
                .zip(results)
                .map(|(l, r)| {
                    if r.ledger == l.0 {
                        codes::lac(codes::code(r.code), r.lac)
                    } else {
                        FenceAnswer::Unknown(Unknown::Refused)
                    }
                })
                .collect()
        }
        Err(s) => vec![FenceAnswer::Unknown(codes::status(&s)); ledgers.len()],
    };
    out.resize(ledgers.len(), FenceAnswer::Unknown(Unknown::Refused));
    out
}

pub(super) async fn recovery_add(
    mut client: BookieControlClient<Channel>,
    target: Target,
    entries: Vec<Bytes>,
) -> Vec<AddAnswer> {
    let n = entries.len();
    let request = RecoveryAddRequest { identity: Some(identity(&target)), entries };
    let mut out = match client.recovery_add(request).await {
        Ok(r) => r.into_inner().codes.into_iter().map(|c| codes::add(codes::code(c), 0)).collect(),
        Err(s) => vec![AddAnswer::Unknown(codes::status(&s)); n],
    };
    out.resize(n, AddAnswer::Unknown(Unknown::Refused));
    out
}

pub(super) async fn read_lac(
    mut client: BookieControlClient<Channel>,
    target: Target,
    ledger: LedgerId,
    above: Option<EntryId>,
    wait: Duration,
) -> FenceAnswer {
    let request = ReadLacRequest {
        identity: Some(identity(&target)),
        ledger: ledger.0,
        wait_above: above.map(|e| e.0),
        max_wait_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).min(30_000),
    };
    match client.read_lac(request).await {
        Ok(r) => {
            let r = r.into_inner();
            codes::lac(codes::code(r.code), r.lac)
        }
        Err(s) => FenceAnswer::Unknown(codes::status(&s)),
    }
}

pub(super) async fn write_lac(
    mut client: BookieControlClient<Channel>,
    target: Target,
    ledger: LedgerId,
    lac: EntryId,
) -> bool {
    let request = WriteLacRequest { identity: Some(identity(&target)), ledger: ledger.0, lac: lac.0 };
    client.write_lac(request).await.is_ok_and(|r| codes::code(r.into_inner().code) == Code::Ok)
}

pub(super) async fn ranges(
    mut client: BookieControlClient<Channel>,
    target: Target,
    ledger: LedgerId,
    first: EntryId,
    last: EntryId,
) -> Held {
    let request = ListRangesRequest {
        identity: Some(identity(&target)),
        ledger: ledger.0,
        first: first.0,
        last: last.0,
    };
    let Ok(answer) = client.list_ranges(request).await else { return Held::Unknown };
    let answer = answer.into_inner();
    let ranges: Vec<EntryRange> =
        answer.ranges.iter().map(|r| EntryRange { first: EntryId(r.first), last: EntryId(r.last) }).collect();
    let in_order =
        ranges.iter().all(|r| r.first <= r.last) && ranges.is_sorted_by(|a, b| a.last.next() < b.first);
    match codes::code(answer.code) {
        Code::Ok if in_order => Held::Ranges { ranges, complete: true },
        Code::NoSuchLedger => Held::Ranges { ranges: Vec::new(), complete: true },
        // Limbo: what is there is certain, what is missing is not denied.
        Code::Unknown if in_order => Held::Ranges { ranges, complete: false },
        _ => Held::Unknown,
    }
}
