//! The client's handle.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tidemill_runtime::{Clock, Supervisor};
use tidemill_types::{
    ClusterId, Revision,
    meta::{Answer, Command, Query, Rejection, Reply, Request},
};

use crate::{MetaClientConfig, MetaError, MetaMirror, Session, propose, quorum::Quorum, read, view};

/// Access to the quorum. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MetaClient {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: MetaClientConfig,
    pub(crate) quorum: Quorum,
    pub(crate) supervisor: Supervisor,
    /// Known from the configuration or learned from the first answer that names it; never changes afterwards.
    pub(crate) cluster: OnceLock<ClusterId>,
    pub(crate) session: Mutex<Option<Session>>,
    mirror: OnceLock<MetaMirror>,
}

impl MetaClient {
    /// A client; nothing is sent before the first call. Its tasks (renewals, watch) run under `supervisor` until it stops.
    #[must_use]
    pub fn connect(config: MetaClientConfig, supervisor: &Supervisor) -> Self {
        let cluster = OnceLock::new();
        if let Some(id) = config.cluster {
            let _first = cluster.set(id);
        }
        let quorum = Quorum::new(config.addresses.clone(), config.attempt_timeout);
        Self {
            inner: Arc::new(Inner {
                config,
                quorum,
                supervisor: supervisor.clone(),
                cluster,
                session: Mutex::new(None),
                mirror: OnceLock::new(),
            }),
        }
    }

    /// The cluster, once known.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.inner.cluster.get().copied()
    }

    /// The clock of the configuration.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.inner.config.clock.clone()
    }

    /// The session that was opened last, live or not.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.inner.session.lock().clone()
    }

    /// Proposes a command under the current session, with one request id for all tries (R9).
    ///
    /// # Errors
    /// [`MetaError::SessionExpired`] without a live session (nothing was applied); [`MetaError::Unavailable`] only when
    /// nothing was sent; [`MetaError::OutcomeUnknown`] when a try was sent and no answer came.
    pub async fn propose(&self, command: Command) -> Result<Result<Reply, Rejection>, MetaError> {
        match self.session() {
            Some(session) => session.propose(command).await,
            None => Err(MetaError::SessionExpired),
        }
    }

    /// Proposes a request with a session and request id chosen by the caller; tries again with the very same.
    ///
    /// # Errors
    /// As [`Self::propose`].
    pub async fn propose_request(&self, request: &Request) -> Result<Result<Reply, Rejection>, MetaError> {
        propose::propose(&self.inner, request).await
    }

    /// A linearizable read that begins after the call.
    ///
    /// # Errors
    /// [`MetaError::Unavailable`] when nobody answered in time, or a refusal.
    pub async fn read(&self, query: &Query) -> Result<(Answer, Revision), MetaError> {
        read::read(&self.inner, query).await
    }

    /// The mirror of members, topics and partitions, kept by a watch that starts with the first call.
    #[must_use]
    pub fn view(&self) -> MetaMirror {
        self.inner.mirror.get_or_init(|| view::follow(self)).clone()
    }
}

impl Inner {
    /// The cluster for a request's field: 16 bytes, or empty while it is not known.
    pub(crate) fn cluster_bytes(&self) -> Vec<u8> {
        self.cluster.get().map(|c| c.0.as_bytes().to_vec()).unwrap_or_default()
    }

    /// Keeps the first cluster id that an answer names.
    ///
    /// # Errors
    /// [`MetaError::WrongCluster`] when another one is known.
    pub(crate) fn learn_cluster(&self, id: ClusterId) -> Result<(), MetaError> {
        let known = *self.cluster.get_or_init(|| id);
        if known == id {
            Ok(())
        } else {
            Err(MetaError::WrongCluster { known: Some(known), why: format!("it is cluster {id}") })
        }
    }
}
