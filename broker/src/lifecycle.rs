//! A broker's life: find the quorum, open a session, own partitions, again and again until it is drained.

use std::{
    sync::{Arc, atomic::AtomicU32, atomic::Ordering},
    time::Duration,
};

use tidemill_ledger::{LedgerClient, LedgerConfig};
use tidemill_meta_client::{MetaClient, MetaClientConfig, RenewalReport, Session};
use tidemill_partition_log::{LogContext, PartitionLogConfig};
use tidemill_runtime::{Clock, Supervisor};
use tidemill_types::{
    ClusterId, Endpoint, Incarnation, MemberRole, Revision,
    meta::{Answer, MemberSpec, Query},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    config::BrokerConfig,
    core::{Core, CoreSlot},
    groups::{self, Groups},
    identity::member_id,
    metrics::BrokerMetrics,
    ownership::{self, Ended, OwnedTable},
    quorum::{CurrentSession, QuorumAccess},
    server::ServingSwitch,
    service::producer::Ids,
};

/// Pause between tries while something is missing.
const PAUSE: Duration = Duration::from_millis(200);
/// What the farewell to the quorum may take, and then the end of calls that are still answered.
const FAREWELL: Duration = Duration::from_secs(2);
/// One call to the quorum gives up after this time, so that health names the reason early.
const GIVE_UP: Duration = Duration::from_secs(5);

/// The turning points of a stop, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    /// Hand everything over.
    pub(crate) drain: CancellationToken,
    /// Everything was handed over: end long polls and streams, answer nothing new.
    pub(crate) stopping: CancellationToken,
    /// No new connections; end when the calls have ended.
    pub(crate) close_server: CancellationToken,
    /// All is done.
    pub(crate) stopped: CancellationToken,
}

/// What a broker starts with.
pub(crate) struct Life {
    pub(crate) config: BrokerConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) endpoint: Endpoint,
    pub(crate) part: Supervisor,
    pub(crate) metrics: BrokerMetrics,
    pub(crate) slot: CoreSlot,
    pub(crate) switch: ServingSwitch,
    pub(crate) tokens: Tokens,
    /// The server has ended.
    pub(crate) served: CancellationToken,
}

/// Until it was drained, or its supervisor ends it at once.
pub(crate) async fn run(life: Life) {
    let cut_off = life.part.token().clone();
    tokio::select! {
        () = cut_off.cancelled() => {}
        () = life.live() => {}
    }
    life.tokens.stopping.cancel();
    if let Some(core) = life.slot.peek() {
        core.owned.abandon_all();
    }
    life.switch.set(false).await;
    life.tokens.close_server.cancel();
    life.part.stop().await;
    for what in ["quorum", "session", "drain"] {
        life.part.health().has(&life.key(what));
    }
    life.tokens.stopped.cancel();
}

impl Life {
    fn key(&self, what: &str) -> String {
        format!("{}/{what}", self.config.name)
    }

    fn waits_for(&self, what: &str, why: &str) {
        self.part.health().waits_for(&self.key(what), why);
    }

    /// Before anybody can ask: a broker is not ready from its first moment on.
    pub(crate) fn begin(&self) {
        self.waits_for("quorum", "the metadata quorum has not answered yet");
        self.waits_for("session", "no session with the metadata quorum yet");
    }

    async fn live(&self) {
        let drain = &self.tokens.drain;
        let core = tokio::select! {
            core = self.find_quorum() => core,
            () = drain.cancelled() => return,
        };
        self.slot.set(core.clone());
        self.part.spawn_until_stop("consumer groups", groups::keep(core.clone()));
        self.part.spawn_until_stop("lag of consumer groups", groups::lag::watch(core.clone()));
        self.part.health().has(&self.key("quorum"));
        let incarnation = Incarnation(Uuid::new_v4().as_u64_pair().1 | 1);
        while !drain.is_cancelled() {
            let session = tokio::select! {
                session = self.open_session(&core, incarnation) => session,
                () = drain.cancelled() => break,
            };
            self.part.health().has(&self.key("session"));
            self.switch.set(true).await;
            tracing::info!(member = %core.member, name = self.config.name, session = %session.id(), "the broker serves");
            let ended = self.own(&core, &session).await;
            match ended {
                Ended::SessionLost => {
                    core.metrics.sessions_lost.inc();
                    self.waits_for("session", "the session with the metadata quorum expired");
                    self.switch.set(false).await;
                }
                Ended::Drained => {
                    // What was not handed over in time is free at once instead of after the TTL.
                    if let Ok(Err(error)) | Err(error) =
                        tokio::time::timeout(FAREWELL, session.close()).await.map_err(|_| {
                            tidemill_meta_client::MetaError::Unavailable { why: "no answer in time".into() }
                        })
                    {
                        tracing::warn!(%error, "the session could not be closed, it will expire");
                    }
                    break;
                }
            }
        }
        self.end_server().await;
    }

