//! Answering other members.

use std::sync::Arc;

use bytes::Bytes;
use openraft::{
    Snapshot,
    raft::{AppendEntriesRequest, TransferLeaderRequest, VoteRequest},
};
use serde::{Serialize, de::DeserializeOwned};
use tidemill_proto::{
    convert::{Details, status},
    raft::{Envelope, SnapshotPiece, raft_server::Raft as Service},
};
use tidemill_runtime::{defaults::SNAPSHOT_PIECE, io::File};
use tidemill_types::{ErrorCode, entry::crc32c};
use tonic::{Request, Response, Status, Streaming};

use super::{codec, snapshot::Head};
use crate::{
    machine::{SnapshotFile, SnapshotFolder},
    service::ClusterCell,
    types::{NodeId, Raft, TypeConfig},
};

/// The raft service of one member.
#[derive(Clone)]
pub(crate) struct RaftService {
    raft: Raft,
    node: NodeId,
    cluster: ClusterCell,
    folder: Arc<SnapshotFolder>,
}

fn refuse(code: ErrorCode, why: &str) -> Status {
    status(code, why, Details::default())
}

fn answer<T: Serialize>(value: &T) -> Result<Response<Envelope>, Status> {
    let payload = codec::encode(value).map_err(|e| refuse(ErrorCode::Internal, &e))?;
    Ok(Response::new(Envelope { cluster: Vec::new(), target: 0, payload: payload.into() }))
}

fn stopped(e: &dyn std::fmt::Display) -> Status {
    refuse(ErrorCode::NotReady, &e.to_string())
}

impl RaftService {
    pub(crate) fn new(raft: Raft, node: NodeId, cluster: ClusterCell, folder: Arc<SnapshotFolder>) -> Self {
        Self { raft, node, cluster, folder }
    }

    /// A message for another node or of another cluster is refused: addresses are only hints.
    fn check(&self, cluster: &[u8], target: NodeId) -> Result<(), Status> {
        if target != self.node {
            let why = format!("this is node {}, the message is for {target}", self.node);
            return Err(refuse(ErrorCode::WrongMember, &why));
        }
        self.cluster.check(cluster)
    }

    fn open<T: DeserializeOwned>(&self, request: Request<Envelope>) -> Result<T, Status> {
        let e = request.into_inner();
        self.check(&e.cluster, e.target)?;
        codec::decode(&e.payload).map_err(|why| refuse(ErrorCode::InvalidArgument, &why))
    }

    async fn receive(&self, mut pieces: Streaming<SnapshotPiece>) -> Result<Response<Envelope>, Status> {
        let bad = |why: &str| refuse(ErrorCode::InvalidArgument, why);
        let first = pieces.message().await?.ok_or_else(|| bad("a snapshot without a piece"))?;
        self.check(&first.cluster, first.target)?;
        let head: Head = codec::decode(&first.head).map_err(|e| bad(&e))?;
        if head.len > crate::machine::MAX_SNAPSHOT {
            return Err(bad("a snapshot above 16 GiB"));
        }
        let disk = |e: std::io::Error| refuse(ErrorCode::Internal, &e.to_string());
        let (path, file) = self.folder.temp().map_err(disk)?;
        let mut guard = Temp { folder: self.folder.clone(), path: Some(path.clone()) };
        let mut piece = first;
        let mut at = 0;
        loop {
            if piece.offset != at
                || piece.data.len() > SNAPSHOT_PIECE
                || at + piece.data.len() as u64 > head.len
            {
                return Err(bad("a piece of a snapshot that does not follow on"));
            }
            if crc32c(&[&piece.data]) != piece.crc {
                return Err(bad("the checksum of a piece does not match"));
            }
            let len = piece.data.len() as u64;
            write(file.clone(), piece.data, at).await.map_err(disk)?;
            at += len;
            if piece.done {
                break;
            }
            piece = pieces.message().await?.ok_or_else(|| bad("a snapshot that breaks off"))?;
        }
        if at != head.len {
            return Err(bad("a snapshot of another length than it said"));
        }
        // From here on the file belongs to the state machine, even when the sender hangs up.
        guard.path = None;
        let vote = head.vote;
        let snapshot =
            Snapshot { meta: head.meta, snapshot: SnapshotFile { path: path.clone(), file, len: at } };
        let result = self.raft.install_full_snapshot(vote, snapshot).await.map_err(|e| stopped(&e))?;
        // Not installed when it came from a past leader or is behind what is applied; else it has its final name by now.
        self.folder.discard(&path);
        answer(&result)
    }
}

async fn write(file: Arc<dyn File>, data: Bytes, at: u64) -> std::io::Result<()> {
    tidemill_runtime::work::blocking(move || file.write_at(&data, at)).await.map_err(std::io::Error::other)?
}

/// Removes a file whose transfer broke off.
struct Temp {
    folder: Arc<SnapshotFolder>,
    path: Option<std::path::PathBuf>,
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            self.folder.discard(&path);
        }
    }
}

#[tonic::async_trait]
impl Service for RaftService {
    async fn append_entries(&self, request: Request<Envelope>) -> Result<Response<Envelope>, Status> {
        let rpc: AppendEntriesRequest<TypeConfig> = self.open(request)?;
        answer(&self.raft.append_entries(rpc).await.map_err(|e| stopped(&e))?)
    }

    async fn vote(&self, request: Request<Envelope>) -> Result<Response<Envelope>, Status> {
        let rpc: VoteRequest<TypeConfig> = self.open(request)?;
        answer(&self.raft.vote(rpc).await.map_err(|e| stopped(&e))?)
    }

    async fn pre_vote(&self, request: Request<Envelope>) -> Result<Response<Envelope>, Status> {
        let rpc: VoteRequest<TypeConfig> = self.open(request)?;
        answer(&self.raft.pre_vote(rpc).await.map_err(|e| stopped(&e))?)
    }

    async fn transfer_leader(&self, request: Request<Envelope>) -> Result<Response<Envelope>, Status> {
        let rpc: TransferLeaderRequest<TypeConfig> = self.open(request)?;
        answer(&self.raft.handle_transfer_leader(rpc).await.map_err(|e| stopped(&e))?)
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<SnapshotPiece>>,
    ) -> Result<Response<Envelope>, Status> {
        self.receive(request.into_inner()).await
    }
}
