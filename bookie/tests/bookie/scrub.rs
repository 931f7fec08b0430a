//! Scrubbing of data at rest.

use std::{fs, path::PathBuf};

use tidemill_bookie::BookieConfig;
use tidemill_proto::bookie::Code;

use crate::{
    broker::Broker,
    calls::{Adds, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

const MARK: &[u8] = b"a payload that can be found again on the disk";

/// The one segment that has the mark, and where.
fn find(disks: &Disks) -> (PathBuf, usize) {
    let segments = fs::read_dir(&disks.dirs[0]).unwrap().map(|i| i.unwrap().path());
    segments
        .filter(|p| p.extension().is_some_and(|e| e == "seg"))
        .find_map(|p| {
            let bytes = fs::read(&p).unwrap();
            bytes.windows(MARK.len()).position(|w| w == MARK).map(|at| (p, at))
        })
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_at_rest_is_counted_and_a_repair_is_recorded() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let soon = BookieConfig { scrub_interval_ms: 200, ..config(&quorum, &disks) };
    let bookie = Bookie::start(soon.clone()).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    assert_eq!(adds.add(ledger, 1, MARK).await, Code::Ok);
    until("a scrub", async || (bookie.metric("scrub_passes_total") > 0.0).then_some(())).await;
    assert_eq!(bookie.metric("damaged_entries"), 0.0);
    bookie.stop().await;

    let (path, at) = find(&disks);
    let mut bytes = fs::read(&path).unwrap();
    bytes[at + 7] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    let bookie = Bookie::start(soon).await;
    until("the damage", async || (bookie.metric("damaged_entries") == 1.0).then_some(())).await;
    assert_eq!(bookie.metric("limbo"), 0.0, "damage of an entry is no loss of the bookie");
    assert_eq!(read_codes(&bookie, ledger, 0, 1).await, [Code::Ok, Code::Corrupt]);
    let repair = || quorum.look(|s| s.ledger(ledger).unwrap().repair.clone());
    assert_eq!(repair(), None, "its writer may still be at work");

    broker.close(ledger, 1).await;
    until("a repair", async || repair().filter(|r| r.target == bookie.id() && r.worker == bookie.id())).await;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.recovery_add(ledger, 1, MARK).await, Code::Ok, "a good copy replaces the damaged one");
    assert_eq!(read_codes(&bookie, ledger, 0, 1).await, [Code::Ok; 2]);
    until("no damage", async || (bookie.metric("damaged_entries") == 0.0).then_some(())).await;
    bookie.stop().await;
}
