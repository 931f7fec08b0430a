//! `QuorumStatus`, `ChangeQuorum`.

use std::collections::BTreeSet;

use tidemill_meta_client::{MemberChange, MetaStatus};
use tidemill_proto::v1::{self, change_quorum_request::Change};

use super::Caller;
use crate::{
    fault::{Fault, shown},
    service::admin::unanswered,
};

/// What each member of the quorum said.
pub(super) struct Quorum {
    pub(super) members: Vec<(String, Option<MetaStatus>)>,
    /// Node ids of the voters, as the member with the newest word has them.
    pub(super) voters: BTreeSet<u64>,
}

impl Quorum {
    pub(super) async fn ask(caller: Caller<'_>) -> Result<Self, Fault> {
        let asked = caller.core.client.status_of_all();
        let members = caller.deadline.bound(asked).await.map_err(|_| Fault::deadline())?;
        let mut members: Vec<_> = members.into_iter().map(|(a, s)| (a, s.ok())).collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        let newest = members.iter().filter_map(|(_, s)| s.as_ref()).max_by_key(|s| (s.term, s.applied));
        let voters = newest.map(|s| s.voters.iter().map(|v| v.node).collect()).unwrap_or_default();
        Ok(Self { members, voters })
    }

    pub(super) fn statuses(&self) -> impl Iterator<Item = &MetaStatus> {
        self.members.iter().filter_map(|(_, s)| s.as_ref())
    }

    pub(super) fn leader(&self) -> Option<&MetaStatus> {
        self.statuses().filter(|s| s.role == "leader").max_by_key(|s| s.term)
    }

    pub(super) fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// Voters that answered.
    pub(super) fn reachable(&self) -> BTreeSet<u64> {
        self.statuses().map(|s| s.node).filter(|n| self.voters.contains(n)).collect()
    }
}

pub(super) async fn status(
    caller: Caller<'_>,
    _: v1::QuorumStatusRequest,
) -> Result<v1::QuorumStatusResponse, Fault> {
    let q = Quorum::ask(caller).await?;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(v1::QuorumStatusResponse {
        leader: q.leader().map_or(0, |l| l.node),
        reachable_voters: count(q.reachable().len()),
        majority: count(q.majority()),
        members: q.members.iter().map(|(a, s)| member(a, s.as_ref(), &q.voters)).collect(),
    })
}

fn member(address: &str, status: Option<&MetaStatus>, voters: &BTreeSet<u64>) -> v1::QuorumVoter {
    let Some(s) = status else {
        return v1::QuorumVoter {
            address: address.to_owned(),
            role: "unreachable".to_owned(),
            ..v1::QuorumVoter::default()
        };
    };
    v1::QuorumVoter {
        address: address.to_owned(),
        node: s.node,
        member: s.member.map(|m| m.to_string()).unwrap_or_default(),
        voter: voters.contains(&s.node),
        reachable: true,
        role: s.role.clone(),
        term: s.term,
        last_log: s.last_log,
        applied: s.applied,
        version: s.version.clone(),
        feature_level: s.feature_level,
    }
}

pub(super) async fn change(
    caller: Caller<'_>,
    r: v1::ChangeQuorumRequest,
) -> Result<v1::ChangeQuorumResponse, Fault> {
    let address = |a: String| {
        let good = a.rsplit_once(':').is_some_and(|(h, p)| !h.is_empty() && p.parse::<u16>().is_ok());
        if good && a.len() <= 262 { Ok(a) } else { Err(Fault::invalid("address", shown(&a), "host:port")) }
    };
    let change = match r.change {
        Some(Change::Add(a)) => MemberChange::Add(address(a)?),
        Some(Change::Remove(node)) => MemberChange::Remove(node),
        Some(Change::Readdress(r)) => MemberChange::Readdress { node: r.node, address: address(r.address)? },
        None => return Err(Fault::invalid("change", "nothing", "one of add, remove, readdress")),
    };
    caller.check_epoch().await?;
    let asked = caller.core.client.change_members(&change);
    let answer = caller.deadline.bound(asked).await.map_err(|_| Fault::deadline_unknown())?;
    answer.map_err(|e| unanswered("change the quorum", &e))?;
    Ok(v1::ChangeQuorumResponse {})
}
