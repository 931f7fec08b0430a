//! First start of a cluster: the quorum is initialised once, and never beside data of an older one.

use std::{path::Path, time::Duration};

use tidemill_meta_client::{MetaClient, MetaStatus};
use tidemill_runtime::Supervisor;
use tidemill_types::{ClusterId, ErrorCode};

use super::{layout::Layout, plan::Plan};
use crate::error::CliError;

/// Waits until every member of the quorum answers, makes a quorum of them when all are empty, and returns the cluster's id.
pub(crate) async fn quorum(
    client: &MetaClient,
    plan: &Plan,
    layout: &mut Layout,
    sup: &Supervisor,
) -> Result<ClusterId, CliError> {
    let addresses = plan.meta_addresses();
    let statuses = all_statuses(client, &addresses, sup).await?;
    if let Some(cluster) = statuses.iter().find_map(|s| s.cluster) {
        layout.state.initialised = true;
        layout.save()?;
        // All members run this very binary: what it knows may be used.
        client.raise_feature_level(0, false).await.map_err(|e| {
            CliError::new("raising the feature level", e.to_string(), ErrorCode::QuorumUnavailable)
        })?;
        return Ok(cluster);
    }
    if let Some(found) = old_data(layout, plan) {
        return Err(CliError::new(
            "the metadata quorum is empty",
            format!("but {found}: making a new cluster beside old data would lose it"),
            ErrorCode::Conflict,
        )
        .help("restore the meta directories, or choose an empty --data-dir"));
    }
    let cluster = ClusterId(uuid::Uuid::new_v4());
    client.initialize(cluster, &addresses).await.map_err(|e| {
        CliError::new("making the metadata quorum", e.to_string(), ErrorCode::QuorumUnavailable)
    })?;
    layout.state.initialised = true;
    layout.save()?;
    Ok(cluster)
}

async fn all_statuses(
    client: &MetaClient,
    addresses: &[String],
    sup: &Supervisor,
) -> Result<Vec<MetaStatus>, CliError> {
    let mut out = Vec::new();
    for address in addresses {
        loop {
            match client.status_of(address).await {
                Ok(status) => {
                    out.push(status);
                    break;
                }
                Err(e) => sup.health().waits_for("quorum", &e.to_string()),
            }
            tokio::select! {
                () = sup.token().cancelled() => return Err(stopped(sup)),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    }
    sup.health().has("quorum");
    Ok(out)
}

/// The run was ended before the cluster served.
pub(crate) fn stopped(sup: &Supervisor) -> CliError {
    match crate::roles::ended(sup) {
        Err(e) => e,
        Ok(()) => {
            CliError::new("start", "interrupted", ErrorCode::NotReady).exit(crate::error::Exit::Interrupted)
        }
    }
}

/// What shows that a cluster lived here before.
fn old_data(layout: &Layout, plan: &Plan) -> Option<String> {
    if layout.state.initialised {
        return Some(format!(
            "{} says that a cluster was made here",
            layout.root().join("up.json").display()
        ));
    }
    plan.bookies
        .iter()
        .map(|b| layout.member_dir(&b.name))
        .find(|d| not_empty(d))
        .map(|d| format!("{} is not empty", d.display()))
}

fn not_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}
