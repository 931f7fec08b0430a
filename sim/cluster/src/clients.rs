//! What clients do in a run: form the quorum, write, read, and check everything at the end.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use tidemill_meta_client::{MetaClient, MetaClientConfig};
use tidemill_runtime::{Health, Supervisor};
use tidemill_types::ClusterId;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{hosts::PORT, load, plan::Plan, settle, trace::Trace};

/// The cluster is up within this time.
const UP: Duration = Duration::from_secs(60);

/// How far a run is; the clients and the faults wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Boot,
    Loaded,
    Healed,
}

/// All clients of a run.
pub(crate) struct Clients {
    pub(crate) plan: Plan,
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) seen: watch::Receiver<Stage>,
    pub(crate) trace: Trace,
}

impl Clients {
    /// Records that were sent, and copies that were compared.
    pub(crate) async fn run(mut self) -> Result<(usize, u64)> {
        self.form().await.context("the cluster does not come up")?;
        let brokers: Vec<String> = self.plan.broker_names().iter().map(|b| format!("{b}:{PORT}")).collect();
        let client = self.connect(&brokers).await.context("no broker serves")?;
        self.stage.send_replace(Stage::Loaded);
        let stop = CancellationToken::new();
        let mut written = Vec::new();
        let mut producing = tokio::task::JoinSet::new();
        for index in 0..self.plan.producers {
            let part = load::Written::default();
            written.push(part.clone());
            let own = load::client(&brokers).await?;
            producing.spawn(load::produce(
                own,
                index,
                self.plan.pause,
                stop.clone(),
                part,
                self.trace.clone(),
            ));
        }
        let (ends, mut known) = watch::channel(None);
        let (reader, partitions) = (load::client(&brokers).await?, self.plan.partitions);
        let reading =
            tokio::spawn(async move { load::read(&reader, partitions, &mut known, settle::PATIENCE).await });
        self.seen.wait_for(|s| *s == Stage::Healed).await?;
        let probed = load::Written::default();
        written.push(probed.clone());
        load::probe(&client, self.plan.producers, &probed, settle::ALIVE_WITHIN, &self.trace).await?;
        self.trace.line(format_args!("client: the cluster is alive"));
        stop.cancel();
        while let Some(ended) = producing.join_next().await {
            ended?.context("a producer")?;
        }
        self.trace.line(format_args!("client: all outcomes are known"));
        ends.send_replace(Some(load::ends(&client, partitions).await.context("the ends of the partitions")?));
        let live = reading.await?.context("the reader beside the producers")?;
        self.trace.line(format_args!("client: the reader is at the end"));
        settle::history(&client, partitions, &written, live, &self.trace).await?;
        let compared = settle::replicas(&client).await?;
        self.trace.line(format_args!("replicas: {compared:?}"));
        Ok((written.iter().map(|w| w.lock().len()).sum(), compared.copies))
    }

    /// Makes a quorum of the empty members.
    async fn form(&self) -> Result<()> {
        let sup = Supervisor::new(Health::new());
        let addresses: Vec<String> = self.plan.metas().iter().map(|m| format!("{m}:{PORT}")).collect();
        let client = MetaClient::connect(MetaClientConfig::new(addresses.clone()), &sup);
        let end = Instant::now() + UP;
        let id = ClusterId(uuid::Uuid::from_u64_pair(self.plan.seed, 1));
        loop {
            let tried = client.initialize(id, &addresses).await;
            match tried {
                Ok(()) => break,
                Err(e) if Instant::now() >= end => return Err(e.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        loop {
            match client.raise_feature_level(0, false).await {
                Ok(_) => break,
                Err(e) if Instant::now() >= end => return Err(e.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        sup.stop().await;
        Ok(())
    }

    /// Waits for the brokers and for all bookies, and makes the topic.
    async fn connect(&self, brokers: &[String]) -> Result<tidemill_client::Client> {
        let end = Instant::now() + UP;
        let client = loop {
            match load::client(brokers).await {
                Ok(client) => break client,
                Err(e) if Instant::now() >= end => return Err(e),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        loop {
            let status = client.admin().cluster_status().await;
            let up = status
                .as_ref()
                .is_ok_and(|s| s.members.iter().filter(|m| m.role == "bookie").count() == self.plan.bookies);
            if up {
                break;
            }
            if Instant::now() >= end {
                bail!("not all members are there: {status:?}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        client.admin().create_topic(load::TOPIC, self.plan.partitions, [], true).await?;
        Ok(client)
    }
}
