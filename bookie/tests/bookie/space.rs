//! Read-only, by wish and by the disks.

use tidemill_proto::bookie::{Code, SetReadOnlyRequest};
use tidemill_runtime::io::{Disk, SimDisk};
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
async fn a_disk_that_fills_up_is_read_only_until_there_is_room() {
    let (quorum, disks) = (Quorum::start().await, Disks::simulated());
    let disk = SimDisk::new(1, 10 << 30);
    disk.create("/others".as_ref(), 5 << 30).unwrap();
    let bookie = Bookie::start_on(&disk, config(&quorum, &disks)).await;
    let id = bookie.id();
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[id]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    let state = async |want| {
        let same = async || (quorum.look(|s| s.member(id).unwrap().state) == want).then_some(());
        until("the state", same).await;
    };
    // Used as it is now, the disk is 96 % full when it is this large.
    let used = (10 << 30) - disk.space(&disks.dirs[0]).unwrap().free;
    disk.set_total(used * 100 / 96);
    let mut next = 1;
    until("read-only", async || {
        next += 1;
        (adds.add(ledger, next, b"x").await == Code::ReadOnly).then_some(())
    })
    .await;
    assert_eq!(adds.recovery_add(ledger, next, b"x").await, Code::Ok, "room is kept for recovery");
    state(BookieState::Ro).await;
    bookie.stop().await;

    let bookie = Bookie::start_on(&disk, config(&quorum, &disks)).await;
    assert_eq!(bookie.state().await, "ro", "it starts as what its disk says");
    disk.set_total(10 << 30);
    state(BookieState::Rw).await;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, next + 1, b"x").await, Code::Ok);
    bookie.stop().await;
}
