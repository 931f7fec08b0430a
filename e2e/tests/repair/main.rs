//! Copies are made again: lost bookies, wiped disks, drained bookies, forgotten segments. At the end all replicas of every
//! closed ledger are read from every bookie and compared byte by byte.

mod drain;
mod limbo;
mod lost;
mod wiped;

use std::time::Duration;

use anyhow::{Result, ensure};
use tidemill_client::Client;
use tidemill_e2e::{
    Cluster, Compared, Load, Options, Sent, check, client, compare_replicas, read_all, repaired,
};

/// A debug build on two loaded cores: longer than this is a hang.
const LIMIT: Duration = Duration::from_secs(120);
const TOPIC: &str = "repair";
const COPIES: usize = 3;

/// A cluster whose auditor does not wait for long, with a topic of small ledgers under load.
struct Scene {
    cluster: Cluster,
    client: Client,
    load: Load,
}

fn options(bookies: u8, restart: bool) -> Options {
    let set = vec![
        "meta.compare-every-ms=1000".to_owned(),
        "meta.repair-grace-ms=2000".to_owned(),
        "bookie.segment-bytes=33554432".to_owned(),
    ];
    Options { bookies, restart, set, ..Options::default() }
}

impl Scene {
    async fn start(options: Options) -> Result<Self> {
        let cluster = tokio::task::spawn_blocking(|| Cluster::start(options)).await??;
        let client = client(&cluster.server()).await?;
        let small = ("roll.bytes".to_owned(), (1u32 << 20).to_string());
        client.admin().create_topic(TOPIC, 4, [small], false).await?;
        let load = Load::start(&client, TOPIC, 1_000).await?;
        // Several ledgers of each partition are closed by now.
        load.progress(10_000, LIMIT).await?;
        Ok(Self { cluster, client, load })
    }

    /// Stops the load and checks what was written, then waits for the repairs and compares all copies.
    async fn end(self) -> Result<(Cluster, Client)> {
        let sent = self.load.finish().await?;
        whole(&self.client, &sent).await?;
        Ok((self.cluster, self.client))
    }
}

/// Everything acknowledged is there, and on all copies the same.
async fn whole(client: &Client, sent: &[Sent]) -> Result<()> {
    check(sent, &read_all(client, TOPIC, LIMIT).await?)?;
    repaired(client, LIMIT).await?;
    let compared = compare_replicas(client, COPIES).await?;
    show(compared);
    ensure!(compared.ledgers >= 4, "few ledgers are closed: {compared:?}");
    check(sent, &read_all(client, TOPIC, LIMIT).await?)
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture, and when the test fails")]
fn show(compared: Compared) {
    println!("{compared:?}");
}
