//! Garbage collection (R20).

use tidemill_proto::bookie::Code;
use tidemill_types::{EntryId, meta::EnsembleChange};

use crate::{
    broker::Broker,
    calls::{Adds, held},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

/// Waits for so many more of a counter.
async fn more(bookie: &Bookie, counter: &str, n: f64) {
    let start = bookie.metric(counter);
    until(counter, async || (bookie.metric(counter) >= start + n).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_topic_is_collected_and_its_ledger_stays_closed_to_a_zombie() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let (keep, drop) = (broker.topic("keep").await, broker.topic("drop").await);
    let (kept, gone) =
        (broker.ledger(keep, &[bookie.id()]).await.id, broker.ledger(drop, &[bookie.id()]).await.id);
    let mut adds = Adds::to(&bookie).await;
    for ledger in [kept, gone] {
        assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    }
    more(&bookie, "gc_passes_total", 3.0).await;
    assert_eq!(held(&bookie).await, [kept.0, gone.0]);

    let (passes, reads) = (bookie.metric("gc_passes_total"), quorum.ledger_reads());
    broker.delete(drop.0.topic).await;
    until("collection", async || (held(&bookie).await == [kept.0]).then_some(())).await;
    // The pass that saw it gone first has ended; the one that deletes may not have been counted yet.
    assert!(bookie.metric("gc_passes_total") > passes, "two passes are needed");
    assert!(quorum.ledger_reads() >= reads + 3, "one read in the first pass, two in the second");
    assert_eq!(adds.add(gone, 1, b"zombie").await, Code::Fenced, "the mark rose above it");
    assert_eq!(adds.add(kept, 1, b"x").await, Code::Ok);
    bookie.stop().await;
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!(held(&bookie).await, [kept.0], "the delete is durable");
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unproven_empty_or_a_failed_listing_deletes_nothing() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let (keep, drop) = (broker.topic("keep").await, broker.topic("drop").await);
    let (kept, gone) =
        (broker.ledger(keep, &[bookie.id()]).await.id, broker.ledger(drop, &[bookie.id()]).await.id);
    let mut adds = Adds::to(&bookie).await;
    for ledger in [kept, gone] {
        assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    }
    quorum.lists_nothing(true);
    quorum.hides_members(true);
    broker.delete(drop.0.topic).await;
    more(&bookie, "gc_stopped_total", 6.0).await;
    assert_eq!(held(&bookie).await, [kept.0, gone.0]);

    quorum.reachable(false);
    quorum.hides_members(false);
    quorum.lists_nothing(false);
    more(&bookie, "gc_stopped_total", 2.0).await;
    assert_eq!(held(&bookie).await, [kept.0, gone.0]);

    quorum.reachable(true);
    until("collection", async || (held(&bookie).await == [kept.0]).then_some(())).await;
    bookie.stop().await;
}

/// The listing is wrong and looks proven: still, nothing goes that the quorum has a record of.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_empty_listing_deletes_only_what_is_gone() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let (keep, drop) = (broker.topic("keep").await, broker.topic("drop").await);
    let (kept, gone) =
        (broker.ledger(keep, &[bookie.id()]).await.id, broker.ledger(drop, &[bookie.id()]).await.id);
    let mut adds = Adds::to(&bookie).await;
    for ledger in [kept, gone] {
        assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    }
    quorum.lists_nothing(true);
    broker.delete(drop.0.topic).await;
    until("collection", async || (held(&bookie).await == [kept.0]).then_some(())).await;
    more(&bookie, "gc_passes_total", 4.0).await;
    assert_eq!(held(&bookie).await, [kept.0]);
    bookie.stop().await;
}

/// The very last topic is deleted: the empty listing is proven, and the bookie empties itself.
#[tokio::test(flavor = "multi_thread")]
async fn when_everything_was_deleted_everything_is_collected() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let (first, second) = (broker.topic("first").await, broker.topic("second").await);
    let ledgers =
        [broker.ledger(first, &[bookie.id()]).await.id, broker.ledger(second, &[bookie.id()]).await.id];
    let mut adds = Adds::to(&bookie).await;
    for ledger in ledgers {
        assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    }
    let passes = bookie.metric("gc_passes_total");
    broker.delete(first.0.topic).await;
    broker.delete(second.0.topic).await;
    until("collection", async || held(&bookie).await.is_empty().then_some(())).await;
    assert!(
        bookie.metric("gc_passes_total") >= passes + 2.0,
        "three passes are needed, the last one is counted later"
    );
    for ledger in ledgers {
        assert_eq!(adds.add(ledger, 1, b"zombie").await, Code::Fenced, "the mark rose above it");
    }
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_moved_away_goes_only_when_it_is_closed() {
    let (quorum, disks, others) = (Quorum::start().await, Disks::new(1), Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let other =
        Bookie::start(tidemill_bookie::BookieConfig { name: "bookie-1".into(), ..config(&quorum, &others) })
            .await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let kept = broker.ledger(owned, &[bookie.id()]).await.id;
    let moved = broker.ledger(owned, &[bookie.id()]).await;
    let mut adds = Adds::to(&bookie).await;
    for ledger in [kept, moved.id] {
        assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    }
    let change = EnsembleChange {
        ledger: moved.id,
        version: moved.version,
        first_entry: EntryId(0),
        ensemble: vec![other.id()],
        replaced: vec![(0, bookie.id())],
        under: vec![],
    };
    broker.session.change_ensemble(change).await.unwrap().unwrap();
    more(&bookie, "gc_passes_total", 4.0).await;
    assert_eq!(held(&bookie).await, [kept.0, moved.id.0], "OPEN is never collected (M18)");

    broker.close(moved.id, 0).await;
    until("collection", async || (held(&bookie).await == [kept.0]).then_some(())).await;
    bookie.stop().await;
    other.stop().await;
}
