//! Reads of runs of entries from another bookie.

use std::time::Duration;

use bytes::Bytes;
use tidemill_ledger::{
    BookieTable,
    core::{ReadAnswer, Unknown},
    transport::{GrpcTransport, ReadSpec, Target, Transport},
};
use tidemill_types::{BookieId, ClusterId, Entry, EntryId, LedgerId};

/// Bytes of one call: what is read and not yet written is bounded by it and one largest entry.
const READ_BYTES: u32 = 4 << 20;
/// An answer that does not come within this time is unknown.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Tries before an unknown is taken for the answer: a bookie that restarts is back within these.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Answers about a first part of `first..=last`, at least about `first`, in order.
pub(super) async fn read(
    transport: &GrpcTransport,
    (table, cluster): (&BookieTable, ClusterId),
    source: BookieId,
    ledger: LedgerId,
    (first, last): (EntryId, EntryId),
) -> Vec<(EntryId, ReadAnswer<Entry>)> {
    let Some(info) = table.get(source) else {
        return vec![(first, ReadAnswer::Unknown(Unknown::Closed))];
    };
    let target =
        Target { cluster, bookie: source, incarnation: info.incarnation, endpoint: info.endpoint.clone() };
    let spec = ReadSpec { ledger, first, last, max_bytes: READ_BYTES, header_only: false, fence: false };
    let mut why = Unknown::TimedOut;
    for n in 0..TRIES {
        if n > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let call = transport.read(target.clone(), spec);
        let Ok(items) = tokio::time::timeout(TIMEOUT, call).await else { continue };
        let mut out = Vec::with_capacity(items.len());
        let mut next = first;
        for (entry, answer) in items {
            if entry != next {
                break;
            }
            match checked(answer) {
                ReadAnswer::Unknown(u) => {
                    why = u;
                    // A bad copy stays bad; anything else is worth another try.
                    if u == Unknown::Corrupt && out.is_empty() {
                        return vec![(entry, ReadAnswer::Unknown(u))];
                    }
                    break;
                }
                answer => out.push((entry, answer)),
            }
            next = next.next();
        }
        if !out.is_empty() {
            return out;
        }
    }
    vec![(first, ReadAnswer::Unknown(why))]
}

/// End to end: the digest is checked where the copy arrives, whatever the source said.
fn checked(answer: ReadAnswer<Bytes>) -> ReadAnswer<Entry> {
    match answer {
        ReadAnswer::Found(b) => {
            Entry::decode(b).map_or(ReadAnswer::Unknown(Unknown::Corrupt), ReadAnswer::Found)
        }
        ReadAnswer::Negative(n) => ReadAnswer::Negative(n),
        ReadAnswer::Unknown(u) => ReadAnswer::Unknown(u),
    }
}
