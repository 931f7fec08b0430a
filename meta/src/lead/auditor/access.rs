//! Records and commands for recoveries that the auditor runs by itself.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tidemill_ledger::{BookieTable, LedgerMeta, MetaError};
use tidemill_types::{
    LedgerId, LedgerRecord, RequestId, SessionId,
    meta::{Command, Rejection, Reply, Request},
};
use tokio::sync::watch;

use crate::node::{Node, Proposed};

/// The quorum as its own leader's ledger client sees it, for one term.
pub(super) struct Access {
    pub(super) node: Arc<Node>,
    pub(super) term: u64,
    pub(super) bookies: watch::Receiver<Arc<BookieTable>>,
}

impl Access {
    async fn record(&self, ledger: LedgerId) -> Result<Option<LedgerRecord>, MetaError> {
        match self.node.check.wait().await {
            Ok(term) if term == self.term => Ok(self.node.machine.with(|s| s.ledger(ledger).cloned())),
            Ok(_) => Err(MetaError::Unavailable("the term is over".to_owned())),
            Err(e) => Err(MetaError::Unavailable(format!("{e:?}"))),
        }
    }

    /// Proposes a command of the leader's own, for its answer.
    pub(super) async fn command(&self, command: Command) -> Result<Result<Reply, Rejection>, MetaError> {
        let request = Request { session: SessionId::NONE, request: RequestId(0), command };
        let bytes = tidemill_metadata::encode_request(&request)
            .map_err(|e| MetaError::Unavailable(format!("a command cannot be encoded: {e}")))?;
        match self.node.propose(bytes.into(), Some(self.term)).await {
            Proposed::Applied(_, result) => Ok(result),
            Proposed::Elsewhere => Err(MetaError::Unavailable("the term is over".to_owned())),
            Proposed::Refused(why) => Err(MetaError::Unavailable(why)),
            Proposed::Unknown(_) => Err(MetaError::OutcomeUnknown),
        }
    }
}

impl LedgerMeta for Access {
    fn bookies(&self) -> watch::Receiver<Arc<BookieTable>> {
        self.bookies.clone()
    }

    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, MetaError>> {
        self.record(ledger).boxed()
    }

    fn propose(&self, command: Command) -> BoxFuture<'_, Result<Result<Reply, Rejection>, MetaError>> {
        self.command(command).boxed()
    }
}
