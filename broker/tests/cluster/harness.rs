//! A cluster of one quorum member, some bookies and some brokers on free ports.

use std::{collections::HashMap, future::Future, time::Duration};

use bytes::Bytes;
use tempfile::TempDir;
use tidemill_bookie::{BookieConfig, BookieHandle};
use tidemill_broker::{BrokerConfig, BrokerHandle};
use tidemill_meta::{MetaConfig, MetaHandle};
use tidemill_meta_client::{MetaClient, MetaClientConfig};
use tidemill_proto::{
    convert::code_of,
    v1::{
        self, admin_client::AdminClient, consumer_client::ConsumerClient, control_client::ControlClient,
        metadata_client::MetadataClient, producer_client::ProducerClient,
    },
};
use tidemill_record::{BatchBuilder, Compression, Limits, ProducerFields};
use tidemill_runtime::{Health, Metrics, Supervisor};
use tidemill_types::{ClusterId, ErrorCode};
use tonic::{Status, transport::Channel};
use tonic_types::StatusExt;

/// A condition that has not come true by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) sup: Supervisor,
    pub(crate) meta_addr: String,
    pub(crate) client: MetaClient,
    pub(crate) meta: Option<MetaHandle>,
    pub(crate) bookies: Vec<BookieHandle>,
    _dir: TempDir,
}

pub(crate) struct Broker {
    pub(crate) handle: BrokerHandle,
    pub(crate) sup: Supervisor,
    pub(crate) metrics: Metrics,
    pub(crate) address: String,
    channel: Channel,
}

impl Cluster {
    /// A quorum member and bookies; the cluster has no id yet.
    pub(crate) async fn uninitialised(bookies: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sup = Supervisor::new(Health::new());
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = MetaConfig {
            data_dir: dir.path().join("meta"),
            listen,
            rebalance_after_ms: 100,
            ..MetaConfig::default()
        };
        let meta = tidemill_meta::start(config, &sup, &Metrics::new()).await.unwrap();
        let meta_addr = meta.addr().to_string();
        let mut started = Vec::new();
        for i in 0..bookies {
            let config = BookieConfig {
                data_dirs: vec![dir.path().join(format!("bookie-{i}"))],
                listen,
                name: format!("bookie-{i}"),
                meta: vec![meta_addr.clone()],
                segment_bytes: 32 << 20,
                ..BookieConfig::default()
            };
            started.push(tidemill_bookie::start(config, &sup, &Metrics::new()).await.unwrap());
        }
        let client = MetaClient::connect(MetaClientConfig::new(vec![meta_addr.clone()]), &sup);
        Self { sup, meta_addr, client, meta: Some(meta), bookies: started, _dir: dir }
    }

    pub(crate) async fn initialise(&self) {
        let id = ClusterId(uuid::Uuid::new_v4());
        self.client.initialize(id, std::slice::from_ref(&self.meta_addr)).await.unwrap();
    }

    pub(crate) async fn start(bookies: usize) -> Self {
        let c = Self::uninitialised(bookies).await;
        c.initialise().await;
        within("bookies", c.sup.health().ready()).await;
        c
    }

    pub(crate) fn config(&self, name: &str) -> BrokerConfig {
        BrokerConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            name: name.to_owned(),
            meta: vec![self.meta_addr.clone()],
            memory_bytes: 128 << 20,
            ..BrokerConfig::default()
        }
    }

    /// Starts a broker; does not wait until it serves.
    pub(crate) async fn start_broker(&self, config: BrokerConfig) -> Broker {
        let sup = Supervisor::new(Health::new());
        let metrics = Metrics::new();
        let handle = tidemill_broker::start(config, &sup, &metrics).await.unwrap();
        let address = handle.addr().to_string();
        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect_lazy();
        Broker { handle, sup, metrics, address, channel }
    }

    pub(crate) async fn broker(&self, name: &str) -> Broker {
        let b = self.start_broker(self.config(name)).await;
        within("a broker", b.sup.health().ready()).await;
        b
    }

    pub(crate) async fn stop(mut self) {
        for b in &self.bookies {
            b.stop().await;
        }
        if let Some(m) = self.meta.take() {
            m.stop().await;
        }
        self.sup.stop().await;
    }
}

impl Broker {
    pub(crate) fn producer(&self) -> ProducerClient<Channel> {
        ProducerClient::new(self.channel.clone()).max_encoding_message_size(64 << 20)
    }

    pub(crate) fn consumer(&self) -> ConsumerClient<Channel> {
        ConsumerClient::new(self.channel.clone()).max_decoding_message_size(128 << 20)
    }

    pub(crate) fn admin(&self) -> AdminClient<Channel> {
        AdminClient::new(self.channel.clone())
    }

