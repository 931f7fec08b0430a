//! Bookies with a real quorum of three members: everything over gRPC, everything on disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp, reason = "a test")]

#[path = "../bookie/calls.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod calls;
mod quorum;
#[path = "../bookie/shelf.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod shelf;
#[path = "../bookie/wait.rs"]
mod wait;

use tidemill_proto::bookie::Code;
use tidemill_types::{BookieState, LedgerState};

use crate::{
    calls::{Adds, fence, held, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_bookies_life() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(2));
    // Before there is a cluster at all.
    let mut bookie = Bookie::try_start(config(&quorum, &disks)).await.unwrap();
    assert_eq!(bookie.state().await, "starting");
    quorum.initialise().await;
    bookie.serves().await;
    let id = bookie.id();
    let broker = quorum.broker().await;
    let (kept, doomed) = (broker.partition("kept").await, broker.partition("doomed").await);

    // Writing and reading.
    let ledger = broker.ledger(kept, &[id]).await.id;
    let gone = broker.ledger(doomed, &[id]).await.id;
    let mut adds = Adds::to(&bookie).await;
    for e in 0..10 {
        assert_eq!(adds.add(ledger, e, b"kept").await, Code::Ok);
    }
    assert_eq!(adds.add(gone, 0, b"gone").await, Code::Ok);

    // A member of the quorum goes; the others carry on.
    quorum.stop_one().await;
    let untouched = broker.ledger(kept, &[id]).await.id;

    // A restart keeps the identity; the mark is above all ledgers now (R27).
    let before = bookie.incarnation().await;
    bookie.stop().await;
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!((bookie.id(), bookie.state().await.as_str()), (id, "rw"));
    assert_ne!(bookie.incarnation().await, before);
    assert_eq!(read_codes(&bookie, ledger, 0, 10).await[9..], [Code::Ok, Code::NoSuchEntry]);
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(untouched, 0, b"first").await, Code::Ok, "the quorum says OPEN");

    // A deleted topic is collected.
    broker.delete(doomed.0.topic).await;
    until("collection", async || (!held(&bookie).await.contains(&gone.0)).then_some(())).await;
    assert_eq!(adds.add(gone, 1, b"zombie").await, Code::Fenced);
    assert_eq!(read_codes(&bookie, ledger, 0, 9).await, [Code::Ok; 10]);

    // A lost lane is limbo.
    bookie.stop().await;
    disks.empty(0);
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!((bookie.id(), bookie.state().await.as_str()), (id, "limbo"));
    let member = broker.member(id).await;
    assert_eq!((member.state, member.limbo_count), (BookieState::Limbo, 1));
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 10, b"late").await, Code::Fenced);
    assert_eq!(fence(&bookie, ledger).await, (Code::Unknown, -1));

    // Owners close, copies come back, limbo ends.
    assert_eq!(broker.close(ledger, 9).await.state, LedgerState::Closed);
    broker.close(untouched, 0).await;
    for e in 0..10 {
        assert_eq!(adds.recovery_add(ledger, e, b"kept").await, Code::Ok);
    }
    assert_eq!(adds.recovery_add(untouched, 0, b"first").await, Code::Ok);
    until("the end of limbo", async || (bookie.state().await == "rw").then_some(())).await;
    assert_eq!(broker.member(id).await.state, BookieState::Rw);
    bookie.stop().await;
    let member = broker.member(id).await;
    assert!(member.restarting && member.session.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_that_the_quorum_was_told_are_expected_back() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    quorum.initialise().await;
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let id = bookie.id();
    let broker = quorum.broker().await;
    let owned = broker.partition("t").await;
    let ledger = broker.ledger(owned, &[id]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    let start = broker.member(id).await.lanes[0].group;
    until("a report", async || (broker.member(id).await.lanes[0].group > start).then_some(())).await;
    bookie.stop().await;
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!(bookie.state().await, "rw", "everything is there");
    bookie.stop().await;
    disks.empty(0);
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_ne!(bookie.id(), id, "all disks empty: a new bookie (R15)");
    assert_eq!(bookie.state().await, "rw");
    bookie.stop().await;
}
