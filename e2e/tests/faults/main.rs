//! Every process can be killed or frozen at any moment: nothing acknowledged is lost, reordered or doubled, and the cluster
//! goes on by itself.

mod all;
mod bookies;
mod brokers;
mod disk;
mod frozen;
mod full;
mod many;
mod metas;
mod retention;

use std::time::Duration;

use anyhow::Result;
use tidemill_client::Client;
use tidemill_e2e::{Cluster, Load, Options, Sent, check, client, read_all};

/// A debug build on two loaded cores: longer than this is a hang.
const LIMIT: Duration = Duration::from_secs(90);

/// A cluster with a topic under load.
struct Scene {
    cluster: Cluster,
    client: Client,
    load: Load,
}

const TOPIC: &str = "faults";

impl Scene {
    async fn start(options: Options, partitions: u32) -> Result<Self> {
        let cluster = tokio::task::spawn_blocking(|| Cluster::start(options)).await??;
        let client = client(&cluster.server()).await?;
        client.admin().create_topic(TOPIC, partitions, [], false).await?;
        let load = Load::start(&client, TOPIC, 100).await?;
        load.progress(2_000, LIMIT).await?;
        Ok(Self { cluster, client, load })
    }

    /// Goes on for a while, stops the load, reads everything back and checks it.
    async fn end(self) -> Result<(Cluster, Client, Vec<Sent>)> {
        self.load.progress(2_000, LIMIT).await?;
        let sent = self.load.finish().await?;
        check(&sent, &read_all(&self.client, TOPIC, LIMIT).await?)?;
        let gap = sent.iter().map(|s| s.longest_gap).max().unwrap_or_default();
        let acked: usize = sent.iter().map(|s| s.acked.len()).sum();
        #[expect(clippy::print_stdout, reason = "shown with --nocapture, and when the test fails")]
        {
            println!("{acked} records acknowledged, longest gap {gap:?}");
        }
        Ok((self.cluster, self.client, sent))
    }
}
