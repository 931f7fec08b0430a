//! Start and ordered stop of a member.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use openraft::{Config, SnapshotPolicy, async_runtime::WatchReceiver};
use tidemill_runtime::{
    Clock, Metrics, Supervisor, SystemClock,
    io::{Disk, RealDisk},
    net,
};
use tidemill_types::MemberId;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    MetaConfig, MetaStartError,
    check::LeaderCheck,
    counters::{Counters, Gauges},
    identity::{self, Home, Identity},
    lead::{self, Duties},
    log::LogStore,
    machine::{Machine, MachineStore, SnapshotFolder},
    network::{AddressBook, Network, RaftService},
    node::{Node, PROPOSAL_BYTES, PROPOSALS, WATCHES},
    server,
    service::ClusterCell,
    types::Raft,
};

/// Log entries behind a snapshot that stay, so that a member that was away shortly needs no snapshot.
const KEEP_BEHIND_SNAPSHOT: u64 = 1_000;
/// Entries of one replication message; its bytes are bounded as well.
const ENTRIES_PER_MESSAGE: u64 = 1_024;
/// A snapshot that is not transferred within this time is begun anew, ms.
const SNAPSHOT_TIMEOUT_MS: u64 = 600_000;
/// What stopping may wait for the disk.
const CLOSE: Duration = Duration::from_secs(10);

/// A member that runs.
#[derive(Debug)]
pub struct MetaHandle {
    addr: SocketAddr,
    id: MemberId,
    stop: CancellationToken,
    stopped: CancellationToken,
}

impl MetaHandle {
    /// Where its gRPC server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Uuid of its volume.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Stops it in order: takes nothing new, stops voting, closes its log. Returns when its folder is unlocked.
    pub async fn stop(self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }
}

/// Starts a member of the metadata quorum: checks the configuration, binds the server, locks and reads the folder. An empty
/// folder becomes a new member that waits to be initialised or added. It stops with `supervisor`, which waits for it, or by
/// [`MetaHandle::stop`]. A disk that refuses a sync ends the process through [`Supervisor::fatal`].
///
/// # Errors
/// [`MetaStartError`]: a configuration that cannot work, an address in use, a folder that is locked, damaged or foreign.
pub async fn start(
    config: MetaConfig,
    supervisor: &Supervisor,
    metrics: &Metrics,
) -> Result<MetaHandle, MetaStartError> {
    start_on(Arc::new(RealDisk), Arc::new(SystemClock), config, supervisor, metrics).await
}

/// [`start`] on a file system and with clocks of the caller's choice, such as simulated ones.
///
/// # Errors
/// As [`start`].
pub async fn start_on(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    config: MetaConfig,
    supervisor: &Supervisor,
    metrics: &Metrics,
) -> Result<MetaHandle, MetaStartError> {
    config.check()?;
    let listener = net::bind("meta", config.listen).await?;
    let addr = listener.local_addr();
    let sup = supervisor.child();
    let (on, dir, part) = (disk.clone(), config.data_dir.clone(), sup.clone());
    let opened = tidemill_runtime::work::blocking(move || Opened::open(on, &dir, &part))
        .await
        .map_err(|e| MetaStartError::Raft(e.to_string()))??;
    let identity = opened.identity;
    let cluster = ClusterCell::new(identity.cluster);
    let network = Network::new(opened.book.clone(), cluster.clone());
    let raft = Raft::build(
        identity.node(),
        Arc::new(raft_config(&config)?),
        network,
        opened.log.clone(),
        opened.store.clone(),
    )
    .await
    .map_err(|e| MetaStartError::Raft(e.to_string()))?;
    let (check, checking) = LeaderCheck::new(raft.clone());
    let node = Arc::new(Node {
        clock,
        disk,
        dir: config.data_dir.clone(),
        id: identity.node(),
        member: identity.member,
        address: config.advertise.clone().unwrap_or_else(|| addr.to_string()),
        raft: raft.clone(),
        log: opened.log,
        store: opened.store,
        machine: opened.machine,
        cluster: cluster.clone(),
        book: opened.book,
        check,
        duties: Duties::new(config.session_ttl(), Duration::from_millis(config.rebalance_after_ms)),
        counters: Counters::default(),
        proposals: Semaphore::new(PROPOSALS),
        proposal_bytes: Semaphore::new(PROPOSAL_BYTES),
        watches: Arc::new(Semaphore::new(WATCHES)),
        changing: tokio::sync::Mutex::new(()),
        sup: sup.clone(),
        config,
    });
    metrics.register("meta", &[("member", &node.config.name)], |r| {
        node.counters.register(r);
        r.register_collector(Box::new(Gauges(Arc::downgrade(&node))));
    });
    let raft_service = RaftService::new(raft.clone(), node.id, cluster, opened.folder);
    let (router, switch) = server::build(&node, raft_service).await?;
    // Everything that hears of a term is there before the first one can begin.
    raft.run();
    sup.spawn_until_stop("meta leader check", checking);
    sup.spawn_until_stop("meta duties", lead::run(node.clone()));
    sup.spawn_until_stop("meta cluster id", keep_cluster(node.clone()));
    sup.spawn_until_stop("meta health", server::keep_health(node.clone(), switch));
    sup.spawn_until_stop("meta raft", watch_raft(node.clone()));
    let serving = CancellationToken::new();
    let server = tokio::spawn(server::serve(router, listener, sup.clone(), serving.clone()));
    tracing::info!(%addr, member = %node.member, node = node.id, cluster = ?node.cluster.get(), "meta started");
    let stopped = CancellationToken::new();
    let handle = MetaHandle { addr, id: node.member, stop: sup.token().clone(), stopped: stopped.clone() };
    let life = Life { node, raft, serving, server, closed: opened.closed };
    let done = stopped.drop_guard();
    supervisor.spawn("meta", async move {
        life.run(sup).await;
        drop(done);
    });
    Ok(handle)
}

