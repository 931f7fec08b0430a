//! Members and identities, asked one by one; and the quorum as a whole.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tidemill_meta_client::{MetaClient, MetaClientConfig};
use tidemill_proto::bookie::{GetInfoRequest, bookie_control_client::BookieControlClient};
use tidemill_runtime::Supervisor;
use tidemill_types::{
    BookieState, LedgerId, MemberRole,
    meta::{Answer, Query},
};
use tokio::sync::Mutex;
use tonic::transport::{Channel, Endpoint};

use super::views::{BookieView, Known, MemberView, MetaView, Observed, QuorumView, VoterView};
use crate::names::{Names, Role};

/// One question to one member.
const TIMEOUT: Duration = Duration::from_secs(2);
/// All tries of one question to the quorum.
const GIVE_UP: Duration = Duration::from_secs(4);
/// Ledgers asked for at once.
const PAGE: u32 = 1_000;
/// Pages at most: past it nobody knows whether all have their copies.
const PAGES: usize = 200;

/// Connections to one Cluster's members. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Peers {
    meta: MetaClient,
    channels: Arc<Mutex<HashMap<String, Channel>>>,
}

impl Peers {
    /// Connections to the members at these addresses; nothing is sent before the first question.
    #[must_use]
    pub fn new(addresses: Vec<String>, supervisor: &Supervisor) -> Self {
        let config = MetaClientConfig {
            attempt_timeout: TIMEOUT,
            give_up_after: GIVE_UP,
            ..MetaClientConfig::new(addresses)
        };
        Self { meta: MetaClient::connect(config, supervisor), channels: Arc::default() }
    }

    /// The client of the quorum.
    #[must_use]
    pub fn meta(&self) -> &MetaClient {
        &self.meta
    }

    async fn bookie(&self, address: &str) -> Known<BookieView> {
        let channel = {
            let mut channels = self.channels.lock().await;
            match channels.get(address) {
                Some(c) => c.clone(),
                None => {
                    let channel = Endpoint::from_shared(format!("http://{address}"))
                        .map_err(|e| e.to_string())?
                        .connect_timeout(TIMEOUT)
                        .timeout(TIMEOUT)
                        .connect_lazy();
                    channels.insert(address.to_owned(), channel.clone());
                    channel
                }
            }
        };
        let ask =
            async { BookieControlClient::new(channel).get_info(GetInfoRequest { identity: None }).await };
        let info = match tokio::time::timeout(TIMEOUT, ask).await {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => return Err(self.gone(address, "it does not answer", status.message()).await),
            Err(_) => return Err(self.gone(address, "it does not answer", "no answer in time").await),
        };
        let id = |b: &[u8]| uuid::Uuid::from_slice(b).ok().map(|u| u.to_string());
        let identity = info.identity.unwrap_or_default();
        let uuid = id(&identity.bookie).ok_or_else(|| "it is reading its disks".to_owned())?;
        Ok(BookieView { uuid, cluster: id(&identity.cluster), state: info.state })
    }

    /// A fresh connection for the next question. The reason is logged, not shown: it differs from try to try.
    async fn gone(&self, address: &str, shown: &str, why: &str) -> String {
        tracing::debug!(address, why, "no answer");
        self.channels.lock().await.remove(address);
        shown.to_owned()
    }

    async fn member(&self, address: &str) -> Known<MetaView> {
        let s = self.meta.status_of(address).await.map_err(|e| {
            tracing::debug!(address, error = %e, "no answer");
            "it does not answer".to_owned()
        })?;
        Ok(MetaView {
            node: s.node,
            member: s.member.map(|m| m.to_string()).unwrap_or_default(),
            cluster: s.cluster.map(|c| c.to_string()),
            role: s.role,
            voters: s
                .voters
                .into_iter()
                .map(|v| VoterView {
                    node: v.node,
                    address: v.address,
                    member: v.member.map(|m| m.to_string()),
                })
                .collect(),
            applied: s.applied,
            version: s.version,
        })
    }

