//! A Cluster and what is there, to be bent by a test.

use tidemill_crd::{
    Cluster, ClusterSpec, ClusterStatus, Outcome, Quantity,
    cluster::{BookiePool, Brokers, Meta, Storage},
};

use super::super::{Action, Input, Plan, plan};
use crate::{
    names::{Names, Role},
    observe::{
        BookieView, ClaimView, MemberView, MetaView, Observed, PodView, QuorumView, SetView, VoterView,
    },
    render::claim_name,
};

pub(super) const ID: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
pub(super) const FRESH: &str = "11111111-9dad-41d1-80b4-00c04fd430c8";

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) names: Names,
    pub(super) observed: Observed,
    pub(super) minute: u32,
}

pub(super) fn pool(name: &str, replicas: i32) -> BookiePool {
    BookiePool {
        name: name.to_owned(),
        replicas,
        storage: Storage { size: Quantity::new("10Gi"), class: None },
        zones: vec![],
        resources: None,
        template: None,
    }
}

pub(super) fn spec(metas: i32, bookies: i32, brokers: i32) -> ClusterSpec {
    ClusterSpec {
        version: None,
        image: None,
        image_pull_policy: None,
        image_pull_secrets: vec![],
        meta: Meta { replicas: metas, ..Meta::default() },
        bookie_pools: vec![pool("hot", bookies)],
        brokers: Brokers { replicas: brokers, ..Brokers::default() },
        offload: None,
        placement: Default::default(),
        listeners: vec![],
        updates: Default::default(),
        storage_policy: Default::default(),
        access: None,
        topic_defaults: None,
        config: Default::default(),
        paused: false,
    }
}

impl World {
    /// Nothing is there yet.
    pub(super) fn new(metas: i32, bookies: i32, brokers: i32) -> Self {
        let mut cluster = Cluster::new("c", spec(metas, bookies, brokers));
        cluster.metadata.namespace = Some("ns".to_owned());
        cluster.metadata.uid = Some("cluster-uid".to_owned());
        cluster.metadata.generation = Some(1);
        Self {
            cluster,
            names: Names::new("ns", "c", "cluster.local"),
            observed: Observed::default(),
            minute: 0,
        }
    }

    /// Pods run, nobody belongs to a cluster yet.
    pub(super) fn empty(metas: i32, bookies: i32, brokers: i32) -> Self {
        let mut w = Self::new(metas, bookies, brokers);
        w.set(Role::Meta, None, metas);
        w.set(Role::Bookie, Some("hot"), bookies);
        w.set(Role::Broker, None, brokers);
        for i in 0..metas {
            let view = MetaView {
                node: node(i),
                member: format!("meta-uuid-{i}"),
                role: "uninitialized".to_owned(),
                version: "0.1.0".to_owned(),
                ..MetaView::default()
            };
            w.observed.metas.insert(format!("c-meta-{i}"), Ok(view));
        }
        for i in 0..bookies {
            w.bookie("hot", i, &format!("uuid-{i}"), None);
        }
        w
    }

    /// Everything runs and is as the spec says.
    pub(super) fn settled(metas: i32, bookies: i32, brokers: i32) -> Self {
        let mut w = Self::empty(metas, bookies, brokers);
        let voters: Vec<VoterView> = (0..metas)
            .map(|i| VoterView {
                node: node(i),
                address: w.names.address(Role::Meta, &format!("c-meta-{i}")),
                member: Some(format!("meta-uuid-{i}")),
            })
            .collect();
        for i in 0..metas {
            let Some(Ok(m)) = w.observed.metas.get_mut(&format!("c-meta-{i}")) else { panic!("no member") };
            m.cluster = Some(ID.to_owned());
            m.role = if i == 1 % metas { "leader" } else { "follower" }.to_owned();
            m.voters.clone_from(&voters);
        }
        let quorum = QuorumView { cluster: Some(ID.to_owned()), members: vec![], under: Ok(0) };
        w.observed.quorum = Some(Ok(quorum));
        for i in 0..bookies {
            w.bookie("hot", i, &format!("uuid-{i}"), Some(ID));
            w.member("hot", i, &format!("uuid-{i}"), "rw");
        }
        w.observed.clean_for_s = 3_600;
        w.cluster.status =
            Some(ClusterStatus { cluster_id: Some(ID.to_owned()), ..ClusterStatus::default() });
        w
    }

