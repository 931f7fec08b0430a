//! Opening a session.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use tidemill_types::{
    RequestId, SessionId,
    meta::{Command, MemberSpec, Rejection, Reply, Request},
};
use tokio::sync::watch;

use super::{ConfirmedTime, Opened, ReportSource, Session, Shared, renew, validity::Validity};
use crate::{MetaClient, MetaError, OpenError, retry::Backoff};

impl MetaClient {
    /// Opens a session and keeps it renewed until it is lost or the client's supervisor stops. It becomes the client's
    /// current session. When an earlier process of this member still has one, waits for its expiry.
    ///
    /// # Errors
    /// [`OpenError::Rejected`] when the quorum refuses the member, or the earlier session outlived
    /// `open_session_wait`; [`OpenError::Meta`] without an answer.
    pub async fn open_session(&self, spec: MemberSpec, report: ReportSource) -> Result<Session, OpenError> {
        let mut wait = Backoff::new(self.inner.config.open_session_wait);
        let opened = loop {
            match self.try_open(&spec).await {
                Err(OpenError::Rejected(Rejection::Conflict { why })) => {
                    // The earlier session is live: it expires when its process is really gone.
                    tracing::info!(member = %spec.id, why, "waiting for an earlier session to end");
                    if !wait.pause_at_least(Duration::from_millis(100)).await {
                        return Err(OpenError::Rejected(Rejection::Conflict { why }));
                    }
                }
                Err(OpenError::Meta(MetaError::OutcomeUnknown { why })) => {
                    // The same incarnation again gets the same session.
                    if !wait.pause().await {
                        return Err(MetaError::OutcomeUnknown { why }.into());
                    }
                }
                other => break other?,
            }
        };
        let session = Session {
            inner: Arc::new(Shared {
                client: Arc::downgrade(&self.inner),
                clock: self.inner.config.clock.clone(),
                requests: self.request_counter(opened.session),
                opened,
                validity: Mutex::new(Validity::none()),
                quorum_time: Mutex::new(None),
                confirmed: Mutex::new(ConfirmedTime::new(self.inner.config.time_settle)),
                lost: watch::Sender::new(None),
                report,
            }),
        };
        // Validity comes from answered renewals only, so one is answered before the session is handed out.
        renew::first(&self.inner, &session).await?;
        self.adopt(&session);
        self.inner
            .supervisor
            .spawn_until_stop("session renewal", renew::keep(self.inner.clone(), session.clone()));
        Ok(session)
    }

    async fn try_open(&self, spec: &MemberSpec) -> Result<Opened, OpenError> {
        let request = Request {
            session: SessionId::NONE,
            request: RequestId(spec.incarnation.0),
            command: Command::OpenSession(spec.clone()),
        };
        match self.propose_request(&request).await? {
            Ok(Reply::Session { session, cluster, next_ledger, state }) => {
                self.inner.learn_cluster(cluster)?;
                Ok(Opened { member: spec.id, session, cluster, next_ledger, state })
            }
            Ok(other) => {
                Err(MetaError::Malformed { why: format!("unexpected reply to OpenSession: {other:?}") }
                    .into())
            }
            Err(rejection) => Err(OpenError::Rejected(rejection)),
        }
    }

    /// The counter of request ids. Opening again with the same incarnation gives the same session, whose ids must go on:
    /// a used id would be answered with the reply of another command (R9).
    fn request_counter(&self, session: SessionId) -> Arc<AtomicU64> {
        if let Some(s) = self.inner.session.lock().as_ref()
            && s.id() == session
        {
            return s.inner.requests.clone();
        }
        // Microseconds since boot: above everything that an earlier client of this process can have used.
        let start = u64::try_from(self.inner.config.clock.boottime().as_micros()).unwrap_or(0) + 1;
        Arc::new(AtomicU64::new(start))
    }
}
