//! Sessions that end while the process lives.

use tidemill_proto::bookie::Code;
use tidemill_types::{BookieState, meta::Command};

use crate::{
    broker::Broker,
    calls::Adds,
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_is_opened_again_and_adds_go_on_meanwhile() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    let (id, incarnation) = (bookie.id(), bookie.incarnation().await);
    let first = quorum.look(|s| s.member(id).unwrap().session);
    quorum.expire(id);
    assert_eq!(adds.add(ledger, 1, b"x").await, Code::Ok);
    let second = until("another session", async || quorum.look(|s| s.member(id).unwrap().session)).await;
    assert_ne!(Some(second), first);
    assert_eq!(bookie.incarnation().await, incarnation);
    until("health", async || bookie.sup.health().is_ready().then_some(())).await;
    assert_eq!(bookie.metric("sessions_lost_total"), 1.0);
    assert_eq!(adds.add(ledger, 2, b"x").await, Code::Ok);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uuid_that_was_declared_lost_boots_again_and_trusts_nothing_it_holds() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let (open, closed) =
        (broker.ledger(owned, &[bookie.id()]).await.id, broker.ledger(owned, &[bookie.id()]).await.id);
    let mut adds = Adds::to(&bookie).await;
    for ledger in [open, closed] {
        assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    }
    let member = bookie.id();
    bookie.stop().await;
    quorum.command(Command::SetMemberState { member, state: BookieState::Lost, restarting: false }).unwrap();
    broker.close(closed, 0).await;

    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!((bookie.id(), bookie.state().await.as_str()), (member, "rw"));
    let mut adds = Adds::to(&bookie).await;
    let before = quorum.ledger_reads();
    assert_eq!(adds.add(closed, 1, b"zombie").await, Code::Fenced);
    assert_eq!(adds.add(open, 1, b"x").await, Code::Ok);
    let asked = quorum.ledger_reads();
    assert!(asked > before, "held ledgers are asked about too");
    assert_eq!(adds.add(open, 2, b"x").await, Code::Ok);
    assert_eq!(quorum.ledger_reads(), asked, "once per ledger and boot");
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_uuid_is_declared_lost_ends() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let member = bookie.id();
    quorum.reachable(false);
    quorum.expire(member);
    quorum.command(Command::SetMemberState { member, state: BookieState::Lost, restarting: false }).unwrap();
    quorum.reachable(true);
    let why = bookie.fatal().await;
    assert!(why.contains("declared lost"), "{why}");
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!((bookie.id(), bookie.state().await.as_str()), (member, "rw"));
    bookie.stop().await;
}
