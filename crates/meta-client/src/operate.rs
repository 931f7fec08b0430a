//! What operators and `tidemill up` do with the quorum itself: status, first start, members.

use std::time::Duration;

use tidemill_proto::{
    convert::code_of,
    meta::{
        ChangeMembersRequest, InitializeRequest, LeaderHint, StatusRequest, StatusResponse, Voter,
        change_members_request::Change, change_members_response::Outcome,
    },
};
use tidemill_types::{
    ClusterId, ErrorCode, Incarnation, MemberId, RequestId, SessionId,
    meta::{Command, Request},
};
use tonic::Status;

use crate::{MetaClient, MetaError, retry::Backoff};

/// How long a change of members may take: the new one first receives a snapshot.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// A voter of the quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoterInfo {
    /// Raft node id.
    pub node: u64,
    /// `host:port`.
    pub address: String,
    /// Uuid of its volume; `None` when the answering member does not know it.
    pub member: Option<MemberId>,
}

/// What one member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaStatus {
    /// Raft node id.
    pub node: u64,
    /// Uuid of its volume.
    pub member: Option<MemberId>,
    /// The cluster; `None` before initialisation.
    pub cluster: Option<ClusterId>,
    /// `uninitialized`, `learner`, `follower`, `candidate`, `leader`.
    pub role: String,
    /// Raft term.
    pub term: u64,
    /// Address of the leader that it follows.
    pub leader: Option<String>,
    /// Index of its last log entry.
    pub last_log: u64,
    /// Index of the last applied entry.
    pub applied: u64,
    /// Index of the last snapshot.
    pub snapshot: u64,
    /// The voters.
    pub voters: Vec<VoterInfo>,
    /// Version of its binary.
    pub version: String,
    /// Bytes of its log on disk.
    pub log_bytes: u64,
    /// Bytes of its last snapshot on disk.
    pub snapshot_bytes: u64,
    /// Highest feature level that its binary knows.
    pub feature_level: u32,
    /// Of the leader: degraded ledgers per broker that renewed lately.
    pub degraded: Vec<(MemberId, u32)>,
    /// The leader's: copies to be made.
    pub repair: Option<RepairStatus>,
}

/// Copies to be made, as the leader's auditor saw it in its last pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairStatus {
    /// Ledgers with copies to be made or looked for.
    pub ledgers: u64,
    /// Quorum time at which the oldest of them was seen first, ms; 0: none.
    pub oldest_ms: i64,
    /// Payload bytes of the copies, at most.
    pub bytes: u64,
    /// Repairs under way.
    pub in_progress: u32,
    /// Until all is done, ms; 0: nothing to do, -1: not known.
    pub eta_ms: i64,
    /// Ledgers that nobody can complete now.
    pub stuck: u64,
}

/// One step of a change of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// The member at this address joins and becomes a voter.
    Add(String),
    /// This node leaves.
    Remove(u64),
    /// A known node has a new address.
    Readdress {
        /// The node.
        node: u64,
        /// `host:port`.
        address: String,
    },
}

impl MetaClient {
    /// Asks one member about itself; needs no leader and no cluster.
    ///
    /// # Errors
    /// [`MetaError::Unavailable`].
    pub async fn status_of(&self, address: &str) -> Result<MetaStatus, MetaError> {
        let unavailable = |why: String| MetaError::Unavailable { why: format!("{address}: {why}") };
        let mut stub = self
            .inner
            .quorum
            .stub(address)
            .await
            .map_err(|e| MetaError::Unavailable { why: e.to_string() })?;
        let answer = tokio::time::timeout(self.inner.config.attempt_timeout, stub.status(StatusRequest {}))
            .await
            .map_err(|_| unavailable("no answer in time".to_owned()))?
            .map_err(|s| {
                self.inner.quorum.failed(address);
                unavailable(s.message().to_owned())
            })?
            .into_inner();
        if let Some(LeaderHint { address, .. }) = &answer.leader
            && !address.is_empty()
        {
            self.inner.quorum.learn(address);
        }
        Ok(answer.into())
    }

    /// Ends the session of a process that is proven to be gone, instead of waiting for its TTL. Without effect when it is not
    /// that session of that member and incarnation any more. The proof is the caller's: it must own the process, as
    /// `tidemill up` owns those that ran on its locked directory.
    ///
    /// # Errors
    /// [`MetaError::Unavailable`], [`MetaError::OutcomeUnknown`]: it may be called again.
    pub async fn end_session(
        &self,
        session: SessionId,
        member: MemberId,
        incarnation: Incarnation,
    ) -> Result<(), MetaError> {
        let command = Command::EndSession { session, member, incarnation };
        // Outside of any session nothing is remembered of a request; a second one of this command changes nothing.
        let request = Request { session: SessionId::NONE, request: RequestId(0), command };
        match self.propose_request(&request).await? {
            Ok(_) => Ok(()),
            Err(r) => Err(MetaError::Refused { code: ErrorCode::Conflict, why: r.to_string() }),
        }
    }

    /// The status of every member whose address is known.
    pub async fn status_of_all(&self) -> Vec<(String, Result<MetaStatus, MetaError>)> {
        let addresses = self.inner.quorum.addresses();
        let asked = addresses.into_iter().map(|a| async move {
            let status = self.status_of(&a).await;
            (a, status)
        });
        futures::future::join_all(asked).await
    }

