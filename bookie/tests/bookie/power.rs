//! Power cuts and disks that fail (R17).

use std::io::ErrorKind;

use tidemill_proto::bookie::Code;
use tidemill_runtime::io::{CrashPlan, Fault, OpKind, SimDisk};

use crate::{
    broker::Broker,
    calls::{Adds, entry, fence, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::soon,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_power_cut_and_is_no_limbo() {
    for (seed, plan) in
        [(1, CrashPlan::LoseAll), (2, CrashPlan::KeepAll), (3, CrashPlan::Random), (4, CrashPlan::Torn)]
    {
        let (quorum, disks) = (Quorum::start().await, Disks::simulated());
        let disk = SimDisk::new(seed, 1 << 30);
        let bookie = Bookie::start_on(&disk, config(&quorum, &disks)).await;
        let id = bookie.id();
        let broker = Broker::start(&quorum).await;
        let owned = broker.topic("t").await;
        let (open, fenced) = (broker.ledger(owned, &[id]).await.id, broker.ledger(owned, &[id]).await.id);
        let mut adds = Adds::to(&bookie).await;
        for e in 0..20 {
            assert_eq!(adds.add(open, e, &[1; 3000]).await, Code::Ok);
        }
        assert_eq!(adds.add(fenced, 0, b"x").await, Code::Ok);
        assert_eq!(fence(&bookie, fenced).await, (Code::Ok, -1));
        // More is on its way when the power goes.
        let late = adds.send((20..60).map(|e| (entry(open, e, &[1; 3000]), false)).collect()).await;
        // From here on the quorum hears nothing of this process, as if it were dead.
        quorum.reachable(false);
        let at_the_cut = disk.fork(seed);
        at_the_cut.crash(plan);
        adds.answers(&late).await;
        bookie.stop().await;
        quorum.expire(id);
        quorum.reachable(true);

        let bookie = Bookie::start_on(&at_the_cut, config(&quorum, &disks)).await;
        assert_eq!((bookie.id(), bookie.state().await.as_str()), (id, "rw"), "{plan:?}");
        assert_eq!(read_codes(&bookie, open, 0, 19).await, [Code::Ok; 20]);
        let mut adds = Adds::to(&bookie).await;
        assert_eq!(adds.add(fenced, 1, b"x").await, Code::Fenced, "the fence was durable before its answer");
        assert_eq!(adds.add(open, 60, b"x").await, Code::Ok);
        bookie.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_ends_the_process_and_nothing_of_the_group_is_acknowledged() {
    let (quorum, disks) = (Quorum::start().await, Disks::simulated());
    let disk = SimDisk::new(1, 1 << 30);
    let bookie = Bookie::start_on(&disk, config(&quorum, &disks)).await;
    let id = bookie.id();
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[id]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"kept").await, Code::Ok);
    disk.inject(Fault { kind: OpKind::Sync, after: 0, error: ErrorKind::Other });
    adds.send((1..20).map(|e| (entry(ledger, e, b"lost"), false)).collect()).await;
    let ended = tokio::spawn(bookie.fatal());
    // The stream ends with an error or in peace, but never with an ack.
    let rest = soon("the end of the stream", adds.rest_or_error()).await;
    assert!(rest.iter().all(|(_, code)| *code != Code::Ok), "{rest:?}");
    let why = soon("the end", ended).await.unwrap();
    assert!(why.contains("failed"), "{why}");

    disk.crash(CrashPlan::LoseAll);
    quorum.look(|s| s.member(id).unwrap().session).is_some().then(|| quorum.expire(id));
    let bookie = Bookie::start_on(&disk, config(&quorum, &disks)).await;
    assert_eq!((bookie.id(), bookie.state().await.as_str()), (id, "rw"));
    assert_eq!(read_codes(&bookie, ledger, 0, 1).await, [Code::Ok, Code::NoSuchEntry]);
    bookie.stop().await;
}
