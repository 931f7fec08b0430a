//! Waiting for repairs.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::Client;
use tidemill_proto::v1;
use tidemill_types::ErrorCode;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// In which the auditor ends the pass that it is at and begins and ends another.
const PASSES: Duration = Duration::from_millis(2_500);
/// Ledgers of one call.
const PAGE: u32 = 10_000;

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

/// Waits until the auditor, in a whole pass, finds nothing that needs a copy, and every ledger that lacked some by then has
/// them. Writers that go on close ledgers whose last entries are still on their way to the slowest bookie: such newer ones
/// are not waited for.
///
/// # Errors
/// Not within `limit`; what is left stands in the message.
pub async fn repaired(client: &Client, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    // A pass that began before the event that the caller waits for says nothing: a pass a second, and one more.
    tokio::time::sleep(PASSES).await;
    let mut owed = None;
    let mut whole = false;
    loop {
        let lacking = lacking(client).await?;
        let owed = owed.get_or_insert_with(|| lacking.clone());
        owed.retain(|l, _| lacking.contains_key(l));
        let repair = client.admin().cluster_status().await?.repair;
        whole |= repair.is_some_and(|r| r.ledgers == 0);
        if whole && owed.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "not repaired in {limit:?}: {repair:?}, ledgers {owed:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Ledgers that lack copies, or that nobody has looked at, by id.
async fn lacking(client: &Client) -> Result<BTreeMap<u64, v1::Ledger>> {
    let mut found = BTreeMap::new();
    let mut after = 0;
    loop {
        let request = v1::ListLedgersRequest { after, limit: PAGE, ..Default::default() };
        let page = client.admin().list_ledgers(request).await?.ledgers;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.id;
        let lacks = |l: &v1::Ledger| l.unchecked || l.fragments.iter().any(|f| !f.under.is_empty());
        found.extend(page.into_iter().filter(lacks).map(|l| (l.id, l)));
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
