//! Members of the quorum die: nobody notices.

use anyhow::{Result, ensure};
use tidemill_e2e::Options;

use crate::{LIMIT, Scene};

async fn kill(leader: bool) -> Result<()> {
    let scene = Scene::start(Options { metas: 3, ..Options::default() }, 4).await?;
    let status = scene.client.admin().cluster_status().await?;
    let wanted = status.quorum.iter().find(|q| (q.role == "leader") == leader).cloned();
    let port = wanted.and_then(|q| q.address.rsplit_once(':').and_then(|(_, p)| p.parse::<u16>().ok()));
    let name = (0..3).map(|i| format!("meta-{i}")).find(|n| scene.cluster.port(n).ok() == port);
    ensure!(name.is_some(), "no such member: {:?}", status.quorum);
    let name = name.unwrap_or_default();
    let old = scene.cluster.pid(&name)?;
    scene.cluster.kill(&name)?;
    scene.load.progress(5_000, LIMIT).await?;
    scene.cluster.restarted(&name, old)?;
    // The quorum decides again: a topic can be created.
    scene.client.admin().create_topic("after", 1, [], false).await?;
    let (_cluster, _client, sent) = scene.end().await?;
    ensure!(sent.iter().all(|s| s.unknown.is_empty() && s.not_written.is_empty()), "a produce failed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_dies() -> Result<()> {
    kill(false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_dies() -> Result<()> {
    kill(true).await
}
