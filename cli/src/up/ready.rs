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

/// Sessions that are there before bookies and brokers start: of processes that were killed. Those whose processes are
/// `gone` for sure are ended here, because nobody else can know it before their TTL is over; the others say nothing about
/// this run.
pub(crate) async fn old_sessions(
    client: &MetaClient,
    plan: &Plan,
    gone: impl Fn(&str) -> bool,
    sup: &Supervisor,
) -> Result<BTreeSet<SessionId>, CliError> {
    let members = members(client, sup, |_| None).await?;
    for (member, session) in proven_gone(plan, &members, gone) {
        let ended = client.end_session(session, member.id, member.incarnation);
        tokio::select! {
            ended = ended => match ended {
                Ok(()) => tracing::info!(member = member.name, %session, "the session of a killed process is ended"),
                // It expires by itself.
                Err(error) => tracing::warn!(member = member.name, %error, "an old session could not be ended"),
            },
            () = sup.token().cancelled() => return Err(stopped(sup)),
        }
    }
    Ok(members.iter().filter_map(|m| m.session).collect())
}

/// Members of earlier runs on this directory with a session and without a process. Only what was started with a loopback
/// address that `up.json` gives to this name is one of ours: a broker that somebody added by hand is left alone.
fn proven_gone<'a>(
    plan: &Plan,
    members: &'a [Member],
    gone: impl Fn(&str) -> bool,
) -> Vec<(&'a Member, SessionId)> {
    let ours = |m: &Member| {
        planned(plan).any(|(role, p)| {
            let (host, port) = (p.listen.ip().to_string(), p.listen.port());
            role == m.role && p.name == m.name && m.endpoint.host == host && m.endpoint.port == port
        })
    };
    let old = members.iter().filter_map(|m| m.session.map(|s| (m, s)));
    old.filter(|(m, _)| ours(m) && gone(&m.name)).collect()
}

fn planned(plan: &Plan) -> impl Iterator<Item = (MemberRole, &super::plan::Member)> {
    let bookies = plan.bookies.iter().map(|b| (MemberRole::Bookie, b));
    bookies.chain(plan.brokers.iter().map(|b| (MemberRole::Broker, b)))
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
    let names: Vec<&str> = planned(plan)
        .filter(|(role, m)| !live(*role, &m.name, m.listen.port()))
        .map(|(_, m)| m.name.as_str())
        .collect();
    (!names.is_empty()).then(|| format!("no session yet: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use tidemill_types::{BookieState, Endpoint, Incarnation, MemberId};

    use super::*;

    fn member(name: &str, port: u16, session: u64) -> Member {
        Member {
            id: MemberId(uuid::Uuid::from_u128(port.into())),
            role: MemberRole::Broker,
            name: name.to_owned(),
            incarnation: Incarnation(1),
            pending_incarnation: None,
            endpoint: Endpoint { host: "127.0.0.1".to_owned(), port },
            zone: String::new(),
            state: BookieState::Rw,
            limbo_count: 0,
            session: (session > 0).then_some(SessionId(session)),
            lanes: Vec::new(),
            free_bytes: 0,
            restarting: false,
        }
    }

    #[test]
    fn only_sessions_of_own_processes_that_are_gone_are_ended() {
        let planned = |name: &str, port: u16| super::super::plan::Member {
            role: "broker",
            name: name.to_owned(),
            listen: ([127, 0, 0, 1], port).into(),
            http: ([127, 0, 0, 1], 1).into(),
            keys: Vec::new(),
        };
        let plan = Plan {
            metas: Vec::new(),
            bookies: Vec::new(),
            brokers: vec![planned("broker-0", 1), planned("broker-1", 2), planned("broker-2", 3)],
        };
        let members = [
            member("broker-0", 1, 7),
            member("broker-1", 2, 8),
            // Same name, another address: not one of ours.
            member("broker-2", 33, 9),
            member("by-hand", 4, 10),
            member("broker-0", 1, 0),
        ];
        let ended: Vec<u64> =
            proven_gone(&plan, &members, |name| name != "broker-1").into_iter().map(|(_, s)| s.0).collect();
        assert_eq!(ended, [7]);
    }
}
