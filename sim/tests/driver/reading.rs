use bytes::Bytes;
use tidemill_ledger::{LedgerReader, ReadError};
use tidemill_types::{EntryId, LedgerState};

use super::{fake::Cluster, writing::until};

async fn closed(c: &Cluster, entries: i64) -> LedgerReader {
    let w = c.client.open_writer(c.create(1, 3, 2));
    for n in 0..entries {
        w.append(&n.to_be_bytes(), &[Bytes::from(vec![7; 100])]).unwrap().await.unwrap();
    }
    until("copies", || c.bookies[..3].iter().all(|b| b.holds(w.ledger()).len() as i64 == entries)).await;
    let mut r = c.meta.record(w.ledger());
    r.state = LedgerState::Closed;
    r.last_entry = Some(EntryId(entries - 1));
    c.client.reader(r)
}

#[tokio::test(start_paused = true)]
async fn a_dead_and_a_corrupt_replica_are_stepped_over() {
    let c = Cluster::new(3);
    let r = closed(&c, 10).await;
    c.bookies[1].cut();
    c.bookies[2].corrupt(EntryId(3));
    let e = r.read(EntryId(3)).await.unwrap();
    assert_eq!(e.header().entry, EntryId(3));
    c.bookies[0].silent();
    assert!(matches!(r.read(EntryId(3)).await, Err(ReadError::Unknown { .. })));
    assert!(matches!(r.read(EntryId(10)).await, Err(ReadError::OutOfRange { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_slow_replica_is_overtaken() {
    let c = Cluster::new(3);
    let r = closed(&c, 2).await;
    c.bookies[1].silent(); // the first that ledger 1 asks
    let start = tokio::time::Instant::now();
    r.read(EntryId(1)).await.unwrap();
    assert!(start.elapsed() < std::time::Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn runs_come_in_order_within_the_byte_limit() {
    let c = Cluster::new(3);
    let r = closed(&c, 30).await;
    let mut at = EntryId(0);
    let mut calls = 0;
    while at <= r.last_entry() {
        let run = r.read_range(at, EntryId(1_000), 1_000).await.unwrap();
        assert!(run.len() < 10);
        for e in run {
            assert_eq!(e.header().entry, at);
            at = at.next();
        }
        calls += 1;
    }
    assert!(calls < 10, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_entry_needs_all_replicas_and_an_unchanged_record() {
    let c = Cluster::new(4);
    let r = c.create(1, 3, 2);
    let reader = c.client.reader_up_to(r.clone(), EntryId(5));
    assert!(matches!(reader.read(EntryId(5)).await, Err(ReadError::NoSuchEntry { .. })));
    c.bookies[2].cut();
    assert!(matches!(reader.read(EntryId(5)).await, Err(ReadError::Unknown { .. })));
    c.bookies[2].back();
    c.meta.remove(r.id);
    assert_eq!(reader.read(EntryId(5)).await, Err(ReadError::Deleted(r.id)));
}

#[tokio::test(start_paused = true)]
async fn binary_search_reads_heads_only() {
    let c = Cluster::new(3);
    let r = closed(&c, 100).await;
    for wanted in [0i64, 1, 37, 98, 99] {
        // Every third entry says nothing.
        let found = r
            .partition_point(|h| {
                let n = i64::from_be_bytes(h.envelope[..].try_into().unwrap());
                (n % 3 != 1).then_some(n >= wanted)
            })
            .await
            .unwrap();
        let expected = (0..100).find(|n| n % 3 != 1 && *n >= wanted);
        assert_eq!(found.map(|e| e.0), expected, "wanted {wanted}");
    }
    assert_eq!(r.partition_point(|_| Some(false)).await.unwrap(), None);
}
