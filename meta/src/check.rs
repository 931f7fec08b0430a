//! Checks of leadership (ReadIndex): one that begins after the request came, shared by all who wait for it.

use std::time::Duration;

use openraft::{
    ReadPolicy,
    errors::{LinearizableReadError, RaftError},
};
use tokio::sync::{mpsc, oneshot};

use crate::types::Raft;

/// Requests that wait for a check.
const QUEUE: usize = 16_384;
/// A check that takes longer is given up.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no proof of leadership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotLeading {
    /// This member does not lead.
    Elsewhere,
    /// It may lead, but a quorum did not confirm it in time.
    Unproven(String),
}

type Answer = oneshot::Sender<Result<u64, NotLeading>>;

/// Asks for checks.
#[derive(Clone, Debug)]
pub(crate) struct LeaderCheck {
    tx: mpsc::Sender<Answer>,
}

impl LeaderCheck {
    /// The check and the task that does the work.
    pub(crate) fn new(raft: Raft) -> (Self, impl Future<Output = ()> + Send) {
        let (tx, rx) = mpsc::channel(QUEUE);
        (Self { tx }, run(raft, rx))
    }

    /// Proves that this member led at a moment after the call, and waits until the state has everything that was
    /// committed before that moment, up to the first entry of the leader's own term at least (M26). Returns the term.
    pub(crate) async fn wait(&self) -> Result<u64, NotLeading> {
        let stopping = || NotLeading::Unproven("this member is stopping".to_owned());
        let (tx, rx) = oneshot::channel();
        self.tx.try_send(tx).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => {
                NotLeading::Unproven(format!("{QUEUE} requests wait for a check of leadership"))
            }
            mpsc::error::TrySendError::Closed(_) => stopping(),
        })?;
        rx.await.map_err(|_| stopping())?
    }
}

async fn run(raft: Raft, mut rx: mpsc::Receiver<Answer>) {
    let mut waiting = Vec::new();
    while rx.recv_many(&mut waiting, QUEUE).await > 0 {
        // All of these came before this check begins; whoever comes now waits for the next one.
        let result = check(&raft).await;
        for answer in waiting.drain(..) {
            let _gone = answer.send(result.clone());
        }
    }
}

async fn check(raft: &Raft) -> Result<u64, NotLeading> {
    match tokio::time::timeout(TIMEOUT, raft.ensure_linearizable(ReadPolicy::ReadIndex)).await {
        // The read log id belongs to the term that produced it.
        Ok(Ok(read)) => Ok(read.log_id().leader_id.term),
        Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_)))) => Err(NotLeading::Elsewhere),
        Ok(Err(e)) => Err(NotLeading::Unproven(e.to_string())),
        Err(_) => Err(NotLeading::Unproven(format!("no quorum answered within {TIMEOUT:?}"))),
    }
}
