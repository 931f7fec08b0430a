//! What the parts of one member share.

use std::{path::PathBuf, sync::Arc, time::Duration};

use openraft::{
    async_runtime::WatchReceiver,
    errors::{ClientWriteError, Fatal, RaftError},
    impls::ProgressResponder,
    raft::ClientWriteResponse,
};
use tidemill_runtime::{Clock, Supervisor, io::Disk};
use tidemill_types::{
    MemberId, RequestId, Revision, SessionId,
    meta::{Command, Rejection, Reply, Request},
};
use tokio::sync::Semaphore;

use crate::{
    check::LeaderCheck,
    config::MetaConfig,
    counters::Counters,
    lead::Duties,
    log::LogStore,
    machine::{Machine, MachineStore},
    network::AddressBook,
    service::ClusterCell,
    types::{NodeId, Outcome, Proposal, Raft, TypeConfig},
};

/// A proposal that is not committed within this time has an unknown outcome for its sender.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Proposals of clients under way at once.
pub(crate) const PROPOSALS: usize = 4_096;
/// Their bytes. A file of the log and a message between members hold a group of that size.
pub(crate) const PROPOSAL_BYTES: usize = 16 << 20;

type Written = ClientWriteResponse<TypeConfig>;
type WriteError = RaftError<TypeConfig, ClientWriteError<TypeConfig>>;

/// Watches served at once.
pub(crate) const WATCHES: usize = 10_000;

/// One member.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: MetaConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) id: NodeId,
    pub(crate) member: MemberId,
    /// `host:port` under which others reach it.
    pub(crate) address: String,
    pub(crate) raft: Raft,
    pub(crate) log: LogStore,
    pub(crate) store: MachineStore,
    pub(crate) machine: Arc<Machine>,
    pub(crate) cluster: ClusterCell,
    pub(crate) book: AddressBook,
    pub(crate) check: LeaderCheck,
    pub(crate) duties: Duties,
    pub(crate) counters: Counters,
    pub(crate) proposals: Semaphore,
    pub(crate) proposal_bytes: Semaphore,
    pub(crate) watches: Arc<Semaphore>,
    /// One change of members at a time.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) sup: Supervisor,
}

/// What became of a proposal.
#[derive(Debug)]
pub(crate) enum Proposed {
    /// Applied at this revision.
    Applied(Revision, Result<Reply, Rejection>),
    /// This member does not lead; nothing was proposed.
    Elsewhere,
    /// It may or may not be applied.
    Unknown(String),
    /// Refused before it was proposed.
    Refused(String),
}

impl Node {
    /// Proposes an encoded request and waits until it is applied here; with a term only while this member leads in it.
    pub(crate) async fn propose(&self, request: bytes::Bytes, term: Option<u64>) -> Proposed {
        let write = self.write(Proposal(request), term);
        match tokio::time::timeout(COMMIT_TIMEOUT, write).await {
            Ok(Ok(written)) => {
                let revision = Revision(written.log_id.index);
                match written.data {
                    Outcome(Some(result)) => Proposed::Applied(revision, result),
                    Outcome(None) => Proposed::Unknown("the entry came back without a result".to_owned()),
                }
            }
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => Proposed::Elsewhere,
            Ok(Err(RaftError::APIError(e @ ClientWriteError::LogEntryDiscarded(_)))) => {
                Proposed::Unknown(e.to_string())
            }
            Ok(Err(RaftError::APIError(e))) => Proposed::Refused(e.to_string()),
            Ok(Err(RaftError::Fatal(e))) => Proposed::Unknown(e.to_string()),
            Err(_) => Proposed::Unknown(format!("not committed within {COMMIT_TIMEOUT:?}")),
        }
    }

    async fn write(&self, proposal: Proposal, term: Option<u64>) -> Result<Written, WriteError> {
        let Some(term) = term else { return self.raft.client_write(proposal).await };
        let (responder, written) = ProgressResponder::complete_only();
        self.raft.write(proposal).with_leader(term).responder(responder).await.map_err(RaftError::Fatal)?;
        let result: Result<Written, _> = written.await.map_err(|_| RaftError::Fatal(Fatal::Stopped))?;
        result.map_err(RaftError::APIError)
    }

    /// Proposes a command of the leader's own; true when it was applied and not rejected. A term makes sure that what was
    /// decided in one term is not proposed in a later one, whose sessions have begun anew (M26).
    pub(crate) async fn propose_own(&self, term: Option<u64>, command: Command) -> bool {
        let request = Request { session: SessionId::NONE, request: RequestId(0), command };
        let bytes = match tidemill_metadata::encode_request(&request) {
            Ok(bytes) => bytes,
            Err(e) => {
                tracing::error!(error = %e, "a command of the leader cannot be encoded");
                return false;
            }
        };
        match self.propose(bytes.into(), term).await {
            Proposed::Applied(_, Ok(_)) => true,
            // Before `Init` there is nothing to do duties for.
            Proposed::Applied(_, Err(Rejection::NotInitialised)) => false,
            other => {
                tracing::debug!(?other, "a command of the leader was not applied");
                false
            }
        }
    }

    /// The leader as this member knows it: node and address, 0 and empty when unknown.
    pub(crate) fn leader(&self) -> (NodeId, String) {
        let m = self.raft.server_metrics().borrow_watched().clone();
        let Some(leader) = m.current_leader else { return (0, String::new()) };
        if leader == self.id {
            // It led a moment ago; whoever asks is told to look again.
            return (leader, self.address.clone());
        }
        let known = m.membership_config.get_node(&leader).map(|p| p.address.clone()).unwrap_or_default();
        (leader, self.book.address(leader, &known))
    }
}
