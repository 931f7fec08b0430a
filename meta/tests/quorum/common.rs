//! Members and clients for the tests.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use tempfile::TempDir;
use tidemill_meta::{MetaConfig, MetaHandle, MetaStartError};
use tidemill_meta_client::{MetaClient, MetaClientConfig, RenewalReport, Session};
use tidemill_proto::meta::meta_client::MetaClient as MetaStub;
use tidemill_runtime::{Health, Metrics, Supervisor};
use tidemill_types::{ClusterId, Endpoint, Incarnation, MemberId, MemberRole, meta::MemberSpec};
use tonic::transport::Channel;
use uuid::Uuid;

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A member that can be stopped and started again on its folder and port.
pub(crate) struct Member {
    pub(crate) dir: TempDir,
    pub(crate) addr: SocketAddr,
    pub(crate) sup: Supervisor,
    pub(crate) metrics: Metrics,
    change: fn(&mut MetaConfig),
    handle: Option<MetaHandle>,
}

impl Member {
    pub(crate) async fn start(change: fn(&mut MetaConfig)) -> Self {
        let mut this = Self {
            dir: tempfile::tempdir().unwrap(),
            addr: "127.0.0.1:0".parse().unwrap(),
            sup: Supervisor::new(Health::new()),
            metrics: Metrics::new(),
            change,
            handle: None,
        };
        this.start_again().await.unwrap();
        this
    }

    pub(crate) async fn start_again(&mut self) -> Result<(), MetaStartError> {
        self.sup = Supervisor::new(Health::new());
        self.metrics = Metrics::new();
        let handle = tidemill_meta::start(self.config(), &self.sup, &self.metrics).await?;
        self.addr = handle.addr();
        self.handle = Some(handle);
        Ok(())
    }

    pub(crate) fn config(&self) -> MetaConfig {
        let mut config =
            MetaConfig { data_dir: self.dir.path().join("meta"), listen: self.addr, ..MetaConfig::default() };
        (self.change)(&mut config);
        config
    }

    pub(crate) fn address(&self) -> String {
        self.addr.to_string()
    }

    /// Ends without handing anything over.
    pub(crate) async fn crash(&mut self) {
        self.sup.fatal("the test ends this member");
        self.stop().await;
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.stop().await;
        }
    }
}

/// A client with its own supervisor.
pub(crate) struct Client {
    pub(crate) meta: MetaClient,
    pub(crate) sup: Supervisor,
}

impl Client {
    pub(crate) fn new(addresses: Vec<String>) -> Self {
        let sup = Supervisor::new(Health::new());
        let config = MetaClientConfig { give_up_after: PATIENCE, ..MetaClientConfig::new(addresses) };
        Self { meta: MetaClient::connect(config, &sup), sup }
    }

    pub(crate) async fn broker(&self, n: u128) -> Session {
        let report = Arc::new(RenewalReport::default);
        self.meta.open_session(broker(n), report).await.unwrap()
    }
}

pub(crate) fn broker(n: u128) -> MemberSpec {
    MemberSpec {
        cluster: None,
        id: MemberId(Uuid::from_u128(n)),
        role: MemberRole::Broker,
        name: format!("broker-{n}"),
        incarnation: Incarnation(u64::try_from(n).unwrap()),
        endpoint: Endpoint { host: "127.0.0.1".into(), port: 1 },
        zone: String::new(),
        free_bytes: 0,
        read_only: false,
    }
}

pub(crate) fn cluster() -> ClusterId {
    ClusterId(Uuid::from_u128(0xC1))
}

/// Waits for an answer that is not `None`, asking again and again.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let asking = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("waited too long: {what}"))
}

/// A quorum of three with a client that knows all of them.
pub(crate) struct Three {
    pub(crate) members: Vec<Member>,
    pub(crate) client: Client,
}

impl Three {
    pub(crate) async fn start() -> Self {
        let mut members = Vec::new();
        for _ in 0..3 {
            members.push(Member::start(|_| {}).await);
        }
        let addresses: Vec<String> = members.iter().map(Member::address).collect();
        let client = Client::new(addresses.clone());
        client.meta.initialize(cluster(), &addresses).await.unwrap();
        Self { members, client }
    }

    /// Index of the member that leads.
    pub(crate) async fn leader(&self) -> usize {
        until("a leader", || async {
            for (i, m) in self.members.iter().enumerate() {
                if self.client.meta.status_of(&m.address()).await.is_ok_and(|s| s.role == "leader") {
                    return Some(i);
                }
            }
            None
        })
        .await
    }

    pub(crate) async fn stop(mut self) {
        self.client.sup.stop().await;
        for m in &mut self.members {
            m.stop().await;
        }
    }
}

/// Waits until the member at `address` has applied what another had logged when this was called.
pub(crate) async fn caught_up(client: &Client, address: &str, with: &str) {
    let wanted = client.meta.status_of(with).await.unwrap().last_log;
    until("a member catches up", || async {
        client.meta.status_of(address).await.ok().filter(|s| s.applied >= wanted)
    })
    .await;
}

/// A bare client of one member.
pub(crate) fn stub(address: &str) -> MetaStub<Channel> {
    MetaStub::new(
        tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy(),
    )
}
