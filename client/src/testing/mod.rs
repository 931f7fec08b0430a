//! Brokers of the protocol in this process, over real connections, with faults on demand.

mod client_tests;
mod consumer_tests;
mod group_tests;
pub(crate) mod groups;
mod producer_tests;
mod services;
mod world;

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tidemill_proto::v1::{
    consumer_server::ConsumerServer, groups_server::GroupsServer, metadata_server::MetadataServer,
    producer_server::ProducerServer,
};
use tokio::{net::TcpListener, sync::Notify};
use tokio_stream::wrappers::TcpListenerStream;

use self::world::{Dice, Fault, PartitionLog, World};
use crate::{Client, ClientConfig};

/// Brokers that share one log.
pub(crate) struct Cluster {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) grown: Arc<Notify>,
    pub(crate) groups: groups::Shared,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

#[derive(Clone)]
pub(crate) struct Broker {
    pub(crate) me: usize,
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) grown: Arc<Notify>,
    pub(crate) groups: groups::Shared,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Cluster {
    /// So many brokers and a topic "t" of so many partitions.
    pub(crate) async fn start(brokers: usize, partitions: usize, seed: u64) -> Self {
        let mut listeners = Vec::new();
        for _ in 0..brokers {
            listeners.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
        }
        let addresses: Vec<SocketAddr> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
        let logs = (0..partitions).map(|i| PartitionLog {
            owner: Some(i % brokers),
            epoch: 1,
            ..PartitionLog::default()
        });
        let world = Arc::new(Mutex::new(World {
            addresses: addresses.iter().map(ToString::to_string).collect(),
            topics: [("t".to_owned(), logs.collect())].into(),
            dice: Dice(seed | 1),
            fault_every: 0,
            always: Fault::None,
            next_producer: 0,
            describes: 0,
            outcomes_fail: false,
        }));
        let grown = Arc::new(Notify::new());
        let groups = groups::Shared::default();
        let tasks = listeners.into_iter().enumerate().map(|(me, listener)| {
            let broker = Broker { me, world: world.clone(), grown: grown.clone(), groups: groups.clone() };
            let server = tonic::transport::Server::builder()
                .add_service(MetadataServer::new(broker.clone()))
                .add_service(ConsumerServer::new(broker.clone()))
                .add_service(GroupsServer::new(broker.clone()))
                .add_service(ProducerServer::new(broker))
                .serve_with_incoming(TcpListenerStream::new(listener));
            tokio::spawn(async move { server.await.unwrap() })
        });
        Self { world: world.clone(), grown: grown.clone(), groups: groups.clone(), tasks: tasks.collect() }
    }

    pub(crate) async fn client(&self) -> Client {
        let servers = self.world.lock().addresses.clone();
        let backoff_min = std::time::Duration::from_millis(1);
        let backoff_max = std::time::Duration::from_millis(10);
        let config = ClientConfig { backoff_min, backoff_max, ..ClientConfig::new(servers) };
        Client::connect(config).await.unwrap()
    }
}
