//! Disks that are full: one, then all; then room is made.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::ProducerConfig;
use tidemill_e2e::{Cluster, Load, Options, check, client, get, read_all};

use crate::LIMIT;

/// Small segments, and everything that happens from time to time happens soon.
const SET: [&str; 6] = [
    "bookie.segment-bytes=4194304",
    "bookie.max-entry-bytes=1048576",
    "bookie.group-bytes=262144",
    "bookie.add-queue-bytes=4194304",
    "bookie.gc-pass-ms=500",
    "broker.max-copies=3",
];
const DISKS: [(&str, u64); 3] = [("bookie-0", 64), ("bookie-1", 128), ("bookie-2", 128)];
const BULK: &str = "bulk";
const KEEP: &str = "keep";

/// A figure of a bookie's metrics page.
fn figure(cluster: &Cluster, bookie: &str, name: &str) -> Result<f64> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, cluster.port(&format!("{bookie}-http"))?));
    let (_, page) = get(address, "/metrics")?;
    let start = format!("tidemill_bookie_{name}{{");
    let line =
        page.lines().find(|l| l.starts_with(&start)).with_context(|| format!("no {name} in {page}"))?;
    Ok(line.rsplit(' ').next().context("a value")?.parse()?)
}

/// Asks until it is so; a bookie that is being started again does not answer.
async fn until(what: &str, cluster: &Cluster, so: impl Fn() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + LIMIT;
    loop {
        let last = so();
        if matches!(last, Ok(true)) {
            return Ok(());
        }
        if Instant::now() >= end {
            bail!("never came: {what} ({last:?})\n{}", cluster.logs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn are_read_only(cluster: &Cluster, bookies: &[(&str, u64)], yes: bool) -> Result<bool> {
    for (name, _) in bookies {
        if (figure(cluster, name, "read_only")? == 1.0) != yes {
            return Ok(false);
        }
    }
    Ok(true)
}

fn patience(delivery: Duration) -> ProducerConfig {
    ProducerConfig { delivery_timeout: delivery, ..ProducerConfig::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disks_lose_nothing_and_deleted_topics_make_room() -> Result<()> {
    let options = Options { set: SET.map(String::from).to_vec(), ..Options::default() };
    let cluster = tokio::task::spawn_blocking(|| Cluster::with_disks(options, &DISKS)).await??;
    let client = client(&cluster.server()).await?;
    for topic in [KEEP, BULK] {
        client.admin().create_topic(topic, 1, [], false).await?;
    }
    // It outlives everything: what it has under way while nobody has room is written when somebody has.
    let keep = Load::with(&client, KEEP, 100, patience(Duration::from_secs(600))).await?;
    keep.progress(500, LIMIT).await?;
    let bulk = Load::with(&client, BULK, 32 << 10, patience(Duration::from_secs(15))).await?;

    until("the first disk is full", &cluster, || are_read_only(&cluster, &DISKS[..1], true)).await?;
    ensure!(are_read_only(&cluster, &DISKS[1..], false)?, "the others have room");
    // No spare: it goes on with the other two.
    bulk.progress(200, LIMIT).await?;

    until("all disks are full", &cluster, || are_read_only(&cluster, &DISKS, true)).await?;
    let end = Instant::now() + LIMIT;
    let failures = loop {
        let failures: BTreeMap<String, u64> = bulk.failures().await;
        if failures.contains_key("DISK_FULL") {
            break failures;
        }
        ensure!(
            Instant::now() < end,
            "no producer hears of the full disks: {failures:?}\n{}",
            cluster.logs()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let written = bulk.finish().await?;
    check(&written, &read_all(&client, BULK, LIMIT).await?).context("on full disks")?;

    // Full is no reason not to start, to fence, or to be taken over.
    for member in ["bookie-0", "bookie-1", "broker-0"] {
        let old = cluster.pid(member)?;
        cluster.kill(member)?;
        cluster.restarted(member, old)?;
    }
    until("the killed bookies are back", &cluster, || are_read_only(&cluster, &DISKS, true)).await?;
    check(&written, &read_all(&client, BULK, LIMIT).await?).context("on full disks, after kills")?;

    client.admin().delete_topic(BULK).await?;
    until("there is room", &cluster, || are_read_only(&cluster, &DISKS, false)).await?;
    keep.progress(500, LIMIT).await?;
    let kept = keep.finish().await?;
    check(&kept, &read_all(&client, KEEP, LIMIT).await?)?;

    // The last topic goes too: the bookies empty themselves and go on.
    client.admin().delete_topic(KEEP).await?;
    until("everything is collected", &cluster, || {
        DISKS.iter().try_fold(true, |all, (b, _)| Ok(all && figure(&cluster, b, "ledgers")? == 0.0))
    })
    .await?;
    client.admin().create_topic(BULK, 1, [], false).await?;
    let again = Load::start(&client, BULK, 100).await?;
    again.progress(500, LIMIT).await?;
    check(&again.finish().await?, &read_all(&client, BULK, LIMIT).await?)?;
    #[expect(clippy::print_stdout, reason = "shown with --nocapture, and when the test fails")]
    {
        let acked: usize = written.iter().map(|s| s.acked.len()).sum();
        println!("{acked} records of 32 KiB before the disks were full, then {failures:?}");
    }
    let mut cluster = cluster;
    tokio::task::spawn_blocking(move || cluster.stop()).await?
}
