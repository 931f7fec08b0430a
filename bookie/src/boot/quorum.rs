//! The quorum's part of a boot: asked until it answers.

use std::{future::Future, sync::Arc, time::Duration};

use tidemill_meta_client::{
    BookieBoot, MetaClient, MetaError, OpenError, RenewalReport, ReportSource, Session,
};
use tidemill_storage::Engine;
use tidemill_types::{
    ClusterId, ErrorCode,
    meta::{Answer, BookieSpec, MemberSpec, Query, Rejection},
};

use super::Ended;
use crate::{shared::Core, space};

/// First and longest pause between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What one try brought.
enum Try<T> {
    Done(T),
    Again(String),
    Fatal(String),
}

/// Asks until there is an answer, and tells health what is waited for meanwhile.
pub(crate) struct Quorum<'a> {
    core: &'a Arc<Core>,
    client: &'a MetaClient,
    key: String,
}

impl<'a> Quorum<'a> {
    pub(crate) fn new(core: &'a Arc<Core>, client: &'a MetaClient) -> Self {
        Self { core, client, key: core.health_key("quorum") }
    }

    /// The cluster, once it has been initialised; checked against the cookies.
    pub(super) async fn cluster(&self, cookies: Option<ClusterId>) -> Result<ClusterId, Ended> {
        let client = self.client;
        self.until(|| async move {
            match client.read(&Query::Cluster).await {
                Ok((Answer::Cluster(info), _)) => match (info.cluster, cookies) {
                    (None, _) => Try::Again("it is not initialised yet".to_owned()),
                    (Some(have), Some(named)) if have != named => Try::Fatal(format!(
                        "its disks belong to cluster {named}, the quorum is cluster {have} ({})",
                        ErrorCode::WrongCluster
                    )),
                    (Some(have), _) => Try::Done(have),
                },
                Ok((other, _)) => Try::Again(format!("an answer of another kind: {other:?}")),
                Err(e) => no_answer(&e),
            }
        })
        .await
    }

    /// Step 3: the quorum learns the pending incarnation and says how to serve.
    pub(super) async fn bookie_boot(&self, spec: &BookieSpec) -> Result<BookieBoot, Ended> {
        let client = self.client;
        self.until(|| async move {
            client.bookie_boot(spec.clone()).await.map_or_else(|e| refused(&e), Try::Done)
        })
        .await
    }

    /// Step 6, or a later session of the same process.
    async fn session(&self, spec: &MemberSpec, report: &ReportSource) -> Result<Session, Ended> {
        let client = self.client;
        self.until(|| async move {
            client.open_session(spec.clone(), report.clone()).await.map_or_else(|e| refused(&e), Try::Done)
        })
        .await
    }

    /// Repeats work that needs answers of the quorum.
    pub(crate) async fn retry<T, E, F>(&self, work: impl Fn() -> F) -> Result<T, Ended>
    where
        F: Future<Output = Result<T, E>>,
        E: std::fmt::Display,
    {
        let work = &work;
        self.until(|| async move { work().await.map_or_else(|e| Try::Again(e.to_string()), Try::Done) }).await
    }

    async fn until<T, F>(&self, one_try: impl Fn() -> F) -> Result<T, Ended>
    where
        F: Future<Output = Try<T>>,
    {
        let health = self.core.sup.health();
        let stop = self.core.sup.token();
        let mut pause = FIRST_PAUSE;
        loop {
            let tried = tokio::select! {
                () = stop.cancelled() => return Err(Ended::Stopped),
                t = one_try() => t,
            };
            match tried {
                Try::Done(t) => {
                    health.has(&self.key);
                    return Ok(t);
                }
                Try::Fatal(why) => return Err(Ended::Fatal(why)),
                Try::Again(why) => {
                    let meta = self.core.config.meta.join(",");
                    health.waits_for(&self.key, &format!("waiting for the metadata quorum at {meta}: {why}"));
                }
            }
            tokio::select! {
                () = stop.cancelled() => return Err(Ended::Stopped),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }
}

/// Opens a session whose renewals carry synced positions (R16) and space.
pub(crate) async fn open_session(
    quorum: &Quorum<'_>,
    engine: &Engine,
    spec: &MemberSpec,
) -> Result<Session, Ended> {
    let engine = engine.clone();
    let report: ReportSource = Arc::new(move || {
        let info = engine.info();
        RenewalReport {
            positions: engine.positions(),
            free_bytes: space::free_bytes(&info),
            degraded_ledgers: 0,
            read_only: space::is_read_only(&info),
        }
    });
    quorum.session(spec, &report).await
}

fn no_answer<T>(e: &MetaError) -> Try<T> {
    match e {
        MetaError::WrongCluster { .. } => Try::Fatal(format!("{e} ({})", e.code())),
        _ => Try::Again(e.to_string()),
    }
}

/// Another cluster and a retired uuid are final. Everything else may change: the earlier process's session ends, a person
/// mounts the right disk on the other side; until then the reason stands in the health page.
fn refused<T>(e: &OpenError) -> Try<T> {
    match e {
        OpenError::Meta(e) => no_answer(e),
        OpenError::Rejected(r @ Rejection::WrongCluster { .. }) => {
            Try::Fatal(format!("{r} ({})", ErrorCode::WrongCluster))
        }
        OpenError::Rejected(r @ Rejection::BookieNotEligible { .. }) => {
            Try::Fatal(format!("{r}; empty the disks to start a new bookie ({})", ErrorCode::Conflict))
        }
        OpenError::Rejected(r) => Try::Again(r.to_string()),
    }
}
