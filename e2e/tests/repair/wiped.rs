//! A disk is emptied under load: another bookie under the old name (R15).

use std::fs;

use anyhow::{Result, ensure};
use tidemill_e2e::{bookie_id, declare_lost, retire};

use crate::{LIMIT, Scene, options};

#[tokio::test(flavor = "multi_thread")]
async fn a_wiped_bookie_comes_back_as_another_one() -> Result<()> {
    let scene = Scene::start(options(4, true)).await?;
    let old = bookie_id(&scene.client, "bookie-1").await?;
    let pid = scene.cluster.pid("bookie-1")?;
    // Away from under the process, so that the next start of it finds nothing.
    fs::rename(scene.cluster.data().join("bookie-1"), scene.cluster.root().join("gone"))?;
    scene.cluster.kill("bookie-1")?;
    scene.cluster.restarted("bookie-1", pid)?;
    declare_lost(&scene.client, &old, LIMIT).await?;
    let new = bookie_id(&scene.client, "bookie-1").await?;
    ensure!(new != old, "an emptied disk has no identity");
    scene.load.progress(1_000, LIMIT).await?;
    retire(&scene.client, &old, LIMIT).await?;
    let (mut cluster, _client) = scene.end().await?;
    cluster.stop()
}