    async fn quorum(&self) -> Known<QuorumView> {
        let shown = |e: tidemill_meta_client::MetaError| {
            tracing::debug!(error = %e, "the quorum does not answer");
            "the metadata quorum does not answer".to_owned()
        };
        let cluster = match self.meta.read(&Query::Cluster).await.map_err(shown)? {
            (Answer::Cluster(info), _) => info.cluster.map(|c| c.to_string()),
            (other, _) => return Err(format!("an answer of another kind: {other:?}")),
        };
        let members = match self.meta.read(&Query::Members).await.map_err(shown)? {
            (Answer::Members(members), _) => members,
            (other, _) => return Err(format!("an answer of another kind: {other:?}")),
        };
        let members = members
            .into_iter()
            .map(|m| MemberView {
                uuid: m.id.to_string(),
                role: role(m.role).name().to_owned(),
                name: m.name,
                state: state(m.state).to_owned(),
                live: m.session.is_some(),
                restarting: m.restarting,
            })
            .collect();
        Ok(QuorumView { cluster, members, under: self.under().await })
    }

    /// Ledgers with ranges on fewer copies than wanted, or not compared since a crash.
    async fn under(&self) -> Known<u64> {
        let (mut after, mut count) = (None::<LedgerId>, 0);
        for _ in 0..PAGES {
            let query = Query::Ledgers { after, limit: PAGE };
            let page = match self.meta.read(&query).await {
                Ok((Answer::Ledgers(page), _)) => page,
                Ok((other, _)) => return Err(format!("an answer of another kind: {other:?}")),
                Err(_) => return Err("the metadata quorum does not answer".to_owned()),
            };
            count += page
                .iter()
                .filter(|l| l.unchecked || l.fragments.iter().any(|f| !f.under.is_empty()))
                .count();
            if page.len() < PAGE as usize {
                return Ok(count as u64);
            }
            after = page.last().map(|l| l.id);
        }
        Err(format!("there are more than {} ledgers", PAGES * PAGE as usize))
    }
}

fn role(role: MemberRole) -> Role {
    match role {
        MemberRole::Meta => Role::Meta,
        MemberRole::Bookie => Role::Bookie,
        MemberRole::Broker => Role::Broker,
    }
}

/// As in status and in answers of the data plane.
fn state(state: BookieState) -> &'static str {
    match state {
        BookieState::Rw => "rw",
        BookieState::Ro => "ro",
        BookieState::Limbo => "limbo",
        BookieState::Draining => "draining",
        BookieState::Lost => "lost",
        BookieState::Retired => "retired",
    }
}

/// Asks everybody who has a pod, all at once, and adds what they say.
pub async fn observe_quorum(peers: &Peers, names: &Names, observed: &mut Observed) {
    let of = |role: Role| -> Vec<(String, String)> {
        observed
            .pods
            .values()
            .filter(|p| p.role == Some(role))
            .map(|p| (p.name.clone(), names.address(role, &p.name)))
            .collect()
    };
    let (metas, bookies) = (of(Role::Meta), of(Role::Bookie));
    let metas = metas.into_iter().map(|(pod, address)| async move { (pod, peers.member(&address).await) });
    let bookies =
        bookies.into_iter().map(|(pod, address)| async move { (pod, peers.bookie(&address).await) });
    let (metas, bookies) =
        futures::join!(futures::future::join_all(metas), futures::future::join_all(bookies));
    observed.metas = metas.into_iter().collect::<BTreeMap<_, _>>();
    observed.bookies = bookies.into_iter().collect::<BTreeMap<_, _>>();
    // Before there is a quorum there is nobody to ask.
    let initialised = observed.metas.values().flatten().any(|m| m.cluster.is_some());
    observed.quorum = if initialised { Some(peers.quorum().await) } else { None };
}
