//! Damaged and foreign files on a bookie's disk.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use tidemill_e2e::{Cluster, Options, check, client, read_all, tidemill};

use crate::{LIMIT, Scene, TOPIC};

/// Stops a cluster with data in it.
async fn stopped() -> Result<(Cluster, Vec<tidemill_e2e::Sent>)> {
    let scene = Scene::start(Options::default(), 2).await?;
    let (mut cluster, _client, sent) = scene.end().await?;
    let cluster = tokio::task::spawn_blocking(move || cluster.stop().map(|()| cluster)).await??;
    Ok((cluster, sent))
}

async fn again(mut cluster: Cluster, sent: &[tidemill_e2e::Sent]) -> Result<Cluster> {
    let cluster = tokio::task::spawn_blocking(move || cluster.up().map(|()| cluster)).await??;
    let client = client(&cluster.server()).await?;
    check(sent, &read_all(&client, TOPIC, LIMIT).await?)?;
    Ok(cluster)
}

fn segments(cluster: &Cluster, bookie: &str) -> Result<Vec<PathBuf>> {
    let mut out: Vec<PathBuf> = fs::read_dir(cluster.data().join(bookie))?
        .filter_map(|i| i.ok().map(|i| i.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "seg"))
        .collect();
    out.sort();
    Ok(out)
}

/// A flipped bit in the middle of a segment: limbo, nothing denied, everything still readable from the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_loses_nothing() -> Result<()> {
    let (cluster, sent) = stopped().await?;
    let path = segments(&cluster, "bookie-0")?.into_iter().next().context("no segment")?;
    let mut bytes = fs::read(&path)?;
    let at = 3 * 4096 + 777;
    ensure!(bytes.len() > at, "segment is short");
    bytes[at] ^= 4;
    fs::write(&path, bytes)?;
    let dir = format!("--data-dir={}", cluster.data().join("bookie-0").display());
    tidemill(&["bookie", "inspect", &dir], b"", LIMIT)?.ok()?;
    again(cluster, &sent).await?.stop()
}

/// A missing segment: limbo, and the inspection names the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_segment_loses_nothing() -> Result<()> {
    let (cluster, sent) = stopped().await?;
    let path = segments(&cluster, "bookie-2")?.into_iter().next().context("no segment")?;
    fs::remove_file(&path)?;
    let dir = format!("--data-dir={}", cluster.data().join("bookie-2").display());
    let shown = tidemill(&["bookie", "inspect", &dir], b"", LIMIT)?.ok()?.stdout;
    ensure!(shown.contains("is missing"), "{shown}");
    again(cluster, &sent).await?.stop()
}

/// An emptied disk is another bookie: the others have everything (R15, R26).
#[tokio::test(flavor = "multi_thread")]
async fn a_new_disk_behind_an_old_address_is_a_stranger() -> Result<()> {
    let (cluster, sent) = stopped().await?;
    fs::remove_dir_all(cluster.data().join("bookie-1"))?;
    again(cluster, &sent).await?.stop()
}

/// A disk without its cookie that is not empty is refused, with what was found and what to do.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_its_cookie_is_refused() -> Result<()> {
    let (cluster, _sent) = stopped().await?;
    let dir = cluster.data().join("bookie-0");
    fs::remove_file(dir.join("cookie"))?;
    let shown = tidemill(&["bookie", "inspect", &format!("--data-dir={}", dir.display())], b"", LIMIT)?;
    ensure!(shown.code != Some(0) && shown.stderr.contains("has no cookie but is not empty"), "{shown:?}");
    Ok(())
}