    /// A set with its pods and claims, all ready and of one revision.
    pub(super) fn set(&mut self, role: Role, pool: Option<&str>, replicas: i32) {
        let name = self.names.set(role, pool);
        let view = SetView {
            name: name.clone(),
            uid: format!("{name}-uid"),
            version: "7".to_owned(),
            role: Some(role),
            pool: pool.map(str::to_owned),
            replicas,
            settled: true,
            update_revision: Some("r1".to_owned()),
            storage: (role != Role::Broker).then(|| "10Gi".to_owned()),
            deleting: false,
        };
        self.observed.sets.insert(name.clone(), view);
        for ordinal in 0..replicas {
            let pod = Names::pod(&name, ordinal);
            self.observed.pods.insert(
                pod.clone(),
                PodView {
                    name: pod.clone(),
                    uid: format!("{pod}-uid"),
                    version: "3".to_owned(),
                    role: Some(role),
                    pool: pool.map(str::to_owned),
                    ordinal,
                    ready: true,
                    was_ready: true,
                    deleting: false,
                    revision: Some("r1".to_owned()),
                    scheduled: true,
                    trouble: None,
                    foreign: false,
                },
            );
            if role != Role::Broker {
                let claim = claim_name(&name, ordinal);
                self.observed.claims.insert(
                    claim.clone(),
                    ClaimView {
                        name: claim.clone(),
                        uid: format!("{claim}-uid"),
                        version: "5".to_owned(),
                        role: Some(role),
                        pool: pool.map(str::to_owned),
                        ordinal,
                        requested: Some("10Gi".to_owned()),
                        capacity: Some("10Gi".to_owned()),
                        bound: true,
                        ..ClaimView::default()
                    },
                );
            }
        }
    }

    /// What a bookie says.
    pub(super) fn bookie(&mut self, pool: &str, ordinal: i32, uuid: &str, cluster: Option<&str>) {
        let set = self.names.set(Role::Bookie, Some(pool));
        let view = BookieView {
            uuid: uuid.to_owned(),
            cluster: cluster.map(str::to_owned),
            state: if cluster.is_some() { "rw" } else { "starting" }.to_owned(),
        };
        self.observed.bookies.insert(Names::pod(&set, ordinal), Ok(view));
        if cluster.is_some()
            && let Some(claim) = self.observed.claims.get_mut(&claim_name(&set, ordinal))
        {
            claim.uuid = Some(uuid.to_owned());
        }
    }

    /// What the quorum says of a bookie.
    pub(super) fn member(&mut self, pool: &str, ordinal: i32, uuid: &str, state: &str) {
        let name = Names::pod(&self.names.set(Role::Bookie, Some(pool)), ordinal);
        let quorum = self.quorum();
        quorum.members.retain(|m| m.uuid != uuid);
        quorum.members.push(MemberView {
            uuid: uuid.to_owned(),
            role: "bookie".to_owned(),
            name,
            state: state.to_owned(),
            live: true,
            restarting: false,
        });
    }

    /// What the quorum says of a broker.
    pub(super) fn broker(&mut self, ordinal: i32, state: &str, live: bool) {
        let name = format!("c-broker-{ordinal}");
        let quorum = self.quorum();
        quorum.members.retain(|m| m.name != name);
        quorum.members.push(MemberView {
            uuid: format!("broker-uuid-{ordinal}"),
            role: "broker".to_owned(),
            name,
            state: state.to_owned(),
            live,
            restarting: false,
        });
    }

    /// What the quorum answers about restarting a member.
    pub(super) fn consent(&mut self, uuid: &str, reasons: &[&str]) {
        let reasons = reasons.iter().map(|r| (*r).to_owned()).collect();
        self.observed.consents.insert(uuid.to_owned(), Ok(reasons));
    }

    pub(super) fn quorum(&mut self) -> &mut QuorumView {
        match &mut self.observed.quorum {
            Some(Ok(q)) => q,
            _ => panic!("the quorum does not answer"),
        }
    }

    pub(super) fn pod(&mut self, name: &str) -> &mut PodView {
        self.observed.pods.get_mut(name).unwrap()
    }

    pub(super) fn plan(&self) -> Plan {
        plan(&Input {
            cluster: &self.cluster,
            names: &self.names,
            default_image: "tidemill:0.1.0",
            repository: "tidemill",
            observed: &self.observed,
            fresh_id: FRESH,
            minute: self.minute,
        })
    }

    /// All actions except applied children and notes.
    pub(super) fn deeds(&self) -> Vec<Action> {
        self.plan()
            .actions
            .into_iter()
            .filter(|a| !matches!(a, Action::Apply(_) | Action::NoteUuid { .. }))
            .collect()
    }

    /// Names of the pods that the plan replaces.
    pub(super) fn replaced(&self) -> Vec<String> {
        self.deeds()
            .into_iter()
            .filter_map(|a| match a {
                Action::DeletePod { name, .. } => Some(name),
                _ => None,
            })
            .collect()
    }

    pub(super) fn stalled(&self) -> (String, String) {
        let plan = self.plan();
        assert_eq!(plan.verdict.outcome, Outcome::Rejected, "{:?}", plan.verdict);
        (plan.verdict.reason, plan.verdict.message)
    }
}

fn node(i: i32) -> u64 {
    u64::try_from(i).unwrap() + 100
}
