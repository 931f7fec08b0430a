//! A snapshot in pieces of 1 MiB, each with its checksum.

use std::time::Duration;

use openraft::{
    errors::{NetworkError, StreamingError},
    raft::SnapshotResponse,
};
use serde::{Deserialize, Serialize};
use tidemill_proto::raft::SnapshotPiece;
use tidemill_runtime::defaults::SNAPSHOT_PIECE;
use tidemill_types::entry::crc32c;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{
    client::{Link, unreachable},
    codec,
};
use crate::{
    machine::SnapshotFile,
    types::{SnapshotMeta, TypeConfig, Vote},
};

/// Without an answer for so long after the last piece, the transfer is given up: the receiver checks and installs.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Pieces under way.
const IN_FLIGHT: usize = 4;

/// What comes with the first piece.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) vote: Vote,
    pub(super) meta: SnapshotMeta,
    /// Bytes of the whole file.
    pub(super) len: u64,
}

type Failed = StreamingError<TypeConfig>;

fn network(why: String) -> Failed {
    StreamingError::Network(NetworkError::from_string(why))
}

/// Sends a snapshot; returns when it is installed or refused.
pub(super) async fn send(
    link: &Link,
    vote: Vote,
    meta: &SnapshotMeta,
    snapshot: &SnapshotFile,
) -> Result<SnapshotResponse<TypeConfig>, Failed> {
    let (address, mut stub) = link.stub()?;
    let head = codec::encode(&Head { vote, meta: meta.clone(), len: snapshot.len }).map_err(network)?;
    let (tx, rx) = mpsc::channel(IN_FLIGHT);
    let feed = feed(tx, link, head, snapshot);
    let call =
        async { tokio::time::timeout(INSTALL_TIMEOUT, stub.install_snapshot(ReceiverStream::new(rx))).await };
    let (fed, answer) = tokio::join!(feed, call);
    match answer {
        Ok(Ok(answer)) => codec::decode(&answer.into_inner().payload).map_err(network),
        Ok(Err(status)) => {
            link.failed(&address, &status);
            let why = format!("{address}: {}", status.message());
            Err(StreamingError::Unreachable(unreachable(&why)))
        }
        Err(_) => {
            Err(network(format!("{address}: no answer to a snapshot; {}", fed.err().unwrap_or_default())))
        }
    }
}

async fn feed(
    tx: mpsc::Sender<SnapshotPiece>,
    link: &Link,
    head: Vec<u8>,
    snapshot: &SnapshotFile,
) -> Result<(), String> {
    let mut offset = 0;
    let mut head = Some(head);
    loop {
        let (file, len) = (snapshot.file.clone(), snapshot.len);
        let read = tidemill_runtime::work::blocking(move || {
            let n = usize::try_from(len - offset).unwrap_or(SNAPSHOT_PIECE).min(SNAPSHOT_PIECE);
            let mut data = vec![0; n];
            file.read_exact_at(&mut data, offset).map(|()| data)
        });
        let data = read.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        let next = offset + data.len() as u64;
        let done = next == snapshot.len;
        let piece = SnapshotPiece {
            cluster: link.cluster_bytes(),
            target: link.target(),
            head: head.take().unwrap_or_default(),
            offset,
            crc: crc32c(&[&data]),
            data: data.into(),
            done,
        };
        // The receiver gave up: its answer says why.
        if tx.send(piece).await.is_err() || done {
            return Ok(());
        }
        offset = next;
    }
}
