//! The client: shared connections and topology, from which everything else is made.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::ErrorCode;
use tokio::time::Instant;

use crate::{
    Admin, ClientConfig, ClientError, Consumer, ConsumerConfig, Control, OffsetQuery, OffsetResult, Producer,
    ProducerConfig, backoff::Backoff, offsets, pool::Pool, topology::Topology,
};

/// A connection to a cluster. Clones are cheap and share connections and the topology cache.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: ClientConfig,
    pub(crate) pool: Pool,
    pub(crate) topology: Topology,
    pub(crate) coordinators: crate::group::Coordinators,
}

impl Client {
    /// Connects: waits until one of the servers has answered.
    ///
    /// # Errors
    /// An address that does not parse, or no answer within [`ClientConfig::timeout`].
    pub async fn connect(config: ClientConfig) -> Result<Self, ClientError> {
        if config.servers.is_empty() || config.servers.len() > 1_000 {
            return Err(ClientError::new(
                ErrorCode::InvalidArgument,
                format!("connect: {} servers given, allowed are 1 to 1 000", config.servers.len()),
            ));
        }
        let pool = Pool::new(config.clone());
        for server in &config.servers {
            pool.channel(server)?;
        }
        let topology = Topology::new(&config.servers);
        let client = Self {
            inner: Arc::new(Inner {
                config,
                pool,
                topology,
                coordinators: crate::group::Coordinators::default(),
            }),
        };
        // A name that hardly exists keeps the answer small: only brokers and cluster id come.
        client.describe_raw("connect", vec!["__connect".to_owned()]).await?;
        Ok(client)
    }

    /// Topics, cluster, ledgers.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }

    /// Declared wishes: topics, claims, quorum, checks before a restart.
    #[must_use]
    pub fn control(&self) -> Control {
        Control::new(self.clone())
    }

    /// A producer; idempotent ones ask the cluster for a producer id first.
    ///
    /// # Errors
    /// A configuration outside its limits, or no producer id within the deadline.
    pub async fn producer(&self, config: ProducerConfig) -> Result<Producer, ClientError> {
        Producer::start(self.clone(), config).await
    }

    /// A consumer without assignment.
    #[must_use]
    pub fn consumer(&self, config: ConsumerConfig) -> Consumer {
        Consumer::start(self.clone(), config)
    }

    /// Number of partitions of a topic, from the cache when it is known.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, or no answer within the deadline.
    pub async fn partitions(&self, topic: &str) -> Result<u32, ClientError> {
        Ok(self.inner.topology.topic(self, topic).await?.partitions)
    }

    /// Offsets by time, earliest or latest, of any partitions; results in the order of the queries.
    ///
    /// # Errors
    /// The first partition that cannot be answered within the deadline.
    pub async fn list_offsets(&self, queries: &[OffsetQuery]) -> Result<Vec<OffsetResult>, ClientError> {
        offsets::list(self, queries, self.deadline()).await
    }

    pub(crate) fn backoff(&self) -> Backoff {
        Backoff { min: self.inner.config.backoff_min, max: self.inner.config.backoff_max }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.inner.config.timeout
    }

    /// Asks any broker and feeds the topology cache.
    pub(crate) async fn describe_raw(
        &self,
        what: &str,
        topics: Vec<String>,
    ) -> Result<v1::DescribeResponse, ClientError> {
        let answer = self
            .call_any(what, |call| {
                let request = call.request(v1::DescribeRequest { topics: topics.clone() });
                async move { call.metadata().describe(request).await }
            })
            .await?;
        self.inner.topology.learn(&answer);
        Ok(answer)
    }
}
