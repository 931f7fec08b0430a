//! The ledger client over gRPC on loopback: real bookies on real disks, the quorum's own state machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    dead_code,
    unreachable_pub,
    reason = "a test; the bookie's test harness has more than is used here"
)]

#[path = "../../../bookie/tests/bookie/broker.rs"]
mod broker;
mod meta;
#[path = "../../../bookie/tests/bookie/quorum.rs"]
mod quorum;
#[path = "../../../bookie/tests/bookie/shelf.rs"]
mod shelf;
#[path = "../../../bookie/tests/bookie/wait.rs"]
mod wait;

use std::time::Duration;

use bytes::Bytes;
use tidemill_ledger::{LedgerClient, LedgerConfig, LedgerMeta, LedgerWriter, Recovered, WriterEvent};
use tidemill_types::{
    BookieId, EntryId, Epoch, LedgerRecord, LedgerState, PartitionId,
    meta::{Command, CreateLedger},
};

use self::{
    broker::Broker,
    meta::Meta,
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::{soon, until},
};

struct World {
    quorum: Quorum,
    disks: Vec<Disks>,
    bookies: Vec<Option<Bookie>>,
    broker: std::sync::Arc<Broker>,
    home: (PartitionId, Epoch),
    meta: std::sync::Arc<Meta>,
    client: LedgerClient,
}

impl World {
    async fn new(bookies: usize) -> Self {
        let quorum = Quorum::start().await;
        let disks: Vec<Disks> = (0..bookies).map(|_| Disks::new(1)).collect();
        let mut running = Vec::new();
        for d in &disks {
            running.push(Some(Bookie::start(config(&quorum, d)).await));
        }
        let broker = std::sync::Arc::new(Broker::start(&quorum).await);
        let home = broker.topic("t").await;
        let meta = Meta::new(quorum.clone(), broker.clone());
        let mut c = LedgerConfig::new(quorum.cluster);
        c.ensemble_change_delay = Duration::from_millis(500);
        let client = LedgerClient::new(meta.clone(), c);
        Self { quorum, disks, bookies: running, broker, home, meta, client }
    }

    fn id(&self, n: usize) -> BookieId {
        self.bookies[n].as_ref().unwrap().id()
    }

    async fn create(&self, members: &[usize]) -> LedgerRecord {
        let ensemble = members.iter().map(|n| self.id(*n)).collect();
        let (partition, epoch) = self.home;
        let ledger = CreateLedger { partition, epoch, ensemble, ack_quorum: 2 };
        self.broker.session.create_ledger(ledger).await.unwrap().unwrap()
    }

    async fn stop(&mut self, n: usize) {
        self.bookies[n].take().unwrap().stop().await;
    }

    async fn start(&mut self, n: usize) {
        self.bookies[n] = Some(Bookie::start(config(&self.quorum, &self.disks[n])).await);
        self.meta.refresh();
    }
}

async fn append(w: &LedgerWriter, n: usize) {
    let handles: Vec<_> =
        (0..n).map(|i| w.append(b"envelope", &[Bytes::from(vec![i as u8; 1000])]).unwrap()).collect();
    for h in handles {
        soon("an ack", h).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn written_closed_and_read_back() {
    let w = World::new(3).await;
    let writer = w.client.open_writer(w.create(&[0, 1, 2]).await);
    append(&writer, 500).await;
    writer.barrier(b"barrier").await.unwrap();
    let ticket = writer.begin_close().await.unwrap();
    let epoch = Some(w.home.1);
    soon("the close", ticket.commit(0, |close| Command::Close { close, epoch })).await.unwrap();
    let record = w.meta.ledger(writer.ledger()).await.unwrap().unwrap();
    assert_eq!((record.state, record.last_entry), (LedgerState::Closed, Some(EntryId(500))));
    let reader = w.client.reader(record);
    let mut at = EntryId(0);
    while at < EntryId(500) {
        for e in soon("a read", reader.read_range(at, EntryId(499), 100_000)).await.unwrap() {
            assert_eq!(e.header().entry, at);
            assert_eq!(e.body(), vec![(at.0 % 256) as u8; 1000]);
            at = at.next();
        }
    }
    assert_eq!(reader.read_head(EntryId(500)).await.unwrap().envelope, "barrier");
    // Closed already: somebody else's end is taken.
    let Recovered::Closed(r) = w.client.recover(writer.ledger()).await.unwrap() else { panic!("open") };
    assert_eq!(r.last_entry, Some(EntryId(500)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bookie_restarts_and_gets_what_it_missed() {
    let mut w = World::new(3).await;
    let writer = w.client.open_writer(w.create(&[0, 1, 2]).await);
    let mut events = writer.events();
    append(&writer, 50).await;
    let id = w.id(2);
    w.stop(2).await;
    append(&writer, 50).await;
    assert_eq!(soon("degraded", events.recv()).await, Some(WriterEvent::Degraded(id)));
    w.start(2).await;
    assert_eq!(soon("restored", events.recv()).await, Some(WriterEvent::Restored(id)));
    append(&writer, 10).await;
    assert_eq!(writer.record().fragments.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_bookie_is_replaced_by_a_spare() {
    let mut w = World::new(4).await;
    let writer = w.client.open_writer(w.create(&[0, 1, 2]).await);
    append(&writer, 50).await;
    let spare = w.id(3);
    w.stop(1).await;
    append(&writer, 50).await;
    until("the change", async || (writer.record().fragments.len() == 2).then_some(())).await;
    assert_eq!(writer.record().fragments[1].ensemble[1], spare);
    append(&writer, 50).await;
    assert_eq!(writer.record(), w.meta.ledger(writer.ledger()).await.unwrap().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recovery_fences_the_writer_and_keeps_what_was_acknowledged() {
    let w = World::new(3).await;
    let writer = w.client.open_writer(w.create(&[0, 1, 2]).await);
    let mut events = writer.events();
    append(&writer, 200).await;
    let other = LedgerClient::new(w.meta.clone(), LedgerConfig::new(w.quorum.cluster));
    let Recovered::Decided(end) = soon("recovery", other.recover(writer.ledger())).await.unwrap() else {
        panic!("closed")
    };
    assert_eq!(end.close.last_entry, EntryId(199));
    assert_eq!(end.close.length, 200 * 1008);
    let refused = writer.append(b"late", &[]).unwrap();
    assert_eq!(soon("fenced", events.recv()).await, Some(WriterEvent::Fenced));
    let close = Command::Close { close: end.close, epoch: None };
    w.meta.propose(close).await.unwrap().unwrap();
    let rest = writer.resolve(EntryId(199));
    assert_eq!(rest.len(), 1);
    assert_eq!(refused.await, Err(tidemill_ledger::AppendError::NotWritten));
    assert!(writer.barrier(b"b").await.is_err());
}
