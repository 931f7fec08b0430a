//! A bookie under test and its two connections.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use tempfile::TempDir;
use tidemill_bookie::{BookieConfig, BookieError, BookieHandle};
use tidemill_proto::{
    bookie::{
        GetInfoRequest, Identity, bookie_control_client::BookieControlClient,
        bookie_data_client::BookieDataClient,
    },
    convert,
};
use tidemill_runtime::{
    Health, Metrics, Supervisor, SystemClock,
    io::{Disk, RealDisk, SimDisk},
};
use tidemill_types::{BookieId, Incarnation};
use tonic::transport::{Channel, Endpoint};

use crate::wait::soon;

/// A quorum that can be called.
pub(crate) trait Addresses {
    /// `host:port` of its members.
    fn addresses(&self) -> Vec<String>;
}

/// Disks that outlive the bookies on them.
pub(crate) struct Disks {
    root: TempDir,
    pub(crate) dirs: Vec<PathBuf>,
}

impl Disks {
    pub(crate) fn new(lanes: usize) -> Self {
        let root = tempfile::tempdir().unwrap();
        let dirs: Vec<_> = (0..lanes).map(|i| root.path().join(format!("lane-{i}"))).collect();
        for d in &dirs {
            std::fs::create_dir(d).unwrap();
        }
        Self { root, dirs }
    }

    /// The disk of this lane is replaced by an empty one.
    pub(crate) fn empty(&self, lane: usize) {
        std::fs::remove_dir_all(&self.dirs[lane]).unwrap();
        std::fs::create_dir(&self.dirs[lane]).unwrap();
    }

    /// Folders of a simulated disk.
    pub(crate) fn simulated() -> Self {
        Self { root: tempfile::tempdir().unwrap(), dirs: vec!["/lane-0".into()] }
    }

    pub(crate) fn root(&self) -> &std::path::Path {
        self.root.path()
    }
}

/// A small configuration on these disks.
pub(crate) fn config(quorum: &impl Addresses, disks: &Disks) -> BookieConfig {
    BookieConfig {
        data_dirs: disks.dirs.clone(),
        listen: "127.0.0.1:0".parse().unwrap(),
        meta: quorum.addresses(),
        segment_bytes: 4 << 20,
        group_bytes: 64 << 10,
        max_entry_bytes: 1 << 20,
        add_queue_bytes: 2 << 20,
        connection_add_bytes: 2 << 20,
        read_in_flight_bytes: 2 << 20,
        gc_pass_ms: 50,
        ..BookieConfig::default()
    }
}

/// A bookie that runs.
pub(crate) struct Bookie {
    pub(crate) handle: BookieHandle,
    pub(crate) sup: Supervisor,
    pub(crate) metrics: Metrics,
    pub(crate) data: BookieDataClient<Channel>,
    pub(crate) control: BookieControlClient<Channel>,
}

impl Bookie {
    /// Starts one; it may not serve yet.
    pub(crate) async fn try_start(config: BookieConfig) -> Result<Self, BookieError> {
        Self::try_start_on(Arc::new(RealDisk), config).await
    }

    /// Starts one on a disk of the test's own and waits until it serves.
    pub(crate) async fn start_on(disk: &SimDisk, config: BookieConfig) -> Self {
        let mut b = Self::try_start_on(Arc::new(disk.clone()), config).await.unwrap();
        b.serves().await;
        b
    }

    async fn try_start_on(disk: Arc<dyn Disk>, config: BookieConfig) -> Result<Self, BookieError> {
        let sup = Supervisor::new(Health::new());
        let metrics = Metrics::new();
        let handle = tidemill_bookie::start_on(disk, Arc::new(SystemClock), config, &sup, &metrics).await?;
        let data = BookieDataClient::new(connect(handle.addr()))
            .max_decoding_message_size(16 << 20)
            .max_encoding_message_size(16 << 20);
        let control = BookieControlClient::new(connect(handle.addr()));
        Ok(Self { handle, sup, metrics, data, control })
    }

    /// Starts one and waits until it serves, limbo or not.
    pub(crate) async fn start(config: BookieConfig) -> Self {
        let mut b = Self::try_start(config).await.unwrap();
        b.serves().await;
        b
    }

    /// Waits until it has finished its boot.
    pub(crate) async fn serves(&mut self) {
        crate::wait::until("the bookie serves", async || {
            assert_eq!(self.sup.fatal_reason(), None);
            (self.state().await != "starting").then_some(())
        })
        .await;
    }

    pub(crate) fn id(&self) -> BookieId {
        self.handle.id()
    }

    /// Its identity as it tells it.
    pub(crate) async fn identity(&self) -> Identity {
        self.control
            .clone()
            .get_info(GetInfoRequest { identity: None })
            .await
            .unwrap()
            .into_inner()
            .identity
            .unwrap()
    }

    pub(crate) async fn incarnation(&self) -> Incarnation {
        convert::parse_identity(&self.identity().await).unwrap().2
    }

    /// Its state as it tells it.
    pub(crate) async fn state(&self) -> String {
        self.control.clone().get_info(GetInfoRequest { identity: None }).await.unwrap().into_inner().state
    }

    /// A figure of its metrics page.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.metrics.encode();
        let start = format!("tidemill_bookie_{name}{{");
        let line =
            page.lines().find(|l| l.starts_with(&start)).unwrap_or_else(|| panic!("no {name} in {page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Stops it in order.
    pub(crate) async fn stop(self) {
        soon("the bookie's end", self.handle.stop()).await;
        soon("the supervisor's end", self.sup.stop()).await;
        assert_eq!(self.sup.fatal_reason(), None);
    }

    /// Waits until it ended by itself and tells why.
    pub(crate) async fn fatal(self) -> String {
        soon("a fatal reason", self.sup.token().cancelled()).await;
        soon("the supervisor's end", self.sup.stop()).await;
        self.sup.fatal_reason().unwrap()
    }
}

/// Connects with the first call: a bookie that may not serve is gone before that.
fn connect(addr: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{addr}")).unwrap().connect_lazy()
}
