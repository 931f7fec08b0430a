//! Sending to one member.

use std::{future::Future, time::Duration};

use openraft::{
    OptionalSend, RaftNetworkFactory, RaftNetworkV2,
    errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable},
    network::RPCOption,
    raft::{
        AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, VoteRequest,
        VoteResponse,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use tidemill_proto::raft::{Envelope, raft_client::RaftClient};
use tonic::{Code, Request, Response, Status, transport::Channel};

use super::{AddressBook, codec, snapshot};
use crate::{
    machine::SnapshotFile,
    service::ClusterCell,
    types::{NodeId, Peer, TypeConfig, Vote},
};

type Built = openraft::alias::SnapshotOf<TypeConfig, SnapshotFile>;
type Rpc<T> = Result<T, RPCError<TypeConfig>>;
pub(super) type Stub = RaftClient<Channel>;

/// What a follower may take to make entries durable; a dead link is noticed earlier by the keep-alive.
const APPEND: Duration = Duration::from_secs(5);

/// Makes links.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    book: AddressBook,
    cluster: ClusterCell,
}

/// A link to one member.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    target: NodeId,
    known: String,
    book: AddressBook,
    cluster: ClusterCell,
}

impl Network {
    pub(crate) fn new(book: AddressBook, cluster: ClusterCell) -> Self {
        Self { book, cluster }
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: NodeId, node: &Peer) -> Link {
        Link { target, known: node.address.clone(), book: self.book.clone(), cluster: self.cluster.clone() }
    }
}

pub(super) fn unreachable(why: &str) -> Unreachable<TypeConfig> {
    Unreachable::from_string(why)
}

impl Link {
    pub(super) fn stub(&self) -> Result<(String, Stub), Unreachable<TypeConfig>> {
        let address = self.book.address(self.target, &self.known);
        let channel = self.book.channel(&address).map_err(|e| unreachable(&e))?;
        let stub = RaftClient::new(channel)
            .max_decoding_message_size(codec::MAX_MESSAGE)
            .max_encoding_message_size(codec::MAX_MESSAGE);
        Ok((address, stub))
    }

    pub(super) fn cluster_bytes(&self) -> Vec<u8> {
        self.cluster.bytes()
    }

    pub(super) fn target(&self) -> NodeId {
        self.target
    }

    /// Gives the connection up when it is the connection that failed.
    pub(super) fn failed(&self, address: &str, status: &Status) {
        if matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled) {
            self.book.failed(address);
        }
    }

    /// One question and its answer.
    async fn ask<Q, A, F, Fut>(&self, question: &Q, within: Duration, call: F) -> Rpc<A>
    where
        Q: Serialize,
        A: DeserializeOwned,
        F: FnOnce(Stub, Request<Envelope>) -> Fut,
        Fut: Future<Output = Result<Response<Envelope>, Status>>,
    {
        let (address, stub) = self.stub()?;
        let payload =
            codec::encode(question).map_err(|e| NetworkError::from_string(format!("{address}: {e}")))?;
        let envelope =
            Envelope { cluster: self.cluster_bytes(), target: self.target, payload: payload.into() };
        match tokio::time::timeout(within, call(stub, Request::new(envelope))).await {
            Ok(Ok(answer)) => codec::decode(&answer.into_inner().payload)
                .map_err(|e| RPCError::Network(NetworkError::from_string(format!("{address}: {e}")))),
            Ok(Err(status)) => {
                self.failed(&address, &status);
                Err(unreachable(&format!("{address}: {}", status.message())).into())
            }
            // The connection may still live: the keep-alive decides, and reconnecting would only add to the load.
            Err(_) => {
                let why = format!("{address}: no answer within {within:?}");
                Err(RPCError::Network(NetworkError::from_string(why)))
            }
        }
    }
}

impl RaftNetworkV2<TypeConfig> for Link {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Rpc<AppendEntriesResponse<TypeConfig>> {
        // Entries are answered after the follower's sync, and a slow disk must not lead to the same bytes again and again.
        let within = if rpc.entries.is_empty() { option.soft_ttl() } else { option.soft_ttl().max(APPEND) };
        self.ask(&rpc, within, |mut s, m| async move { s.append_entries(m).await }).await
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Rpc<VoteResponse<TypeConfig>> {
        self.ask(&rpc, option.soft_ttl(), |mut s, m| async move { s.vote(m).await }).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Rpc<VoteResponse<TypeConfig>> {
        self.ask(&rpc, option.soft_ttl(), |mut s, m| async move { s.pre_vote(m).await }).await
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Rpc<openraft::raft::TransferLeaderResponse<TypeConfig>> {
        self.ask(&rpc, option.soft_ttl(), |mut s, m| async move { s.transfer_leader(m).await }).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Built,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let _ = option;
        tokio::select! {
            closed = cancel => Err(closed.into()),
            done = snapshot::send(self, vote, &snapshot.meta, &snapshot.snapshot) => done,
        }
    }
}
