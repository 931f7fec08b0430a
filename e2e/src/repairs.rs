//! Waiting for repairs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::Client;
use tidemill_types::ErrorCode;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// The uuid of the only bookie of this name that is neither lost nor retired.
///
/// # Errors
/// None, or several.
pub async fn bookie_id(client: &Client, name: &str) -> Result<String> {
    let needs = client.admin().describe_bookie(name).await?;
    Ok(needs.member.context("an answer without a member")?.id)
}

/// Declares a bookie lost as soon as its session has ended.
///
/// # Errors
/// Its session does not end within `limit`, or another refusal.
pub async fn declare_lost(client: &Client, id: &str, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    loop {
        match client.admin().mark_bookie_lost(id).await {
            Ok(_) => return Ok(()),
            Err(e) if e.code == Some(ErrorCode::WrongState) => {
                ensure!(Instant::now() < end, "bookie {id} cannot be declared lost: {e}");
                tokio::time::sleep(LOOK).await;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// Waits until the auditor, in a whole pass, finds nothing that needs a copy.
///
/// # Errors
/// Not within `limit`; what is left stands in the message.
pub async fn repaired(client: &Client, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    // A pass that began before the event that the caller waits for says nothing.
    let mut quiet = 0;
    loop {
        let status = client.admin().cluster_status().await?;
        match status.repair {
            Some(r) if r.ledgers == 0 && status.under_replicated == 0 => quiet += 1,
            _ => quiet = 0,
        }
        // A pass a second.
        if quiet >= 25 {
            return Ok(());
        }
        ensure!(Instant::now() < end, "not repaired in {limit:?}: {:?}", status.repair);
        tokio::time::sleep(LOOK).await;
    }
}

/// Retires a bookie as soon as nothing needs it.
///
/// # Errors
/// Something needs it after `limit`.
pub async fn retire(client: &Client, id: &str, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    loop {
        let (retired, needs) = client.admin().retire_bookie(id).await?;
        if retired {
            return Ok(());
        }
        if Instant::now() >= end {
            bail!("bookie {id} is still needed after {limit:?}: {needs:?}");
        }
        tokio::time::sleep(LOOK).await;
    }
}