    /// Makes a new quorum of the members at `voters` (1, 3 or 5 addresses), once in a cluster's life. Every one of them
    /// must report an empty log. Sent to the first of them. Idempotent for the same cluster id.
    ///
    /// # Errors
    /// [`MetaError::Refused`] when a member is not empty or the count is wrong; [`MetaError::OutcomeUnknown`].
    pub async fn initialize(&self, cluster: ClusterId, voters: &[String]) -> Result<(), MetaError> {
        let Some(first) = voters.first() else {
            return Err(MetaError::Refused {
                code: ErrorCode::InvalidArgument,
                why: "voters: none named".to_owned(),
            });
        };
        let mut backoff = Backoff::new(self.inner.config.give_up_after);
        loop {
            let why = match self.inner.quorum.stub(first).await {
                Err(e) => e.to_string(),
                Ok(mut stub) => {
                    let request =
                        InitializeRequest { cluster: cluster.0.as_bytes().to_vec(), voters: voters.to_vec() };
                    match tokio::time::timeout(CHANGE_TIMEOUT, stub.initialize(request)).await {
                        Ok(Ok(_)) => return self.inner.learn_cluster(cluster),
                        Ok(Err(status)) => {
                            refusal(&status).map_or_else(|| Ok(status.message().to_owned()), Err)?
                        }
                        Err(_) => "no answer in time".to_owned(),
                    }
                }
            };
            self.inner.quorum.failed(first);
            if !backoff.pause().await {
                return Err(MetaError::OutcomeUnknown { why: format!("{first}: {why}") });
            }
        }
    }

    /// Adds or removes one voter, or gives one a new address. Idempotent: after [`MetaError::OutcomeUnknown`] look at
    /// the status, then call it again.
    ///
    /// # Errors
    /// [`MetaError::Refused`] with the reason; [`MetaError::Unavailable`]; [`MetaError::OutcomeUnknown`].
    pub async fn change_members(&self, change: &MemberChange) -> Result<(), MetaError> {
        let change = match change {
            MemberChange::Add(address) => Change::Add(address.clone()),
            MemberChange::Remove(node) => Change::Remove(*node),
            MemberChange::Readdress { node, address } => {
                Change::Readdress(Voter { node: *node, address: address.clone(), member: Vec::new() })
            }
        };
        let mut backoff = Backoff::new(self.inner.config.give_up_after);
        let mut sent = false;
        loop {
            let why = match self.inner.quorum.leader_or_next() {
                None => "no member's address is known".to_owned(),
                Some(address) => match self.inner.quorum.stub(&address).await {
                    Err(e) => {
                        self.inner.quorum.failed(&address);
                        e.to_string()
                    }
                    Ok(mut stub) => {
                        let request = ChangeMembersRequest {
                            cluster: self.inner.cluster_bytes(),
                            change: Some(change.clone()),
                        };
                        match tokio::time::timeout(CHANGE_TIMEOUT, stub.change_members(request)).await {
                            Ok(Ok(answer)) => match answer.into_inner().outcome {
                                Some(Outcome::Done(true)) => return Ok(()),
                                Some(Outcome::Leader(hint)) => {
                                    self.inner.quorum.hint(&address, &hint);
                                    format!("{address} does not lead")
                                }
                                _ => format!("{address}: an answer without content"),
                            },
                            Ok(Err(status)) => {
                                if let Some(e) = refusal(&status) {
                                    return Err(e);
                                }
                                sent = true;
                                self.inner.quorum.failed(&address);
                                format!("{address}: {}", status.message())
                            }
                            Err(_) => {
                                sent = true;
                                self.inner.quorum.failed(&address);
                                format!("{address}: no answer in time")
                            }
                        }
                    }
                },
            };
            if !backoff.pause().await {
                return Err(if sent {
                    MetaError::OutcomeUnknown { why }
                } else {
                    MetaError::Unavailable { why }
                });
            }
        }
    }
}

/// A status that says no for good.
pub(crate) fn refusal(status: &Status) -> Option<MetaError> {
    let (code, _) = code_of(status)?;
    let why = status.message().to_owned();
    match code {
        ErrorCode::WrongCluster => Some(MetaError::WrongCluster { known: None, why }),
        c if c.retryable() && c != ErrorCode::Conflict => None,
        code => Some(MetaError::Refused { code, why }),
    }
}

impl From<StatusResponse> for MetaStatus {
    fn from(r: StatusResponse) -> Self {
        let id = |b: &[u8]| uuid::Uuid::from_slice(b).ok();
        Self {
            node: r.node,
            member: id(&r.member).map(MemberId),
            cluster: id(&r.cluster).map(ClusterId),
            role: r.role,
            term: r.term,
            leader: r.leader.map(|l| l.address).filter(|a| !a.is_empty()),
            last_log: r.last_log,
            applied: r.applied,
            snapshot: r.snapshot,
            voters: r
                .voters
                .into_iter()
                .map(|v| VoterInfo { node: v.node, address: v.address, member: id(&v.member).map(MemberId) })
                .collect(),
            version: r.version,
            log_bytes: r.log_bytes,
            snapshot_bytes: r.snapshot_bytes,
            feature_level: r.feature_level.max(1),
            degraded: r
                .degraded
                .into_iter()
                .filter_map(|d| id(&d.broker).map(|b| (MemberId(b), d.ledgers)))
                .collect(),
            repair: r.repair.map(|r| RepairStatus {
                ledgers: r.ledgers,
                oldest_ms: r.oldest_ms,
                bytes: r.bytes,
                in_progress: r.in_progress,
                eta_ms: r.eta_ms,
                stuck: r.stuck,
            }),
        }
    }
}
