//! Records, commands and the table of bookies.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tidemill_ledger::{BookieTable, LedgerMeta, MetaError};
use tidemill_meta_client::{MetaClient, MetaMirror, ViewEvent};
use tidemill_partition_log::PartitionMeta;
use tidemill_runtime::Supervisor;
use tidemill_types::{
    LedgerId, LedgerRecord, PartitionId, Version,
    meta::{Change, Command, PartitionView, RecoveryStart, Rejection, Reply, TakeOver},
};
use tokio::sync::watch;

use super::{
    batch::{Batches, Recoveries, TakeOvers},
    of_command, of_read,
};

/// The quorum as ledgers and partition logs see it.
#[derive(Debug)]
pub(crate) struct QuorumAccess {
    client: MetaClient,
    bookies: watch::Receiver<Arc<BookieTable>>,
    take_overs: Batches<TakeOvers>,
    recoveries: Batches<Recoveries>,
}

impl QuorumAccess {
    /// Starts the tasks that follow the members and send take-overs and starts of recoveries in batches.
    pub(crate) fn start(client: &MetaClient, sup: &Supervisor) -> Arc<Self> {
        let mirror = client.view();
        let (tx, bookies) = watch::channel(table(&mirror));
        sup.spawn_until_stop("bookie table", follow(mirror, tx));
        let take_overs = Batches::start(client.clone(), sup);
        let recoveries = Batches::start(client.clone(), sup);
        Arc::new(Self { client: client.clone(), bookies, take_overs, recoveries })
    }
}

fn table(mirror: &MetaMirror) -> Arc<BookieTable> {
    let t = mirror.table();
    Arc::new(BookieTable::from_members(t.members().map(AsRef::as_ref)))
}

/// Keeps the table of bookies: a new one only when a member changed.
async fn follow(mirror: MetaMirror, tx: watch::Sender<Arc<BookieTable>>) {
    let mut events = mirror.events();
    loop {
        let new = table(&mirror);
        tx.send_if_modified(|old| {
            let news = **old != *new;
            *old = new;
            news
        });
        loop {
            match events.next().await {
                None => return,
                Some(ViewEvent::Reload) => break,
                Some(ViewEvent::Changes(w)) if w.changes.iter().any(is_member) => break,
                Some(ViewEvent::Changes(_)) => {}
            }
        }
    }
}

fn is_member(c: &Change) -> bool {
    matches!(c, Change::Member(_) | Change::MemberRemoved(_))
}

impl LedgerMeta for QuorumAccess {
    fn bookies(&self) -> watch::Receiver<Arc<BookieTable>> {
        self.bookies.clone()
    }

    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, MetaError>> {
        async move { self.client.ledger(ledger).await.map_err(of_read) }.boxed()
    }

    fn propose(&self, command: Command) -> BoxFuture<'_, Result<Result<Reply, Rejection>, MetaError>> {
        async move { self.client.propose(command).await.map_err(of_command) }.boxed()
    }

    fn start_recovery(
        &self,
        ledger: LedgerId,
        version: Version,
    ) -> BoxFuture<'_, Result<Result<LedgerRecord, Rejection>, MetaError>> {
        self.recoveries.send(RecoveryStart { ledger, version }).boxed()
    }
}

impl PartitionMeta for QuorumAccess {
    fn partition(&self, partition: PartitionId) -> BoxFuture<'_, Result<Option<PartitionView>, MetaError>> {
        async move { self.client.partition(partition).await.map_err(of_read) }.boxed()
    }

    fn quorum_time_ms(&self) -> Option<i64> {
        let time = self.client.session()?.quorum_time()?;
        Some(time.at(self.client.clock().boottime()))
    }

    fn confirmed_time_ms(&self) -> Option<i64> {
        self.client.session()?.confirmed_time_ms()
    }

    fn take_over(&self, item: TakeOver) -> BoxFuture<'_, Result<Result<(), Rejection>, MetaError>> {
        self.take_overs.send(item).boxed()
    }
}