    pub(crate) fn control(&self) -> ControlClient<Channel> {
        ControlClient::new(self.channel.clone())
    }

    pub(crate) fn metadata(&self) -> MetadataClient<Channel> {
        MetadataClient::new(self.channel.clone())
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) async fn create(&self, topic: &str, partitions: u32, config: &[(&str, &str)]) -> v1::Topic {
        let request = v1::CreateTopicRequest {
            name: topic.to_owned(),
            partitions,
            config: config.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<HashMap<_, _>>(),
            if_not_exists: false,
        };
        self.admin().create_topic(request).await.unwrap().into_inner().topic.unwrap()
    }

    /// One record per value, to partition `partition`.
    pub(crate) async fn produce(
        &self,
        topic: &str,
        partition: u32,
        values: &[String],
    ) -> Result<v1::ProduceResponse, Status> {
        let request = v1::ProduceRequest {
            topic: topic.to_owned(),
            partition: Some(partition),
            batches: batch(values, None),
            ..v1::ProduceRequest::default()
        };
        Ok(self.producer().produce(request).await?.into_inner())
    }

    /// All values of a partition from offset 0 to its end, with the offsets that the broker tells.
    pub(crate) async fn read_all(&self, topic: &str, partition: u32) -> Vec<(i64, String)> {
        let mut out = Vec::new();
        let mut offset = 0;
        loop {
            let p = self.fetch(topic, partition, offset, true, 0).await;
            assert_eq!(p.error, None);
            out.extend(p.records.iter().map(|r| {
                (r.offset, String::from_utf8(r.value.clone().unwrap_or_default().to_vec()).unwrap())
            }));
            offset = p.next_offset;
            if offset >= p.high_watermark {
                return out;
            }
        }
    }

    pub(crate) async fn fetch(
        &self,
        topic: &str,
        partition: u32,
        offset: i64,
        as_records: bool,
        max_wait_ms: u32,
    ) -> v1::FetchedPartition {
        let partition = v1::FetchPartition {
            topic: topic.to_owned(),
            partition,
            offset,
            ..v1::FetchPartition::default()
        };
        let request = v1::FetchRequest {
            partitions: vec![partition],
            max_wait_ms,
            as_records,
            ..v1::FetchRequest::default()
        };
        self.consumer().fetch(request).await.unwrap().into_inner().partitions.remove(0)
    }

    /// Owner per partition as this broker knows it, once `fits` is true.
    pub(crate) async fn owners_when(&self, topic: &str, fits: impl Fn(&[String]) -> bool) -> Vec<String> {
        eventually("owners", async || {
            let request = v1::DescribeRequest { topics: vec![topic.to_owned()] };
            let t = self.metadata().describe(request).await.ok()?.into_inner().topics.pop()?;
            let owners: Vec<String> = t.partitions.into_iter().map(|p| p.owner).collect();
            fits(&owners).then_some(owners)
        })
        .await
    }

    /// As a crash: nothing is handed over.
    pub(crate) async fn kill(self) {
        within("the end of a killed broker", self.sup.stop()).await;
    }

    pub(crate) async fn stop(&self) {
        within("a drain", self.handle.stop()).await;
    }

    /// Value of a metric.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.metrics.encode();
        let line = text
            .lines()
            .find(|l| l.starts_with(name) && !l.starts_with('#'))
            .unwrap_or_else(|| panic!("{name}: {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

/// One batch with a record per value.
pub(crate) fn batch(values: &[String], producer: Option<ProducerFields>) -> Bytes {
    let mut b = BatchBuilder::new(Limits { batch: 16 << 20, ..Limits::DEFAULT });
    for v in values {
        b.append(1_000, None, Some(v.as_bytes()), &[]).unwrap();
    }
    b.finish(Compression::None, producer).unwrap()
}

pub(crate) fn values(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{prefix}-{i}")).collect()
}

pub(crate) fn code(status: &Status) -> ErrorCode {
    code_of(status).unwrap_or_else(|| panic!("not a typed status: {status:?}")).0
}

/// Field and what is allowed.
pub(crate) fn field(status: &Status) -> (String, String) {
    let v =
        status.get_details_bad_request().unwrap_or_else(|| panic!("no field: {status:?}")).field_violations;
    (v[0].field.clone(), v[0].description.clone())
}

pub(crate) async fn within<T>(what: &str, f: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, f).await.unwrap_or_else(|_| panic!("{what}: not in time"))
}

/// Asks again until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        let mut again = tokio::time::interval(Duration::from_millis(10));
        loop {
            again.tick().await;
            if let Some(t) = ask().await {
                return t;
            }
        }
    })
    .await
}
