//! Read-only, by wish and by the disks.

use tidemill_proto::bookie::{Code, SetReadOnlyRequest};
use tidemill_types::BookieState;

use crate::{
    broker::Broker,
    calls::{Adds, fence, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

async fn set_read_only(bookie: &Bookie, read_only: bool) {
    let request = SetReadOnlyRequest { identity: Some(bookie.identity().await), read_only };
    let code = bookie.control.clone().set_read_only(request).await.unwrap().into_inner().code();
    assert_eq!(code, Code::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_refuses_plain_adds_and_the_quorum_hears_of_it() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    let state = |want| {
        let (quorum, id) = (quorum.clone(), bookie.id());
        async move {
            until("the state", async || (quorum.look(|s| s.member(id).unwrap().state) == want).then_some(()))
                .await;
        }
    };
    set_read_only(&bookie, true).await;
    assert_eq!(adds.add(ledger, 1, b"x").await, Code::ReadOnly);
    assert_eq!(adds.recovery_add(ledger, 1, b"x").await, Code::Ok, "recovery goes on");
    assert_eq!(read_codes(&bookie, ledger, 0, 1).await, [Code::Ok; 2]);
    assert_eq!(bookie.state().await, "ro");
    state(BookieState::Ro).await;
    until("health", async || (!bookie.sup.health().is_ready()).then_some(())).await;
    assert!(bookie.sup.health().is_alive(), "not ready is not dead");

    set_read_only(&bookie, false).await;
    state(BookieState::Rw).await;
    assert_eq!(adds.add(ledger, 2, b"x").await, Code::Ok);
    assert_eq!(fence(&bookie, ledger).await.0, Code::Ok);
    until("health", async || bookie.sup.health().is_ready().then_some(())).await;
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_starts_read_only() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    // Every disk is above these marks.
    let full = tidemill_bookie::BookieConfig {
        disk_read_write_percent: 0,
        disk_read_only_percent: 1,
        disk_recovery_stop_percent: 100,
        ..config(&quorum, &disks)
    };
    let used = tidemill_runtime::io::Disk::space(&tidemill_runtime::io::RealDisk, disks.root())
        .unwrap()
        .used_ratio();
    if used < 0.01 {
        // An almost empty disk cannot play a full one.
        return;
    }
    let bookie = Bookie::start(full).await;
    assert_eq!(bookie.state().await, "ro");
    assert_eq!(quorum.look(|s| s.member(bookie.id()).unwrap().state), BookieState::Ro);
    bookie.stop().await;
    // Room again: it goes back by itself.
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    until("rw", async || {
        (quorum.look(|s| s.member(bookie.id()).unwrap().state) == BookieState::Rw).then_some(())
    })
    .await;
    bookie.stop().await;
}
