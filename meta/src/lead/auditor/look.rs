//! Asking the members of a ledger what they hold of it (1.6 step 7).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use tidemill_ledger::{
    BookieTable,
    core::repair::{Held, LookRules, Verdict, expected, verdict},
    transport::{GrpcTransport, Target, Transport},
};
use tidemill_types::{BookieId, ClusterId, EntryId, LedgerRecord};

/// No answer within this time is no answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks everybody at once and judges the answers against the very record that was asked about.
pub(super) async fn look(
    transport: GrpcTransport,
    cluster: ClusterId,
    table: Arc<BookieTable>,
    record: &LedgerRecord,
) -> Verdict {
    let members: std::collections::BTreeSet<BookieId> =
        record.fragments.iter().flat_map(|f| f.ensemble.iter().copied()).collect();
    let asked = members.into_iter().filter_map(|b| {
        let info = table.get(b)?;
        let last = expected(record, b).last()?.last;
        let target =
            Target { cluster, bookie: b, incarnation: info.incarnation, endpoint: info.endpoint.clone() };
        let call = transport.ranges(target, record.id, EntryId::FIRST, last);
        Some(async move { (b, tokio::time::timeout(TIMEOUT, call).await.unwrap_or(Held::Unknown)) })
    });
    let answers: BTreeMap<BookieId, Held> = join_all(asked).await.into_iter().collect();
    verdict(record, &table, |b| answers.get(&b).cloned().unwrap_or(Held::Unknown), LookRules::default())
}
