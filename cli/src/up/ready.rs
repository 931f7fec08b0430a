//! When a cluster counts as serving: every bookie and broker of this run has a live session.

use std::{collections::BTreeSet, time::Duration};

use tidemill_meta_client::MetaClient;
use tidemill_runtime::Supervisor;
use tidemill_types::{
    Member, MemberRole, SessionId,
    meta::{Answer, Query},
};

use super::{bootstrap::stopped, plan::Plan};
use crate::error::CliError;

/// Sessions that are there before bookies and brokers start: of processes that were killed. They outlive them for
/// a while and say nothing about this run.
pub(crate) async fn old_sessions(
    client: &MetaClient,
    sup: &Supervisor,
) -> Result<BTreeSet<SessionId>, CliError> {
    let members = members(client, sup, |_| None).await?;
    Ok(members.iter().filter_map(|m| m.session).collect())
}

/// Waits until every member has a session that is not an old one, and says for whom.
pub(crate) async fn wait(
    client: &MetaClient,
    plan: &Plan,
    old: &BTreeSet<SessionId>,
    sup: &Supervisor,
) -> Result<(), CliError> {
    members(client, sup, |members| missing(plan, members, old)).await.map(drop)
}

/// The members as the quorum has them, once nothing is missing.
async fn members(
    client: &MetaClient,
    sup: &Supervisor,
    missing: impl Fn(&[Member]) -> Option<String>,
) -> Result<Vec<Member>, CliError> {
    loop {
        match client.read(&Query::Members).await {
            Ok((Answer::Members(members), _)) => match missing(&members) {
                None => {
                    sup.health().has("members");
                    return Ok(members);
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

fn missing(plan: &Plan, members: &[Member], old: &BTreeSet<SessionId>) -> Option<String> {
    let live = |role, name: &str, port| {
        members.iter().any(|m| {
            let fresh = m.session.is_some_and(|s| !old.contains(&s));
            m.role == role && m.name == name && fresh && m.endpoint.port == port
        })
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