/// The folder, read.
struct Opened {
    identity: Identity,
    log: LogStore,
    closed: oneshot::Receiver<()>,
    folder: Arc<SnapshotFolder>,
    store: MachineStore,
    machine: Arc<Machine>,
    book: AddressBook,
}

impl Opened {
    fn open(disk: Arc<dyn Disk>, dir: &Path, sup: &Supervisor) -> Result<Self, MetaStartError> {
        let home = Home::open(&*disk, dir)?;
        let identity = home.identity;
        let (folder, current) = SnapshotFolder::open(disk.clone(), dir)?;
        let folder = Arc::new(folder);
        let machine = Machine::new();
        let store = MachineStore::open(machine.clone(), folder.clone(), current, dir)?;
        if let (Some(named), Some(state)) =
            (identity.cluster, machine.with(tidemill_metadata::State::cluster))
            && named != state
        {
            return Err(MetaStartError::MixedUp { identity: named, state });
        }
        let book = AddressBook::open(disk.clone(), dir)?;
        let fatal = sup.clone();
        let on_fatal = Box::new(move |why: &str| fatal.fatal(why));
        let (log, closed) = LogStore::open(disk, dir.to_path_buf(), identity.node(), home, on_fatal)?;
        Ok(Self { identity, log, closed, folder, store, machine, book })
    }
}

fn raft_config(config: &MetaConfig) -> Result<Config, MetaStartError> {
    let raft = Config {
        cluster_name: "tidemill".to_owned(),
        heartbeat_interval: config.raft_heartbeat_ms,
        election_timeout_min: config.raft_election_min_ms,
        election_timeout_max: config.raft_election_max_ms,
        install_snapshot_timeout: SNAPSHOT_TIMEOUT_MS,
        max_payload_entries: ENTRIES_PER_MESSAGE,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(config.snapshot_every),
        max_in_snapshot_log_to_keep: KEEP_BEHIND_SNAPSHOT.min(config.snapshot_every),
        enable_pre_vote: Some(true),
        // A leader that restarts has forgotten whose expiry it proposed in its term, so it must not go on in it (M26).
        enable_leader_restore: Some(false),
        ..Config::default()
    };
    raft.validate().map_err(|e| MetaStartError::Raft(e.to_string()))
}

/// Notes the cluster's id in the identity file as soon as the state has it.
async fn keep_cluster(node: Arc<Node>) {
    let mut applied = node.machine.subscribe();
    loop {
        applied.borrow_and_update();
        if let Some(cluster) = node.machine.with(tidemill_metadata::State::cluster) {
            match node.cluster.get() {
                Some(known) if known != cluster => {
                    let e = MetaStartError::MixedUp { identity: known, state: cluster };
                    node.sup.fatal(&e.to_string());
                }
                Some(_) => {}
                None => {
                    let (disk, dir, member) = (node.disk.clone(), node.dir.clone(), node.member);
                    let noted = tidemill_runtime::work::blocking(move || {
                        identity::join(&*disk, &dir, member, cluster)
                    })
                    .await;
                    match noted {
                        Ok(Ok(())) => {
                            node.cluster.set(cluster);
                            tracing::info!(%cluster, "this member belongs to a cluster");
                        }
                        Ok(Err(e)) => node.sup.fatal(&format!("the identity file cannot be written: {e}")),
                        Err(e) => node.sup.fatal(&format!("the identity file was not written: {e}")),
                    }
                }
            }
            return;
        }
        if applied.changed().await.is_err() {
            return;
        }
    }
}

/// A raft core that stopped by itself cannot be restarted in this process.
async fn watch_raft(node: Arc<Node>) {
    let mut metrics = node.raft.metrics();
    loop {
        let running = metrics.borrow_watched().running_state.clone();
        if let Err(e) = running {
            if node.sup.token().is_cancelled() {
                return;
            }
            return node.sup.fatal(&format!("raft stopped: {e}"));
        }
        if metrics.changed().await.is_err() {
            return;
        }
    }
}

/// From the start to the end.
struct Life {
    node: Arc<Node>,
    raft: Raft,
    serving: CancellationToken,
    server: tokio::task::JoinHandle<()>,
    closed: oneshot::Receiver<()>,
}

impl Life {
    /// The order matters: the lead, then nothing new, then the votes and the log.
    async fn run(self, sup: Supervisor) {
        sup.token().cancelled().await;
        if sup.fatal_reason().is_none() {
            lead::hand_over(&self.node).await;
        }
        self.serving.cancel();
        if let Err(e) = self.raft.shutdown().await {
            tracing::warn!(error = %e, "raft did not stop in order");
        }
        sup.stop().await;
        let _ended = self.server.await;
        self.node.log.close();
        if tokio::time::timeout(CLOSE, self.closed).await.is_err() {
            tracing::warn!("the raft log was not closed in time");
        }
        sup.health().has(&server::health_key(&self.node));
        tracing::info!("meta stopped");
    }
}
