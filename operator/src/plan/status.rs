//! The rest of the status: what people and `/scale` read.

use tidemill_crd::{
    ClusterStatus,
    cluster::{Endpoint, MemberStatus, PlanStatus, PoolStatus},
};

use super::{Input, Quorum};
use crate::{
    names::{PORT_GRPC, Role},
    render::Wishes,
};

/// Fields of the status without conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusFields {
    /// Identity of the quorum; kept when it does not answer.
    pub cluster_id: Option<String>,
    /// Version that all answering members run.
    pub version: Option<String>,
    /// Image of all pods.
    pub image: String,
    /// Form of the pod templates.
    pub template_revision: i32,
    /// Members; `None` while the quorum does not answer.
    pub members: Option<Vec<MemberStatus>>,
    /// Pools.
    pub pools: Vec<PoolStatus>,
    /// Addresses.
    pub endpoints: Vec<Endpoint>,
    /// What is about to happen.
    pub plan: Option<PlanStatus>,
    /// Broker pods.
    pub replicas: i32,
    /// Their selector.
    pub selector: String,
}

pub(super) fn fields(input: &Input<'_>, wishes: &Wishes, quorum: &Quorum) -> StatusFields {
    let pods = |role: Role| input.observed.pods.values().filter(move |p| p.role == Some(role));
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let cluster_id = match quorum {
        Quorum::Running { cluster, .. } => Some(cluster.clone()),
        _ => None,
    };
    let mut versions: Vec<&str> =
        input.observed.metas.values().flatten().map(|m| m.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let selector = input.names.selector(Role::Broker, None);
    StatusFields {
        cluster_id,
        version: match versions.as_slice() {
            [one] if !one.is_empty() => Some((*one).to_owned()),
            _ => None,
        },
        image: wishes.image.clone(),
        template_revision: wishes.template_revision,
        members: members(input, quorum),
        pools: wishes
            .pools
            .iter()
            .map(|(pool, replicas)| PoolStatus {
                name: pool.name.clone(),
                replicas: *replicas,
                ready: count(
                    pods(Role::Bookie).filter(|p| p.ready && p.pool.as_ref() == Some(&pool.name)).count(),
                ),
                draining: draining(input, &pool.name),
            })
            .collect(),
        endpoints: endpoints(input),
        plan: None,
        replicas: count(pods(Role::Broker).filter(|p| !p.deleting).count()),
        selector: selector.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(","),
    }
}

fn members(input: &Input<'_>, quorum: &Quorum) -> Option<Vec<MemberStatus>> {
    let (Quorum::Running { voters, .. }, Some(Ok(view))) = (quorum, &input.observed.quorum) else {
        return None;
    };
    let mut members: Vec<MemberStatus> = voters
        .iter()
        .filter_map(|v| {
            Some(MemberStatus {
                uuid: v.member.clone()?,
                name: v.address.split('.').next().unwrap_or_default().to_owned(),
                role: Role::Meta.name().to_owned(),
                state: None,
            })
        })
        .collect();
    // Brokers have no disk and no identity that outlives them.
    members.extend(view.members.iter().filter(|m| m.role == Role::Bookie.name()).map(|m| MemberStatus {
        uuid: m.uuid.clone(),
        name: m.name.clone(),
        role: m.role.clone(),
        state: Some(m.state.clone()),
    }));
    members.sort_by(|a, b| (&a.role, &a.name, &a.uuid).cmp(&(&b.role, &b.name, &b.uuid)));
    members.dedup_by(|a, b| a.uuid == b.uuid);
    // Those that are gone for good are history: only the newest stay.
    let retired = members.iter().filter(|m| m.state.as_deref() == Some("retired")).count();
    let mut surplus = retired.saturating_sub(MAX_RETIRED);
    members.retain(|m| {
        let drop = surplus > 0 && m.state.as_deref() == Some("retired");
        surplus -= usize::from(drop);
        !drop
    });
    Some(members)
}

/// Retired bookies that are shown.
const MAX_RETIRED: usize = 50;

fn draining(input: &Input<'_>, pool: &str) -> Vec<String> {
    let Some(Ok(view)) = &input.observed.quorum else { return Vec::new() };
    let set = input.names.set(Role::Bookie, Some(pool));
    let mut names: Vec<String> = view
        .members
        .iter()
        .filter(|m| m.state == "draining" && m.name.rsplit_once('-').is_some_and(|(s, _)| s == set))
        .map(|m| m.name.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn endpoints(input: &Input<'_>) -> Vec<Endpoint> {
    let host = input.names.client_host();
    let listeners = &input.cluster.spec.listeners;
    if listeners.is_empty() {
        return vec![Endpoint { name: "grpc".to_owned(), address: format!("{host}:{PORT_GRPC}") }];
    }
    listeners
        .iter()
        .map(|l| Endpoint { name: l.name.clone(), address: format!("{host}:{}", l.port) })
        .collect()
}

/// Brings a status to these fields; what is not known stays.
pub fn fill(status: &mut ClusterStatus, fields: StatusFields) {
    // The id is never forgotten: it is what rule 21 compares with.
    if fields.cluster_id.is_some() {
        status.cluster_id = fields.cluster_id;
    }
    if fields.version.is_some() {
        status.version = fields.version;
    }
    status.image = Some(fields.image);
    status.template_revision = Some(fields.template_revision);
    if let Some(members) = fields.members {
        status.members = members;
    }
    status.pools = fields.pools;
    status.endpoints = fields.endpoints;
    status.plan = fields.plan;
    status.replicas = Some(fields.replicas);
    status.selector = Some(fields.selector);
}
