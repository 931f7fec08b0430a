//! Bookies are lost one by one.

use anyhow::{Result, ensure};
use tidemill_e2e::{bookie_id, compare_replicas, declare_lost, repaired, retire};

use crate::{COPIES, LIMIT, Scene, options, whole};

/// R22: with a writer running; each loss is repaired before the next, and the lost uuid is retired.
#[tokio::test(flavor = "multi_thread")]
async fn bookies_are_lost_one_by_one_while_a_writer_runs() -> Result<()> {
    let scene = Scene::start(options(5, false)).await?;
    for name in ["bookie-1", "bookie-3"] {
        let id = bookie_id(&scene.client, name).await?;
        scene.cluster.kill(name)?;
        declare_lost(&scene.client, &id, LIMIT).await?;
        scene.load.progress(1_000, LIMIT).await?;
        retire(&scene.client, &id, LIMIT).await?;
    }
    let (mut cluster, _client) = scene.end().await?;
    cluster.stop()
}

/// R22: with none running. The open ledgers of an idle owner move away all the same.
#[tokio::test(flavor = "multi_thread")]
async fn bookies_are_lost_one_by_one_while_nobody_writes() -> Result<()> {
    let scene = Scene::start(options(5, false)).await?;
    let sent = scene.load.finish().await?;
    for name in ["bookie-0", "bookie-2"] {
        let id = bookie_id(&scene.client, name).await?;
        scene.cluster.kill(name)?;
        declare_lost(&scene.client, &id, LIMIT).await?;
        retire(&scene.client, &id, LIMIT).await?;
        repaired(&scene.client, LIMIT).await?;
        compare_replicas(&scene.client, COPIES).await?;
    }
    whole(&scene.client, &sent).await?;
    let mut cluster = scene.cluster;
    compared(&cluster)?;
    cluster.stop()
}

/// The comparison of replicas, which comes once a week by default, has looked at every closed ledger and found no difference.
fn compared(cluster: &tidemill_e2e::Cluster) -> Result<()> {
    let port = cluster.port("meta-0-http")?;
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let (_, page) = tidemill_e2e::get(std::net::SocketAddr::from(([127, 0, 0, 1], port)), "/metrics")?;
        let value = |name: &str| {
            let line = page.lines().find(|l| l.starts_with(name) && !l.starts_with('#'))?;
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        let same = value("tidemill_meta_audit_compared_total").unwrap_or(0.0);
        ensure!(value("tidemill_meta_audit_divergent_total") == Some(0.0), "copies differ");
        if same >= 4.0 {
            return Ok(());
        }
        ensure!(std::time::Instant::now() < end, "replicas are not compared: {same}");
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
}

/// A bookie that lives is not lost, one that is needed is not retired, and copies that nobody can make are told.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_needed_is_not_given_up() -> Result<()> {
    let scene = Scene::start(options(3, false)).await?;
    let id = bookie_id(&scene.client, "bookie-1").await?;
    let refused = scene.client.admin().mark_bookie_lost(&id).await;
    ensure!(refused.is_err_and(|e| e.message.contains("live session")), "a live bookie was declared lost");
    let refused = scene.client.admin().drain_bookie("bookie-1", false).await;
    ensure!(refused.is_err_and(|e| e.message.contains("copies")), "three copies need three bookies");
    let refused = scene.client.admin().retire_bookie(&id).await;
    ensure!(refused.is_err_and(|e| e.message.contains("drain it or declare it lost")), "retired although rw");
    scene.cluster.kill("bookie-1")?;
    declare_lost(&scene.client, &id, LIMIT).await?;
    let (retired, needs) = scene.client.admin().retire_bookie(&id).await?;
    ensure!(!retired && needs.named > 0 && !needs.needs.is_empty(), "{needs:?}");
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let status = scene.client.admin().cluster_status().await?;
        if status.repair.is_some_and(|r| r.stuck > 0 && r.ledgers > 0) {
            break;
        }
        ensure!(std::time::Instant::now() < end, "nobody says that copies are missing: {:?}", status.repair);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    ensure!(compare_replicas(&scene.client, COPIES).await.is_err(), "the comparison misses a lost bookie");
    let sent = scene.load.finish().await?;
    tidemill_e2e::check(&sent, &tidemill_e2e::read_all(&scene.client, crate::TOPIC, LIMIT).await?)?;
    let mut cluster = scene.cluster;
    cluster.stop()
}
