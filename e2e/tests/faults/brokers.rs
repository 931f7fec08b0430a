//! A broker dies: another one takes its partitions over; a returning one gets its share back.

use anyhow::{Result, ensure};
use tidemill_e2e::Options;

use crate::{LIMIT, Scene, TOPIC};

#[tokio::test(flavor = "multi_thread")]
async fn the_only_broker_is_killed_and_comes_back() -> Result<()> {
    let scene = Scene::start(Options::default(), 4).await?;
    let old = scene.cluster.pid("broker-0")?;
    scene.cluster.kill("broker-0")?;
    scene.cluster.restarted("broker-0", old)?;
    let (_cluster, _client, sent) = scene.end().await?;
    ensure!(sent.iter().all(|s| s.not_written.is_empty()), "a produce failed although the client may retry");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_brokers_partitions_move_and_a_returning_one_gets_its_share() -> Result<()> {
    let scene = Scene::start(Options { brokers: 2, ..Options::default() }, 8).await?;
    let old = scene.cluster.pid("broker-1")?;
    scene.cluster.kill("broker-1")?;
    scene.cluster.restarted("broker-1", old)?;
    scene.load.progress(4_000, LIMIT).await?;
    // The share of a returning broker is half of the partitions.
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let described = scene.client.admin().describe([TOPIC]).await?;
        let partitions = &described.topics.first().map(|t| t.partitions.clone()).unwrap_or_default();
        if partitions.iter().filter(|p| p.owner_name == "broker-1").count() == 4 {
            break;
        }
        ensure!(std::time::Instant::now() < end, "broker-1 did not get its share back: {partitions:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    scene.end().await.map(drop)
}
