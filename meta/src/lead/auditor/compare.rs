//! The weekly comparison: all replicas of a CLOSED ledger say the same.
//!
//! Every member is asked for the head of every entry. A head holds position, length and the digest of the body, and has a
//! digest of its own; that a body fits its digest is what each bookie's scrub looks at.

use std::sync::Arc;

use tidemill_ledger::{
    BookieTable,
    core::{ReadAnswer, repair::span},
    transport::{ReadSpec, Target, Transport},
};
use tidemill_types::{BookieId, BookieState, ClusterId, EntryHeader, EntryId, LedgerRecord};

/// Entries that are compared at once.
const RUN: i64 = 10_000;
/// Bytes of one call.
const CALL_BYTES: u32 = 4 << 20;
/// A call without an answer for so long has none.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// How a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// Every member has every entry, and they are the same.
    Same {
        /// Copies that were looked at.
        copies: u64,
    },
    /// This member denies an entry that it should have.
    Lacks {
        /// Its uuid.
        bookie: BookieId,
        /// Its limbo count.
        limbo_count: u32,
    },
    /// Two members have different entries for one id: an alarm, never a choice (R24).
    Differs {
        /// The entry.
        entry: EntryId,
        /// Whose copy differs from an earlier member's.
        bookie: BookieId,
    },
    /// Somebody did not answer, or cannot read its copy.
    Unknown,
}

/// Compares all members of all fragments.
pub(super) async fn compare(
    transport: &dyn Transport,
    cluster: ClusterId,
    table: Arc<BookieTable>,
    record: &LedgerRecord,
) -> Compared {
    let mut copies = 0;
    for (i, f) in record.fragments.iter().enumerate() {
        let Some(all) = span(record, i) else { continue };
        let mut first = all.first;
        while first <= all.last {
            let last = all.last.min(EntryId(first.0 + RUN - 1));
            let mut reference: Option<Vec<u64>> = None;
            for b in &f.ensemble {
                let Some(info) = table.get(*b) else { return Compared::Unknown };
                if matches!(info.state, BookieState::Lost | BookieState::Retired) {
                    return Compared::Unknown;
                }
                let target = Target {
                    cluster,
                    bookie: *b,
                    incarnation: info.incarnation,
                    endpoint: info.endpoint.clone(),
                };
                let prints = match heads(transport, target, record, (first, last)).await {
                    Ok(prints) => prints,
                    Err(true) => return Compared::Lacks { bookie: *b, limbo_count: info.limbo_count },
                    Err(false) => return Compared::Unknown,
                };
                copies += prints.len() as u64;
                match &reference {
                    None => reference = Some(prints),
                    Some(other) => {
                        let differs = (first.0..).zip(other.iter().zip(&prints)).find(|(_, (a, b))| a != b);
                        if let Some((entry, _)) = differs {
                            return Compared::Differs { entry: EntryId(entry), bookie: *b };
                        }
                    }
                }
            }
            first = last.next();
        }
    }
    Compared::Same { copies }
}

