//! What the ledger client needs of the quorum, over a broker's session.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tidemill_ledger::{BookieTable, LedgerMeta, MetaError};
use tidemill_types::{
    LedgerId, LedgerRecord,
    meta::{Answer, Command, Query, Rejection, Reply},
};
use tokio::sync::watch;

use crate::{broker::Broker, quorum::Quorum};

pub(crate) struct Meta {
    quorum: Quorum,
    broker: Arc<Broker>,
    table: watch::Sender<Arc<BookieTable>>,
}

impl Meta {
    pub(crate) fn new(quorum: Quorum, broker: Arc<Broker>) -> Arc<Self> {
        let m = Arc::new(Self { quorum, broker, table: watch::Sender::default() });
        m.refresh();
        m
    }

    pub(crate) fn refresh(&self) {
        let Answer::Members(members) = self.quorum.look(|s| s.query(&Query::Members)) else { return };
        self.table.send_replace(Arc::new(BookieTable::from_members(&members)));
    }
}

impl LedgerMeta for Meta {
    fn bookies(&self) -> watch::Receiver<Arc<BookieTable>> {
        self.table.subscribe()
    }

    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, MetaError>> {
        async move { Ok(self.quorum.look(|s| s.ledger(ledger).cloned())) }.boxed()
    }

    fn propose(&self, command: Command) -> BoxFuture<'_, Result<Result<Reply, Rejection>, MetaError>> {
        async move { self.broker.session.propose(command).await.map_err(|_| MetaError::OutcomeUnknown) }
            .boxed()
    }
}
