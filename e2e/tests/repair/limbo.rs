//! A bookie that lost a part of its data is filled up again and leaves limbo by itself (R15).

use std::fs;

use anyhow::{Context, Result, ensure};
use tidemill_e2e::{Load, client};

use crate::{LIMIT, Scene, TOPIC, options, whole};

#[tokio::test(flavor = "multi_thread")]
async fn limbo_ends_by_repair() -> Result<()> {
    let scene = Scene::start(options(3, true)).await?;
    let sent = scene.load.finish().await?;
    let mut cluster = scene.cluster;
    let cluster = tokio::task::spawn_blocking(move || cluster.stop().map(|()| cluster)).await??;
    let mut segments: Vec<_> = fs::read_dir(cluster.data().join("bookie-2"))?
        .filter_map(|i| i.ok().map(|i| i.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "seg"))
        .collect();
    segments.sort();
    fs::remove_file(segments.first().context("no segment")?)?;
    let mut cluster = cluster;
    let cluster = tokio::task::spawn_blocking(move || cluster.up().map(|()| cluster)).await??;
    let client = client(&cluster.server()).await?;
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let needs = client.admin().describe_bookie("bookie-2").await?;
        let state = needs.member.map(|m| m.state).unwrap_or_default();
        if state == "rw" {
            break;
        }
        ensure!(state == "limbo", "bookie-2 is {state}");
        ensure!(std::time::Instant::now() < end, "limbo does not end\n{}", cluster.logs());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    whole(&client, &sent).await?;
    // It takes part again.
    let again = Load::start(&client, TOPIC, 100).await?;
    again.progress(1_000, LIMIT).await?;
    again.finish().await?;
    let mut cluster = cluster;
    cluster.stop()
}
