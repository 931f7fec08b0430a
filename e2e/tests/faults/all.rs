//! Everything dies at once.

use anyhow::Result;
use tidemill_e2e::{Options, check, read_all};

use crate::{LIMIT, Scene, TOPIC};

#[tokio::test(flavor = "multi_thread")]
async fn all_processes_are_killed_at_once_and_started_again() -> Result<()> {
    let mut scene = Scene::start(Options::default(), 4).await?;
    scene.load.progress(3_000, LIMIT).await?;
    scene.cluster.kill_all()?;
    let mut cluster = scene.cluster;
    let cluster = tokio::task::spawn_blocking(move || cluster.up().map(|()| cluster)).await??;
    // The producer lives on: what it had under way is sent again and still written once.
    scene.load.progress(3_000, LIMIT).await?;
    let sent = scene.load.finish().await?;
    check(&sent, &read_all(&scene.client, TOPIC, LIMIT).await?)?;
    scene.cluster = cluster;
    scene.cluster.stop()
}
