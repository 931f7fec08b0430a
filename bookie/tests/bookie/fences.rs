//! Fencing (R11, R25) and recovery adds.

use tidemill_proto::bookie::{Code, FenceRequest, ReadRequest, ReadResult, RecoveryAddRequest};
use tidemill_types::LedgerId;

use crate::{
    broker::Broker,
    calls::{Adds, entry, fence, read, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_is_sticky_over_a_restart_and_recovery_may_still_add() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(2));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"a").await, Code::Ok);
    assert_eq!(adds.add(ledger, 1, b"b").await, Code::Ok);
    assert_eq!(fence(&bookie, ledger).await, (Code::Ok, 0));
    assert_eq!(fence(&bookie, ledger).await, (Code::Ok, 0), "fenced before");
    assert_eq!(adds.add(ledger, 2, b"c").await, Code::Fenced);
    assert_eq!(adds.recovery_add(ledger, 2, b"c").await, Code::Ok);
    bookie.stop().await;

    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 3, b"d").await, Code::Fenced);
    assert_eq!(read_codes(&bookie, ledger, 0, 2).await, [Code::Ok; 3]);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_the_bookie_never_saw_is_fenced_all_the_same() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let a = broker.ledger(owned, &[bookie.id()]).await.id;
    let b = broker.ledger(owned, &[bookie.id()]).await.id;
    let c = broker.ledger(owned, &[bookie.id()]).await.id;
    let mut adds = Adds::to(&bookie).await;

    // Fence call, many at once.
    let request = FenceRequest { identity: Some(bookie.identity().await), ledgers: vec![a.0, 12_345] };
    let results = bookie.control.clone().fence(request).await.unwrap().into_inner().results;
    assert_eq!(
        results.iter().map(|r| (r.ledger, r.code(), r.lac)).collect::<Vec<_>>(),
        [(a.0, Code::Ok, -1), (12_345, Code::Ok, -1)]
    );
    assert_eq!(adds.add(a, 0, b"x").await, Code::Fenced);

    // A fencing read answers each entry and denies entries, never the ledger.
    let request = ReadRequest { ledger: b.0, first: 0, last: 2, fence: true, ..Default::default() };
    let codes: Vec<_> = read(&bookie, request).await.iter().map(|r| (r.entry, r.code())).collect();
    assert_eq!(codes, [(0, Code::NoSuchEntry), (1, Code::NoSuchEntry), (2, Code::NoSuchEntry)]);
    assert_eq!(adds.add(b, 0, b"x").await, Code::Fenced);

    // A recovery add creates it fenced (R27); the unary call does the same.
    let request = RecoveryAddRequest {
        identity: Some(bookie.identity().await),
        entries: vec![entry(c, 1, b"y"), bytes::Bytes::from_static(b"no entry")],
    };
    let codes: Vec<_> =
        bookie.control.clone().recovery_add(request).await.unwrap().into_inner().codes().collect();
    assert_eq!(codes, [Code::Ok, Code::BadEntry]);
    assert_eq!(adds.add(c, 2, b"z").await, Code::Fenced);
    let request = ReadRequest { ledger: c.0, first: 0, last: 2, fence: true, ..Default::default() };
    let codes: Vec<_> = read(&bookie, request).await.iter().map(ReadResult::code).collect();
    assert_eq!(codes, [Code::NoSuchEntry, Code::Ok, Code::NoSuchEntry]);

    let too_many = FenceRequest { identity: Some(bookie.identity().await), ledgers: vec![1; 1001] };
    let refused = bookie.control.clone().fence(too_many).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_read_tells_of_every_add_that_was_accepted_before() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    for _ in 0..20 {
        let ledger: LedgerId = broker.ledger(owned, &[bookie.id()]).await.id;
        let mut adds = Adds::to(&bookie).await;
        assert_eq!(adds.add(ledger, 0, b"first").await, Code::Ok);
        let ids = adds.send((1..40).map(|i| (entry(ledger, i, &[1; 5000]), false)).collect()).await;
        let request = ReadRequest { ledger: ledger.0, first: 0, last: 39, fence: true, ..Default::default() };
        let seen: Vec<_> = read(&bookie, request).await.iter().map(ReadResult::code).collect();
        let acked = adds.answers(&ids).await;
        for (i, code) in acked.iter().enumerate() {
            match code {
                // M17: a "no" about an entry that is acknowledged, before or after, would cut it off.
                Code::Ok => assert_eq!(seen[i + 1], Code::Ok, "entry {}", i + 1),
                Code::Fenced => assert_eq!(seen[i + 1], Code::NoSuchEntry),
                other => panic!("{other:?}"),
            }
        }
    }
    bookie.stop().await;
}
