//! Adds and reads.

use tidemill_proto::bookie::{Code, ReadLacRequest, ReadRequest, WriteLacRequest};
use tidemill_types::{EntryHeader, LedgerId};

use crate::{
    broker::Broker,
    calls::{Adds, entry, read, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::soon,
};

async fn one_ledger() -> (Quorum, Disks, Broker, Bookie, LedgerId) {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    (quorum, disks, broker, bookie, ledger)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_read_back() {
    let (_q, _d, _b, bookie, ledger) = one_ledger().await;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.hello, bookie.identity().await);
    let mut ids = Vec::new();
    for message in 0..10 {
        let entries = (0..20).map(|i| (entry(ledger, message * 20 + i, &[7; 1000]), false)).collect();
        ids.extend(adds.send(entries).await);
    }
    assert!(adds.answers(&ids).await.iter().all(|c| *c == Code::Ok));

    let all =
        read(&bookie, ReadRequest { ledger: ledger.0, first: 0, last: 199, ..Default::default() }).await;
    assert_eq!(all.iter().map(|r| r.entry).collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
    assert!(all.iter().all(|r| r.bytes == entry(ledger, r.entry, &[7; 1000])));

    let heads = ReadRequest { ledger: ledger.0, first: 5, last: 6, header_only: true, ..Default::default() };
    let heads = read(&bookie, heads).await;
    assert_eq!(heads.len(), 2);
    let head = EntryHeader::parse(&heads[0].bytes).unwrap();
    assert_eq!(heads[0].bytes.len(), head.head_len());
    head.check_head(&heads[0].bytes).unwrap();

    let few = ReadRequest { ledger: ledger.0, first: 0, last: 199, max_bytes: 2500, ..Default::default() };
    let n = read(&bookie, few).await.len();
    assert!((1..=3).contains(&n), "{n} entries for 2500 bytes");

    assert_eq!(read_codes(&bookie, ledger, 199, 205).await, [Code::Ok, Code::NoSuchEntry]);
    assert_eq!(read_codes(&bookie, LedgerId(999), 0, 5).await, [Code::NoSuchLedger]);
    assert!(bookie.metric("payload_bytes_total") >= 200_000.0);
    assert!(bookie.metric("fsync_seconds_count") >= 1.0);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_cannot_be_stored_leaves_the_stream_usable() {
    let (_q, _d, _b, bookie, ledger) = one_ledger().await;
    let mut adds = Adds::to(&bookie).await;
    let good = entry(ledger, 0, b"good");
    let mut flipped = good.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let ids = adds
        .send(vec![
            (flipped.into(), false),
            (good.slice(..good.len() - 1), false),
            (bytes::Bytes::new(), false),
            (entry(ledger, 1, &vec![0; (1 << 20) + 1]), false),
            (good.clone(), false),
        ])
        .await;
    let (bad, large) = (Code::BadEntry, Code::TooLarge);
    assert_eq!(adds.answers(&ids).await, [bad, bad, bad, large, Code::Ok]);
    assert_eq!(adds.add(ledger, 0, b"good").await, Code::Ok, "the same bytes again");
    assert_eq!(adds.add(ledger, 0, b"evil").await, Code::Conflict, "R24");
    assert_eq!(adds.add(ledger, 1, b"next").await, Code::Ok);
    assert!(bookie.metric("conflicts_total") >= 1.0);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_hello_is_refused() {
    let (_q, _d, _b, bookie, ledger) = one_ledger().await;
    let add =
        tidemill_proto::bookie::AddEntry { request_id: 1, entry: entry(ledger, 0, b"x"), recovery: false };
    let message = tidemill_proto::bookie::AddRequest { hello: None, adds: vec![add] };
    let mut rx = bookie.data.clone().add(tokio_stream::once(message)).await.unwrap().into_inner();
    let refused = soon("the refusal", rx.message()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert_eq!(read_codes(&bookie, ledger, 0, 0).await, [Code::NoSuchLedger]);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lac_is_waited_for() {
    let (_q, _d, _b, bookie, ledger) = one_ledger().await;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"a").await, Code::Ok);
    let identity = Some(bookie.identity().await);
    let wait = ReadLacRequest {
        identity: identity.clone(),
        ledger: ledger.0,
        wait_above: Some(0),
        max_wait_ms: 30_000,
    };
    let mut control = bookie.control.clone();
    let waiting = tokio::spawn(async move { control.read_lac(wait).await.unwrap().into_inner() });
    assert_eq!(adds.add(ledger, 1, b"b").await, Code::Ok);
    assert!(!waiting.is_finished(), "entry 1 carries LAC 0, which is not above 0");
    let write = WriteLacRequest { identity: identity.clone(), ledger: ledger.0, lac: 1 };
    assert_eq!(bookie.control.clone().write_lac(write).await.unwrap().into_inner().code(), Code::Ok);
    let lac = soon("the LAC", waiting).await.unwrap();
    assert_eq!((lac.code(), lac.lac), (Code::Ok, 1));
    let at_once = ReadLacRequest { identity, ledger: ledger.0, wait_above: Some(5), max_wait_ms: 1 };
    assert_eq!(bookie.control.clone().read_lac(at_once).await.unwrap().into_inner().lac, 1);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_larger_than_the_budget_of_a_connection_come_through() {
    let (_q, _d, _b, bookie, ledger) = one_ledger().await;
    let mut adds = Adds::to(&bookie).await;
    for i in 0..6 {
        assert_eq!(adds.add(ledger, i, &vec![1; 1_000_000]).await, Code::Ok);
    }
    let request =
        || ReadRequest { ledger: ledger.0, first: 0, last: 5, max_bytes: 64 << 20, ..Default::default() };
    let both = futures::future::join_all((0..4).map(|_| read(&bookie, request()))).await;
    for all in both {
        assert_eq!(all.iter().filter(|r| r.code() == Code::Ok).count(), 6);
    }
    bookie.stop().await;
}
