//! Start and ordered stop of a bookie.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tidemill_meta_client::{MetaClient, MetaClientConfig};
use tidemill_runtime::{
    Clock, Metrics, Supervisor, SystemClock,
    io::{Disk, RealDisk},
    net,
};
use tidemill_storage::Scanned;
use tidemill_types::BookieId;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Router;

use crate::{
    boot::{self, Booted, Ended},
    config::BookieConfig,
    counters::Counters,
    error::BookieError,
    gauges::EngineCollector,
    server::{self, ServingSwitch},
    shared::Core,
    tasks,
};

/// One call to the quorum gives up after this time, so that health names the reason early.
const META_GIVE_UP: Duration = Duration::from_secs(3);
/// What may be spent on telling the quorum that the bookie stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// A bookie that runs.
#[derive(Clone, Debug)]
pub struct BookieHandle {
    addr: SocketAddr,
    id: BookieId,
    stop: CancellationToken,
    stopped: CancellationToken,
}

impl BookieHandle {
    /// Where its gRPC server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its uuid: of its cookies, or drawn just now when its disks were empty.
    #[must_use]
    pub fn id(&self) -> BookieId {
        self.id
    }

    /// Stops it in order: takes nothing new, answers what it accepted, announces the restart (R28), closes its session and
    /// its disks. Returns when all is done; a second call waits for the same end.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }
}

/// Starts a bookie: checks the configuration, binds the server, locks and reads the disks. Then it returns; the boot goes
/// on in the background until the quorum answers (R16), and `supervisor.health()` says what is waited for. A bookie that may
/// not serve (other cluster, retired uuid), or whose disk refuses a sync, ends the process through
/// [`Supervisor::fatal`]. It stops with `supervisor`, which waits for it, or by [`BookieHandle::stop`].
///
/// # Errors
/// [`BookieError`]: a configuration that cannot work, an address in use, disks that are locked, foreign or unreadable.
pub async fn start(
    config: BookieConfig,
    supervisor: &Supervisor,
    metrics: &Metrics,
) -> Result<BookieHandle, BookieError> {
    start_on(Arc::new(RealDisk), Arc::new(SystemClock), config, supervisor, metrics).await
}

/// [`start`] on a file system and with clocks of the caller's choice, such as simulated ones.
///
/// # Errors
/// As [`start`].
pub async fn start_on(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    config: BookieConfig,
    supervisor: &Supervisor,
    metrics: &Metrics,
) -> Result<BookieHandle, BookieError> {
    config.check()?;
    let counters = Counters::default();
    let part = supervisor.child();
    let core = Core::new(config, part.clone(), counters.clone());
    let listener = net::bind("bookie", core.config.listen).await?;
    let addr = listener.local_addr();
    let (router, switch) = server::build(&core).await?;
    // Served from the beginning, so that brokers hear "not ready" and tools see who is there.
    let server = Server { router, listener, switch };
    let serving = CancellationToken::new();
    let (server_task, switch) = server.run(&core, &serving);
    core.sup.health().waits_for(&core.health_key("boot"), "the bookie is starting");
    let scanned = match boot::scan(disk, clock.clone(), &core, part.clone()).await {
        Ok(scanned) => scanned,
        Err(e) => {
            core.sup.health().has(&core.health_key("boot"));
            part.token().cancel();
            serving.cancel();
            // Freed before the error is told: the caller may try again on the same port.
            let _ended = server_task.await;
            return Err(e);
        }
    };
    let report = scanned.report();
    let id = report.bookie;
    core.found(id, report.cluster);
    metrics.register("bookie", &[("member", &core.config.name)], |r| {
        counters.register(r);
        r.register_collector(Box::new(EngineCollector(Arc::downgrade(&core))));
    });
    let stopped = CancellationToken::new();
    let handle = BookieHandle { addr, id, stop: part.token().clone(), stopped: stopped.clone() };
    let life = Life { core, clock, addr, switch, whole: supervisor.clone(), serving, server_task };
    let done = stopped.drop_guard();
    supervisor.spawn("bookie", async move {
        life.run(scanned).await;
        drop(done);
    });
    Ok(handle)
}

