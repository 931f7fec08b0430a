//! After the faults: the cluster has to come to rest, every record has to be where it was said to be, and all copies have to be equal.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::Client;
use tidemill_e2e::{Compared, compare_replicas};
use tidemill_history::{History, check};
use tokio::time::Instant;

use crate::{
    load::{self, Views, Written},
    trace::Trace,
};

/// A healed cluster acknowledges again within this time.
pub const ALIVE_WITHIN: Duration = Duration::from_secs(60);
/// Repairs are done within this time after the healing.
const REPAIRED_WITHIN: Duration = Duration::from_secs(180);
/// A read that gets nothing for so long has come to its end.
pub const PATIENCE: Duration = Duration::from_secs(45);
/// Copies of every entry.
const COPIES: usize = 3;

/// Checks everything that the clients saw.
///
/// # Errors
/// The first contradictions.
pub async fn history(
    client: &Client,
    partitions: u32,
    written: &[Written],
    live: Views,
    trace: &Trace,
) -> Result<()> {
    let ends = load::ends(client, partitions).await.context("the ends of the partitions")?;
    let (_tx, mut rx) = tokio::sync::watch::channel(Some(ends));
    let last = load::read(client, partitions, &mut rx, PATIENCE).await.context("the last read")?;
    let sent = written.iter().map(|w| w.lock().clone()).collect();
    let report = check(&History { sent, live, last });
    trace.line(format_args!(
        "history: {} sent, {} acknowledged, {} not written, {} unknown of which {} are there, {} read live",
        report.sent,
        report.acked,
        report.not_written,
        report.unknown,
        report.unknown_present,
        report.read_live
    ));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for v in &report.violations {
        *kinds.entry(v.fault.name()).or_default() += 1;
        trace.line(format_args!("violation: partition {} offset {:?}: {}", v.partition, v.offset, v.fault));
    }
    if let Some(v) = report.violations.first() {
        bail!("{kinds:?}, first: partition {} offset {:?}: {}", v.partition, v.offset, v.fault);
    }
    ensure!(report.acked > 0, "nothing was acknowledged");
    Ok(())
}

/// Waits until nothing is under-replicated and all ledgers are closed, then compares every copy with every other.
///
/// # Errors
/// It does not come to that, or copies differ.
pub async fn replicas(client: &Client) -> Result<Compared> {
    let end = Instant::now() + REPAIRED_WITHIN;
    let mut why;
    loop {
        match once(client).await {
            Ok(compared) => return Ok(compared),
            Err(e) => why = e,
        }
        if Instant::now() >= end {
            return Err(why.context(format!("the copies are not whole within {REPAIRED_WITHIN:?}")));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

async fn once(client: &Client) -> Result<Compared> {
    let status = client.admin().cluster_status().await?;
    let repair = status.repair.as_ref().context("the auditor has not told anything")?;
    ensure!(
        repair.ledgers == 0 && status.under_replicated == 0,
        "{} ledgers wait for repair, {} are under-replicated",
        repair.ledgers,
        status.under_replicated
    );
    let compared = compare_replicas(client, COPIES).await?;
    ensure!(compared.open == 0, "{} ledgers are still open", compared.open);
    ensure!(compared.ledgers > 0, "there is no ledger");
    Ok(compared)
}
