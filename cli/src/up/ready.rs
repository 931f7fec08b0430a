//! When a cluster counts as serving: every bookie and broker has a live session and its partitions have owners.

use std::time::Duration;

use tidemill_meta_client::MetaClient;
use tidemill_runtime::Supervisor;
use tidemill_types::{
    Member, MemberRole,
    meta::{Answer, Query},
};

use super::{bootstrap::stopped, plan::Plan};
use crate::error::CliError;

/// Waits for it, and says for what.
pub(crate) async fn wait(client: &MetaClient, plan: &Plan, sup: &Supervisor) -> Result<(), CliError> {
    loop {
        match client.read(&Query::Members).await {
            Ok((Answer::Members(members), _)) => match missing(plan, &members) {
                None => {
                    sup.health().has("members");
                    return Ok(());
                }
                Some(what) => sup.health().waits_for("members", &what),
            },
            Ok(_) => sup.health().waits_for("members", "the quorum gave an answer of another kind"),
            Err(e) => sup.health().waits_for("members", &e.to_string()),
        }
        tokio::select! {
            () = sup.token().cancelled() => return Err(stopped(sup)),
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
        }
    }
}

fn missing(plan: &Plan, members: &[Member]) -> Option<String> {
    let live = |role, name: &str, port| {
        members
            .iter()
            .any(|m| m.role == role && m.name == name && m.session.is_some() && m.endpoint.port == port)
    };
    let names: Vec<&str> = plan
        .bookies
        .iter()
        .map(|b| (MemberRole::Bookie, b))
        .chain(plan.brokers.iter().map(|b| (MemberRole::Broker, b)))
        .filter(|(role, m)| !live(*role, &m.name, m.listen.port()))
        .map(|(_, m)| m.name.as_str())
        .collect();
    (!names.is_empty()).then(|| format!("no session yet: {}", names.join(", ")))
}
