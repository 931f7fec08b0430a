//! Start and stop of a broker.

use std::{net::SocketAddr, sync::Arc};

use tidemill_runtime::{Clock, Metrics, Supervisor, SystemClock, net};
use tokio_util::sync::CancellationToken;

use crate::{
    config::BrokerConfig,
    core::CoreSlot,
    error::BrokerError,
    lifecycle::{self, Life, Tokens},
    metrics::BrokerMetrics,
    server,
};

/// A broker that runs.
#[derive(Clone, Debug)]
pub struct BrokerHandle {
    addr: SocketAddr,
    tokens: Tokens,
}

impl BrokerHandle {
    /// Where its gRPC server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops it in order: gRPC health says NOT_SERVING, all partitions are handed over within the configured deadline, the
    /// session is closed, long polls and streams end, then the server. Returns when all is done; a second call waits for
    /// the same end.
    pub async fn stop(&self) {
        self.tokens.drain.cancel();
        self.tokens.stopped.cancelled().await;
    }
}

/// Starts a broker: checks the configuration, binds the server, returns. The rest goes on in the background, in whatever
/// order the others start: until the quorum answers and the session is open every call gets `NOT_READY`, and
/// `supervisor.health()` says what is waited for.
///
/// [`BrokerHandle::stop`] drains. When `supervisor` stops first, the broker ends at once and hands nothing over, as a
/// crashed process would: others take over when its session has expired.
///
/// # Errors
/// [`BrokerError`]: a configuration that cannot work, an address in use.
pub async fn start(
    config: BrokerConfig,
    supervisor: &Supervisor,
    metrics: &Metrics,
) -> Result<BrokerHandle, BrokerError> {
    start_with(Arc::new(SystemClock), config, supervisor, metrics).await
}

/// [`start`] with clocks of the caller's choice, such as simulated ones.
///
/// # Errors
/// As [`start`].
pub async fn start_with(
    clock: Arc<dyn Clock>,
    config: BrokerConfig,
    supervisor: &Supervisor,
    metrics: &Metrics,
) -> Result<BrokerHandle, BrokerError> {
    config.check()?;
    let listener = net::bind("broker", config.listen).await?;
    let addr = listener.local_addr();
    let tokens = Tokens::default();
    let slot = CoreSlot::new(tokens.stopping.clone());
    let closing = tokens.close_server.clone().cancelled_owned();
    let (serve, switch) = server::build(slot.clone(), listener, closing).await?;
    let part = supervisor.child();
    let own = BrokerMetrics::new();
    own.register(metrics, &config.name);
    let served = CancellationToken::new();
    let ended = served.clone().drop_guard();
    part.spawn_until_stop("broker server", async move {
        serve.await;
        drop(ended);
    });
    let life = Life {
        endpoint: config.endpoint(addr),
        config,
        clock,
        part,
        metrics: own,
        slot,
        switch,
        tokens: tokens.clone(),
        served,
    };
    life.begin();
    // Under the caller's supervisor, which waits for it.
    supervisor.spawn("broker", lifecycle::run(life));
    Ok(BrokerHandle { addr, tokens })
}
