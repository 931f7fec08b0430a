//! What the ledger client needs from the metadata quorum. The broker implements it over its meta client.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use tidemill_types::{
    BookieId, BookieState, Endpoint, Incarnation, LedgerId, LedgerRecord, Member, MemberRole, Version,
    meta::{Command, Rejection, Reply},
};
use tokio::sync::watch;

/// Why the quorum gave no answer. None of these is a verdict about a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// The command may or may not have been applied (ledger protocol 1.8): it has to be settled, never guessed.
    #[error("the outcome of the metadata command is unknown")]
    OutcomeUnknown,
    /// Known not to have been sent, or a read without an answer.
    #[error("the metadata quorum does not answer: {0}")]
    Unavailable(String),
    /// The session that this process sends under is gone.
    #[error("the session with the metadata quorum is not live")]
    SessionExpired,
}

/// Access to the records of ledgers and to the table of bookies.
///
/// # Contract
/// - `ledger` MUST be a linearizable read that began after the call.
/// - `propose` MUST carry one request id for one call and send it again by itself until it has an answer or gives up
///   with [`MetaError::OutcomeUnknown`] (R9). It MUST answer [`MetaError::Unavailable`] only when nothing was sent.
/// - `bookies` SHOULD follow the members watch; a stale table costs time, never safety (R26).
pub trait LedgerMeta: Send + Sync + 'static {
    /// The bookies as last heard; changes wake the receiver.
    fn bookies(&self) -> watch::Receiver<Arc<BookieTable>>;

    /// The ledger's record; `None` when it does not exist (any more).
    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, MetaError>>;

    /// Sends a command and waits for its answer.
    fn propose(&self, command: Command) -> BoxFuture<'_, Result<Result<Reply, Rejection>, MetaError>>;

    /// Sends a `StartRecovery`: the ledger's record after it, or why not. An implementation MAY put those of several ledgers into
    /// one command (at most [`tidemill_types::meta::MAX_BATCH`]); the contract of `propose` holds for each of them.
    fn start_recovery(
        &self,
        ledger: LedgerId,
        version: Version,
    ) -> BoxFuture<'_, Result<Result<LedgerRecord, Rejection>, MetaError>> {
        Box::pin(async move {
            match self.propose(Command::StartRecovery { ledger, version }).await? {
                Ok(Reply::Ledger(record)) => Ok(Ok(record)),
                // Applied, with an answer that says nothing: the record has to be read.
                Ok(_) => Err(MetaError::OutcomeUnknown),
                Err(r) => Ok(Err(r)),
            }
        })
    }
}

/// One bookie as the quorum knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookieInfo {
    /// Its uuid.
    pub id: BookieId,
    /// Its process; a stream that reaches another one is refused (R26).
    pub incarnation: Incarnation,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Failure zone; empty when unknown.
    pub zone: String,
    /// State of the uuid.
    pub state: BookieState,
    /// How often it booted into limbo (R8).
    pub limbo_count: u32,
    /// It announced a restart (R28).
    pub restarting: bool,
    /// It has a live session.
    pub live: bool,
    /// Free bytes, coarse.
    pub free_bytes: u64,
}

/// The bookies of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookieTable {
    bookies: BTreeMap<BookieId, BookieInfo>,
}

impl BookieTable {
    /// The table of these members; those that are not bookies are left out.
    pub fn from_members<'a>(members: impl IntoIterator<Item = &'a Member>) -> Self {
        let bookies = members
            .into_iter()
            .filter(|m| m.role == MemberRole::Bookie)
            .map(|m| BookieInfo {
                id: m.id,
                incarnation: m.incarnation,
                endpoint: m.endpoint.clone(),
                zone: m.zone.clone(),
                state: m.state,
                limbo_count: m.limbo_count,
                restarting: m.restarting,
                live: m.session.is_some(),
                free_bytes: m.free_bytes,
            })
            .map(|b| (b.id, b))
            .collect();
        Self { bookies }
    }

    /// A bookie.
    #[must_use]
    pub fn get(&self, id: BookieId) -> Option<&BookieInfo> {
        self.bookies.get(&id)
    }

    /// All bookies in order of uuid.
    pub fn iter(&self) -> impl Iterator<Item = &BookieInfo> {
        self.bookies.values()
    }

    /// Bookies that may take the place of others in `ensemble`, best first: `rw` with a live session, not in the
    /// ensemble, in a zone that the members that stay do not use, then with more free bytes.
    #[must_use]
    pub fn spares(&self, ensemble: &[BookieId], failed: &[BookieId]) -> Vec<BookieInfo> {
        let zones: Vec<&str> = ensemble
            .iter()
            .filter(|b| !failed.contains(b))
            .filter_map(|b| self.get(*b))
            .map(|b| b.zone.as_str())
            .collect();
        let mut out: Vec<BookieInfo> = self
            .iter()
            .filter(|b| b.state == BookieState::Rw && b.live && !ensemble.contains(&b.id))
            .cloned()
            .collect();
        out.sort_by_key(|b| (zones.contains(&b.zone.as_str()), std::cmp::Reverse(b.free_bytes), b.id));
        out
    }
}

impl FromIterator<BookieInfo> for BookieTable {
    fn from_iter<T: IntoIterator<Item = BookieInfo>>(iter: T) -> Self {
        Self { bookies: iter.into_iter().map(|b| (b.id, b)).collect() }
    }
}