    /// Owns partitions until the end of the session; tells at once that a drain began.
    async fn own(&self, core: &Arc<Core>, session: &Session) -> Ended {
        let owning = ownership::run(core, session, &self.tokens.drain);
        tokio::pin!(owning);
        tokio::select! {
            ended = &mut owning => return ended,
            () = self.tokens.drain.cancelled() => {}
        }
        self.waits_for("drain", "the broker hands its partitions over");
        self.switch.set(false).await;
        owning.await
    }

    async fn end_server(&self) {
        self.tokens.stopping.cancel();
        self.tokens.close_server.cancel();
        if tokio::time::timeout(FAREWELL, self.served.cancelled()).await.is_err() {
            tracing::info!("connections were still open at the end");
        }
    }

    /// Waits until a quorum with a cluster id answers, then builds all that rests on it.
    async fn find_quorum(&self) -> Arc<Core> {
        let mut config = MetaClientConfig::new(self.config.meta.clone());
        config.give_up_after = GIVE_UP;
        config.clock = self.clock.clone();
        config.time_settle = Duration::from_millis(self.config.time_settle_ms);
        let client = MetaClient::connect(config, &self.part);
        let cluster = loop {
            match client.read(&Query::Cluster).await {
                Ok((Answer::Cluster(info), _)) => match info.cluster {
                    Some(cluster) => break cluster,
                    None => self.waits_for("quorum", "the cluster is not initialised"),
                },
                Ok(_) => self.waits_for("quorum", "an answer of another kind"),
                Err(e) => self.waits_for("quorum", &e.to_string()),
            }
            tokio::time::sleep(PAUSE).await;
        };
        let mirror = client.view();
        mirror.at_least(Revision(0)).await;
        self.core(client, cluster)
    }

    fn core(&self, client: MetaClient, cluster: ClusterId) -> Arc<Core> {
        let config = self.config.clone();
        let clock = client.clock();
        let access = QuorumAccess::start(&client, &self.part);
        let ledgers = LedgerClient::new(access.clone(), ledger_config(&config, cluster));
        let session = Arc::new(CurrentSession(client.clone()));
        let logs = LogContext::new(ledgers, access, clock.clone(), session, log_config(&config));
        Arc::new(Core {
            cluster,
            member: member_id(cluster, &config.name),
            mirror: client.view(),
            client,
            logs,
            owned: OwnedTable::new(),
            metrics: self.metrics.clone(),
            clock,
            ids: Ids::default(),
            groups: Groups::default(),
            degraded: Arc::default(),
            stopping: self.tokens.stopping.clone(),
            config,
        })
    }

    /// Opens a session, again and again. The member of an earlier process may have to expire first.
    async fn open_session(&self, core: &Core, incarnation: Incarnation) -> Session {
        loop {
            let spec = MemberSpec {
                cluster: Some(core.cluster),
                id: core.member,
                role: MemberRole::Broker,
                name: self.config.name.clone(),
                incarnation,
                endpoint: self.endpoint.clone(),
                zone: self.config.zone.clone(),
                free_bytes: 0,
                read_only: false,
            };
            match core.client.open_session(spec, report(core.degraded.clone())).await {
                Ok(session) => return session,
                Err(error) => {
                    tracing::warn!(%error, name = self.config.name, "no session yet");
                    self.waits_for("session", &error.to_string());
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

fn report(degraded: Arc<AtomicU32>) -> tidemill_meta_client::ReportSource {
    Arc::new(move || RenewalReport {
        degraded_ledgers: degraded.load(Ordering::Relaxed),
        ..RenewalReport::default()
    })
}

fn ledger_config(c: &BrokerConfig, cluster: ClusterId) -> LedgerConfig {
    LedgerConfig {
        ensemble_change_delay: Duration::from_millis(c.ensemble_change_delay_ms),
        restart_delay: Duration::from_millis(c.ensemble_change_delay_restart_ms),
        ..LedgerConfig::new(cluster)
    }
}

fn log_config(c: &BrokerConfig) -> PartitionLogConfig {
    PartitionLogConfig {
        produce_wait: c.produce_wait(),
        roll_bytes: c.roll_bytes,
        roll_age: Duration::from_millis(c.roll_ms),
        idle_close: Duration::from_millis(c.idle_close_ms),
        retention: Duration::from_millis(c.retention_ms),
        max_message_bytes: c.max_message_bytes,
        max_entry_bytes: crate::limits::MAX_PRODUCE_BYTES,
        compacted_ledger_bytes: c.compacted_ledger_bytes,
        compaction_keys_bytes: c.compaction_keys_bytes,
        compaction_bytes_per_second: c.compaction_bytes_per_second,
        ..PartitionLogConfig::with_memory(c.memory_bytes)
    }
}
