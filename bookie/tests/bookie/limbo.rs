//! Limbo (R15, R16).

use tidemill_proto::bookie::Code;
use tidemill_types::{BookieState, LedgerId};

use crate::{
    broker::Broker,
    calls::{Adds, fence, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lane_is_limbo_until_everything_is_back() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(2));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let id = bookie.id();
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let mut adds = Adds::to(&bookie).await;
    let mut ledgers: Vec<LedgerId> = Vec::new();
    for _ in 0..8 {
        let ledger = broker.ledger(owned, &[id]).await.id;
        for e in 0..3 {
            assert_eq!(adds.add(ledger, e, b"x").await, Code::Ok);
        }
        ledgers.push(ledger);
    }
    // One of them was closed before: it is not fenced by the boot, but nothing of it is denied either.
    let closed = ledgers.pop().unwrap();
    broker.close(closed, 2).await;
    // One was never written to: whether it was, the bookie cannot know any more.
    let untouched = broker.ledger(owned, &[id]).await.id;
    bookie.stop().await;
    disks.empty(0);

    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!((bookie.id(), bookie.state().await.as_str()), (id, "limbo"));
    assert_eq!(bookie.metric("limbo"), 1.0);
    let member = quorum.look(|s| s.member(id).unwrap().clone());
    assert_eq!((member.state, member.limbo_count), (BookieState::Limbo, 1));
    let mut adds = Adds::to(&bookie).await;
    let mut missing = Vec::new();
    for &ledger in ledgers.iter().chain([&closed]) {
        match read_codes(&bookie, ledger, 0, 2).await[..] {
            [Code::Ok, Code::Ok, Code::Ok] => {}
            [Code::Unknown] => missing.push(ledger),
            ref other => panic!("limbo denies nothing: {other:?}"),
        }
        assert_eq!(
            adds.add(ledger, 3, b"late").await,
            Code::Fenced,
            "ledger {ledger} was fenced by the boot or is closed"
        );
        assert_eq!(fence(&bookie, ledger).await, (Code::Unknown, -1));
    }
    assert!((1..8).contains(&missing.len()), "both lanes held some: {missing:?}");
    assert_eq!(adds.add(untouched, 0, b"late").await, Code::Fenced);
    assert_eq!(read_codes(&bookie, untouched, 0, 0).await, [Code::Unknown]);

    // Owners close, the auditor copies back.
    for &ledger in &ledgers {
        broker.close(ledger, 2).await;
    }
    broker.close(untouched, -1).await;
    for &ledger in &missing {
        for e in 0..3 {
            assert_eq!(bookie.state().await, "limbo");
            assert_eq!(adds.recovery_add(ledger, e, b"x").await, Code::Ok);
        }
    }
    until("the end of limbo", async || (bookie.state().await == "rw").then_some(())).await;
    assert_eq!(quorum.look(|s| s.member(id).unwrap().state), BookieState::Rw);
    for &ledger in &missing {
        assert_eq!(
            read_codes(&bookie, ledger, 0, 3).await,
            [Code::Ok, Code::Ok, Code::Ok, Code::NoSuchEntry]
        );
        assert_eq!(fence(&bookie, ledger).await.0, Code::Ok);
    }
    bookie.stop().await;

    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!(bookie.state().await, "rw", "the next boot finds nothing missing");
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_of_the_disks_is_limbo() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let id = bookie.id();
    bookie.stop().await;
    let copy = disks.root().join("copy");
    copy_dir(&disks.dirs[0], &copy);
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    bookie.stop().await;
    // A snapshot of an earlier boot is put back.
    std::fs::remove_dir_all(&disks.dirs[0]).unwrap();
    std::fs::rename(&copy, &disks.dirs[0]).unwrap();
    let bookie = Bookie::try_start(config(&quorum, &disks)).await.unwrap();
    until("limbo in the quorum", async || {
        (quorum.look(|s| s.member(id).unwrap().limbo_count) == 1).then_some(())
    })
    .await;
    assert_eq!(bookie.id(), id);
    bookie.stop().await;
}

fn copy_dir(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let target = to.join(item.file_name());
        if item.file_type().unwrap().is_dir() {
            copy_dir(&item.path(), &target);
        } else {
            std::fs::copy(item.path(), target).unwrap();
        }
    }
}