struct Server {
    router: Router,
    listener: net::Listener,
    switch: ServingSwitch,
}

impl Server {
    fn run(self, core: &Arc<Core>, stop: &CancellationToken) -> (tokio::task::JoinHandle<()>, ServingSwitch) {
        let (core, stop) = (core.clone(), stop.clone());
        let task = async move { server::serve(self.router, self.listener, &core, stop).await };
        (tokio::spawn(task), self.switch)
    }
}

/// From the boot to the end.
struct Life {
    core: Arc<Core>,
    clock: Arc<dyn Clock>,
    addr: SocketAddr,
    switch: ServingSwitch,
    whole: Supervisor,
    /// Stops the server.
    serving: CancellationToken,
    server_task: tokio::task::JoinHandle<()>,
}

impl Life {
    async fn run(self, scanned: Scanned) {
        let core = &self.core;
        // Apart: renewals go on while the bookie drains.
        let meta_tasks = self.whole.apart();
        let client = MetaClient::connect(
            MetaClientConfig {
                cluster: scanned.report().incarnation.and(scanned.report().cluster),
                give_up_after: META_GIVE_UP,
                clock: self.clock.clone(),
                ..MetaClientConfig::new(core.config.meta.clone())
            },
            &meta_tasks,
        );
        match boot::run(core, scanned, &client, self.addr).await {
            Ok(booted) => {
                self.switch.set(true).await;
                core.sup.health().has(&core.health_key("boot"));
                self.tasks(&client, booted);
                core.sup.token().cancelled().await;
            }
            Err(Ended::Stopped) => {}
            Err(Ended::Fatal(why)) => {
                core.sup.fatal(&format!("bookie {} cannot serve: {why}", core.config.name));
            }
        }
        self.end(&client, &meta_tasks).await;
    }

    fn tasks(&self, client: &MetaClient, booted: Booted) {
        let core = &self.core;
        core.sup
            .spawn_until_stop("bookie gc", tasks::gc(core.clone(), client.clone(), booted.serving.clone()));
        core.sup.spawn("bookie maintenance", tasks::maintain(core.clone(), booted.serving.clone()));
        core.sup.spawn("bookie scrub", tasks::scrub(core.clone(), booted.serving.clone()));
        core.sup.spawn_until_stop(
            "bookie damage",
            tasks::report_damage(core.clone(), client.clone(), booted.serving.clone()),
        );
        core.sup.spawn_until_stop(
            "bookie patrol",
            tasks::patrol(core.clone(), client.clone(), booted.serving.clone()),
        );
        core.sup.spawn_until_stop(
            "bookie repair",
            tasks::repair(core.clone(), client.clone(), booted.serving.clone()),
        );
        core.sup
            .spawn_until_stop("bookie session", tasks::keep_session(core.clone(), client.clone(), booted));
    }

    /// The order matters: nothing new, answers out, quorum told, disks closed.
    async fn end(self, client: &MetaClient, meta_tasks: &Supervisor) {
        let core = &self.core;
        core.drain();
        let health = core.sup.health();
        health.waits_for(&core.health_key("boot"), "the bookie is stopping");
        self.switch.set(false).await;
        self.serving.cancel();
        if core.sup.fatal_reason().is_none() {
            let told = tokio::time::timeout(FAREWELL, tasks::announce_restart(core, client)).await;
            if told.is_err() {
                tracing::info!("the quorum was not told of the stop: it did not answer");
            }
        }
        let _ended = self.server_task.await;
        core.sup.stop().await;
        if let Some(session) = client.session() {
            let _told = tokio::time::timeout(FAREWELL, session.close()).await;
        }
        meta_tasks.stop().await;
        if let Some(engine) = core.engine() {
            let closed = tidemill_runtime::work::blocking(move || engine.shutdown()).await;
            if let Err(error) = closed {
                tracing::warn!(%error, "the disks were not closed in order; the next boot replays them");
            }
        }
        for what in ["boot", "quorum", "session", "limbo", "space"] {
            health.has(&core.health_key(what));
        }
        tracing::info!(bookie = %core.config.name, "bookie stopped");
    }
}
