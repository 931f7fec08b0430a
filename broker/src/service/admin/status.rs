//! `ClusterStatus`.

use std::{collections::HashMap, sync::Arc};

use tidemill_proto::v1;
use tidemill_types::{
    MemberId,
    meta::{Answer, Query},
};

use super::{ledgers, read};
use crate::{
    convert::{self, topic::live_owner},
    core::Core,
    deadline::Deadline,
    fault::Fault,
};

pub(super) async fn status(
    core: &Arc<Core>,
    _request: v1::ClusterStatusRequest,
    deadline: Deadline,
) -> Result<v1::ClusterStatusResponse, Fault> {
    let Answer::Cluster(info) = read(core, Query::Cluster, deadline).await? else {
        return Err(Fault::internal("read the cluster", "an answer of another kind"));
    };
    let mut load: HashMap<MemberId, u64> = HashMap::new();
    let mut under = 0;
    ledgers::for_each(core, 0, deadline, |r| {
        under += u64::from(convert::ledger::under_replicated(&r));
        let mut named: Vec<MemberId> = r.fragments.iter().flat_map(|f| f.ensemble.iter().copied()).collect();
        named.sort_unstable();
        named.dedup();
        for b in named {
            *load.entry(b).or_default() += 1;
        }
        true
    })
    .await?;
    let quorum = deadline.bound(core.client.status_of_all()).await.map_err(|_| Fault::deadline())?;
    let table = core.mirror.table();
    let mut ownerless = 0;
    for p in table.partitions() {
        match live_owner(p, &table) {
            Some(m) => *load.entry(m.id).or_default() += 1,
            None => ownerless += 1,
        }
    }
    Ok(v1::ClusterStatusResponse {
        cluster: core.cluster.to_string(),
        members: table
            .members()
            .map(|m| convert::member::to_proto(m, load.get(&m.id).copied().unwrap_or(0)))
            .collect(),
        topics: info.counts.0,
        partitions: info.counts.1,
        ledgers: info.counts.2,
        under_replicated: under,
        partitions_without_owner: ownerless,
        quorum_time_ms: info.wall_ms,
        repair: quorum.iter().find_map(|(_, s)| s.as_ref().ok().and_then(|s| s.repair)).map(repair),
        quorum: quorum.into_iter().map(|(address, s)| quorum_member(address, s.ok())).collect(),
    })
}

fn quorum_member(address: String, status: Option<tidemill_meta_client::MetaStatus>) -> v1::QuorumMember {
    match status {
        Some(s) => {
            v1::QuorumMember { address, role: s.role, term: s.term, applied: s.applied, reachable: true }
        }
        None => v1::QuorumMember {
            address,
            role: "unreachable".to_owned(),
            term: 0,
            applied: 0,
            reachable: false,
        },
    }
}

fn repair(r: tidemill_meta_client::RepairStatus) -> v1::RepairStatus {
    v1::RepairStatus {
        ledgers: r.ledgers,
        oldest_ms: r.oldest_ms,
        bytes: r.bytes,
        in_progress: r.in_progress,
        eta_ms: r.eta_ms,
        stuck: r.stuck,
    }
}
