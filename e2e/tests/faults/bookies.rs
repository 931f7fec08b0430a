//! Bookies die, one at a time and one for good.

use anyhow::{Result, ensure};
use tidemill_e2e::Options;

use crate::{LIMIT, Scene};

/// R28: with three bookies and no spare, produce goes on while two of them answer.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_bookies_dies_for_good() -> Result<()> {
    let scene = Scene::start(Options { restart: false, ..Options::default() }, 4).await?;
    scene.cluster.kill("bookie-1")?;
    // Long enough that its session expires and the change of the ensemble, for which there is no spare, was thought of.
    scene.load.progress(20_000, LIMIT).await?;
    let (_cluster, _client, sent) = scene.end().await?;
    ensure!(sent.iter().all(|s| s.unknown.is_empty() && s.not_written.is_empty()), "a produce failed");
    Ok(())
}

/// Each bookie is killed and started again in turn: no produce fails.
#[tokio::test(flavor = "multi_thread")]
async fn bookies_restart_one_after_the_other() -> Result<()> {
    let scene = Scene::start(Options::default(), 4).await?;
    for name in ["bookie-0", "bookie-1", "bookie-2"] {
        let old = scene.cluster.pid(name)?;
        scene.cluster.kill(name)?;
        scene.cluster.restarted(name, old)?;
        serving(&scene, name).await?;
        scene.load.progress(2_000, LIMIT).await?;
    }
    let (_cluster, _client, sent) = scene.end().await?;
    ensure!(sent.iter().all(|s| s.unknown.is_empty() && s.not_written.is_empty()), "a produce failed");
    Ok(())
}

/// Waits until a restarted member says that it is ready.
async fn serving(scene: &Scene, name: &str) -> Result<()> {
    let port = scene.cluster.port(&format!("{name}-http"))?;
    let addr = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let end = std::time::Instant::now() + LIMIT;
    while !matches!(tidemill_e2e::get(addr, "/readyz"), Ok((200, _))) {
        ensure!(std::time::Instant::now() < end, "{name} is not ready\n{}", scene.cluster.logs());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    Ok(())
}
