//! First touch (R27).

use tidemill_proto::bookie::Code;

use crate::{
    broker::Broker,
    calls::{Adds, entry, fence, held},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

#[tokio::test(flavor = "multi_thread")]
async fn below_the_mark_the_quorum_decides() {
    let (quorum, disks, others) = (Quorum::start().await, Disks::new(1), Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let other =
        Bookie::start(tidemill_bookie::BookieConfig { name: "bookie-1".into(), ..config(&quorum, &others) })
            .await;
    let broker = Broker::start(&quorum).await;
    let (owned, doomed) = (broker.topic("t").await, broker.topic("doomed").await);
    let mine = broker.ledger(owned, &[bookie.id()]).await.id;
    let foreign = broker.ledger(owned, &[other.id()]).await.id;
    let closed = broker.ledger(owned, &[bookie.id()]).await.id;
    let removed = broker.ledger(doomed, &[bookie.id()]).await.id;
    broker.close(closed, -1).await;
    broker.delete(doomed.0.topic).await;
    // A restart raises the mark above all of them.
    bookie.stop().await;
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let mut adds = Adds::to(&bookie).await;

    let before = quorum.ledger_reads();
    let ids = adds.send((0..50).map(|i| (entry(mine, i, b"x"), false)).collect()).await;
    assert!(adds.answers(&ids).await.iter().all(|c| *c == Code::Ok));
    assert_eq!(quorum.ledger_reads() - before, 1, "one read for all who wait");
    assert_eq!(adds.add(mine, 50, b"x").await, Code::Ok);
    assert_eq!(quorum.ledger_reads() - before, 1, "the verdict is kept");

    for ledger in [foreign, closed, removed] {
        assert_eq!(adds.add(ledger, 0, b"x").await, Code::Fenced, "{ledger}");
    }
    assert_eq!(held(&bookie).await, [mine.0], "a refusal leaves nothing behind");
    assert_eq!(bookie.metric("first_touches_refused_total"), 3.0);

    let after = quorum.ledger_reads();
    let fresh = broker.ledger(owned, &[bookie.id()]).await.id;
    assert_eq!(adds.add(fresh, 0, b"x").await, Code::Ok);
    assert_eq!(quorum.ledger_reads(), after, "above the mark nobody is asked");
    bookie.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_quorum_a_first_touch_is_unknown() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let (a, b) =
        (broker.ledger(owned, &[bookie.id()]).await.id, broker.ledger(owned, &[bookie.id()]).await.id);
    assert_eq!(Adds::to(&bookie).await.add(a, 0, b"x").await, Code::Ok);
    bookie.stop().await;
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let mut adds = Adds::to(&bookie).await;
    quorum.reachable(false);
    assert_eq!(adds.add(b, 0, b"x").await, Code::Unknown);
    assert_eq!(adds.add(a, 1, b"x").await, Code::Ok, "open ledgers go on without the quorum");
    quorum.reachable(true);
    until("the quorum's word", async || (adds.add(b, 0, b"x").await == Code::Ok).then_some(())).await;
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_overtakes_an_add_that_waits_for_the_quorum() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    bookie.stop().await;
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let mut adds = Adds::to(&bookie).await;
    let before = quorum.ledger_reads();
    quorum.hold_ledger_reads(true);
    let ids = adds.send(vec![(entry(ledger, 0, b"x"), false)]).await;
    until("the read", async || (quorum.ledger_reads() > before).then_some(())).await;
    assert_eq!(fence(&bookie, ledger).await, (Code::Ok, -1));
    quorum.hold_ledger_reads(false);
    // The quorum says OPEN, but the bookie looks again (R13).
    assert_ne!(adds.answers(&ids).await, [Code::Ok]);
    assert_eq!(adds.add(ledger, 0, b"x").await, Code::Fenced);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn past_its_limit_a_connection_is_told_to_come_again() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    bookie.stop().await;
    let limits = tidemill_bookie::BookieConfig { connection_add_bytes: 1 << 20, ..config(&quorum, &disks) };
    let bookie = Bookie::start(limits).await;
    let mut adds = Adds::to(&bookie).await;
    // Kept on its way by a quorum that takes its time.
    quorum.hold_ledger_reads(true);
    let before = quorum.ledger_reads();
    let first = adds.send(vec![(entry(ledger, 0, &[1; 700_000]), false)]).await;
    until("the read", async || (quorum.ledger_reads() > before).then_some(())).await;
    let second = adds.send(vec![(entry(ledger, 1, &[1; 700_000]), false)]).await;
    assert_eq!(adds.answers(&second).await, [Code::Overloaded], "at once, while the first one waits");
    quorum.hold_ledger_reads(false);
    adds.answers(&first).await;
    until("room", async || (adds.add(ledger, 1, &[1; 700_000]).await == Code::Ok).then_some(())).await;
    assert!(bookie.metric("overloaded_total") >= 1.0);
    bookie.stop().await;
}