/// Both digests of each entry. `Err(true)`: the bookie denies one; `Err(false)`: it does not say.
async fn heads(
    transport: &dyn Transport,
    target: Target,
    record: &LedgerRecord,
    (first, last): (EntryId, EntryId),
) -> Result<Vec<u64>, bool> {
    let mut out = Vec::new();
    let mut next = first;
    while next <= last {
        let spec = ReadSpec {
            ledger: record.id,
            first: next,
            last,
            max_bytes: CALL_BYTES,
            header_only: true,
            fence: false,
        };
        let items = tokio::time::timeout(TIMEOUT, transport.read(target.clone(), spec)).await;
        let before = next;
        for (entry, answer) in items.map_err(|_| false)? {
            if entry != next {
                return Err(false);
            }
            match answer {
                ReadAnswer::Found(head) => {
                    let h = EntryHeader::parse(&head).map_err(|_| false)?;
                    h.check_head(&head).map_err(|_| false)?;
                    if h.ledger != record.id || h.entry != entry {
                        return Err(false);
                    }
                    out.push(u64::from(h.head_crc) << 32 | u64::from(h.body_crc));
                    next = next.next();
                }
                ReadAnswer::Negative(_) => return Err(true),
                ReadAnswer::Unknown(_) => return Err(false),
            }
        }
        if next == before {
            return Err(false);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use bytes::Bytes;
    use futures::future::{BoxFuture, FutureExt, ready};
    use tidemill_ledger::{
        BookieInfo,
        core::{AddAnswer, FenceAnswer, Negative, Unknown},
        transport::{AddStream, NoStream, ReadItem},
    };
    use tidemill_types::{
        Endpoint, Entry, Epoch, Fragment, FragmentSeq, Incarnation, LedgerId, LedgerState, MemberId,
        PartitionId, TopicId, Version,
    };
    use uuid::Uuid;

    use super::*;

    /// Answers reads alone.
    struct Heads(BTreeMap<(BookieId, i64), Bytes>);

    impl Transport for Heads {
        fn read(&self, t: Target, spec: ReadSpec) -> BoxFuture<'static, Vec<ReadItem>> {
            let mut out = Vec::new();
            // Two at a time, as a byte limit would have it.
            for e in (spec.first.0..=spec.last.0).take(2) {
                let found = self.0.get(&(t.bookie, e)).cloned();
                let ends = found.is_none();
                let no = ReadAnswer::Negative(Negative::NoSuchEntry);
                out.push((EntryId(e), found.map_or(no, ReadAnswer::Found)));
                if ends {
                    break;
                }
            }
            ready(out).boxed()
        }
        fn open_adds(&self, _: Target) -> BoxFuture<'static, Result<AddStream, NoStream>> {
            ready(Err(NoStream(Unknown::Closed))).boxed()
        }
        fn fence(&self, _: Target, ledgers: Vec<LedgerId>) -> BoxFuture<'static, Vec<FenceAnswer>> {
            ready(vec![FenceAnswer::Unknown(Unknown::Closed); ledgers.len()]).boxed()
        }
        fn recovery_add(&self, _: Target, entries: Vec<Bytes>) -> BoxFuture<'static, Vec<AddAnswer>> {
            ready(vec![AddAnswer::Unknown(Unknown::Closed); entries.len()]).boxed()
        }
        fn read_lac(
            &self,
            _: Target,
            _: LedgerId,
            _: Option<EntryId>,
            _: Duration,
        ) -> BoxFuture<'static, FenceAnswer> {
            ready(FenceAnswer::Unknown(Unknown::Closed)).boxed()
        }
        fn write_lac(&self, _: Target, _: LedgerId, _: EntryId) -> BoxFuture<'static, bool> {
            ready(false).boxed()
        }
    }

    fn b(n: u128) -> BookieId {
        MemberId(Uuid::from_u128(n))
    }

    fn head(e: i64, body: &'static [u8]) -> Bytes {
        let entry =
            Entry::encode(LedgerId(1), EntryId(e), EntryId(-1), 0, b"env", &[Bytes::from_static(body)]);
        let entry = entry.unwrap();
        entry.bytes().slice(..entry.header().head_len())
    }

    fn world() -> (Heads, Arc<BookieTable>, LedgerRecord) {
        let copies = (1..=2).flat_map(|n| (0..5).map(move |e| ((b(n), e), head(e, b"body")))).collect();
        let info = |n| BookieInfo {
            id: b(n),
            incarnation: Incarnation(1),
            endpoint: Endpoint { host: "h".into(), port: 1 },
            zone: String::new(),
            state: BookieState::Rw,
            limbo_count: 3,
            restarting: false,
            live: true,
            free_bytes: 0,
        };
        let record = LedgerRecord {
            id: LedgerId(1),
            version: Version(1),
            partition: PartitionId { topic: TopicId(1), index: 0 },
            epoch: Epoch(1),
            ack_quorum: 2,
            state: LedgerState::Closed,
            last_entry: Some(EntryId(4)),
            length: Some(0),
            records: Some(0),
            fragments: vec![Fragment { first_entry: EntryId(0), ensemble: vec![b(1), b(2)], under: vec![] }],
            fragment_seq: FragmentSeq(0),
            unchecked: false,
            repair: None,
            created_ms: 0,
        };
        (Heads(copies), Arc::new((1..=2).map(info).collect()), record)
    }

    async fn run(t: &Heads, table: &Arc<BookieTable>, record: &LedgerRecord) -> Compared {
        compare(t, ClusterId(Uuid::from_u128(9)), table.clone(), record).await
    }

    #[tokio::test]
    async fn equal_missing_and_different_copies_are_told_apart() {
        let (mut t, table, record) = world();
        assert_eq!(run(&t, &table, &record).await, Compared::Same { copies: 10 });
        t.0.insert((b(2), 3), head(3, b"evil"));
        assert_eq!(run(&t, &table, &record).await, Compared::Differs { entry: EntryId(3), bookie: b(2) });
        t.0.remove(&(b(2), 2));
        assert_eq!(run(&t, &table, &record).await, Compared::Lacks { bookie: b(2), limbo_count: 3 });
        let mut damaged = head(1, b"body").to_vec();
        damaged[33] ^= 1;
        t.0.insert((b(1), 1), damaged.into());
        assert_eq!(run(&t, &table, &record).await, Compared::Unknown, "a damaged copy is no other copy");
    }
}
