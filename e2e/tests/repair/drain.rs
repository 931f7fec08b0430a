//! A bookie is emptied under load and leaves for good.

use anyhow::{Result, ensure};
use tidemill_e2e::{bookie_id, tidemill};

use crate::{LIMIT, Scene, options};

#[tokio::test(flavor = "multi_thread")]
async fn a_bookie_is_drained_under_load_and_leaves() -> Result<()> {
    let scene = Scene::start(options(4, false)).await?;
    let id = bookie_id(&scene.client, "bookie-2").await?;
    let pid = scene.cluster.pid("bookie-2")?;
    let server = format!("--server={}", scene.cluster.server());
    let args = ["bookie", "drain", "bookie-2", &server];
    let drained = tokio::task::spawn_blocking({
        let args = args.map(str::to_owned);
        move || tidemill(&args.each_ref().map(String::as_str), b"", LIMIT)
    })
    .await??
    .ok()?;
    ensure!(drained.stdout.contains("is empty"), "{drained:?}");
    scene.load.progress(1_000, LIMIT).await?;
    let refused = tidemill(&["admin", "bookie", "retire", &id, &server], b"", LIMIT)?;
    ensure!(refused.code == Some(2) && refused.stderr.contains("--yes"), "{refused:?}");
    let retired = tidemill(&["admin", "bookie", "retire", &id, "--yes", &server], b"", LIMIT)?.ok()?;
    ensure!(retired.stdout.contains("is retired"), "{retired:?}");
    scene.cluster.ended(pid)?;
    // What it held is on the others, and one-way is one-way.
    let again = tidemill(&["bookie", "drain", &id, "--undo", &server], b"", LIMIT)?;
    ensure!(again.code == Some(4), "{again:?}");
    let shown = tidemill(&["cluster", "status", &server], b"", LIMIT)?.ok()?;
    ensure!(shown.stdout.contains("repairs"), "{shown:?}");
    let (mut cluster, _client) = scene.end().await?;
    cluster.stop()
}
