//! The data of an observation.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::names::Role;

/// Kind and name of a child.
pub type ChildKey = (String, String);

/// An answer, or why there is none. No answer is never taken for "no" (rule 10).
pub type Known<T> = Result<T, String>;

/// Everything that one pass knows about a Cluster.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Children that are applied, as they are on the server.
    pub children: BTreeMap<ChildKey, Value>,
    /// StatefulSets by name.
    pub sets: BTreeMap<String, SetView>,
    /// Pods by name.
    pub pods: BTreeMap<String, PodView>,
    /// Volume claims by name.
    pub claims: BTreeMap<String, ClaimView>,
    /// Members of the quorum by pod.
    pub metas: BTreeMap<String, Known<MetaView>>,
    /// Bookies by pod.
    pub bookies: BTreeMap<String, Known<BookieView>>,
    /// What the quorum says; an error while it does not answer.
    pub quorum: Option<Known<QuorumView>>,
    /// What still needs a bookie that is to go, by uuid.
    pub needs: BTreeMap<String, String>,
    /// What speaks against restarting a member, by uuid; only members that were asked for.
    pub consents: BTreeMap<String, Known<Vec<String>>>,
    /// For how long every fragment has had its copies, s; 0 while one has not, or while nobody knows.
    pub clean_for_s: u64,
}

/// A StatefulSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetView {
    /// Name.
    pub name: String,
    /// uid, for preconditions.
    pub uid: String,
    /// resourceVersion, for preconditions.
    pub version: String,
    /// Role of its pods.
    pub role: Option<Role>,
    /// Pool of its bookies.
    pub pool: Option<String>,
    /// Wished pods.
    pub replicas: i32,
    /// Whether its controller has seen the latest spec.
    pub settled: bool,
    /// Revision that new pods get.
    pub update_revision: Option<String>,
    /// Storage requested by its claim template.
    pub storage: Option<String>,
    /// Being deleted.
    pub deleting: bool,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodView {
    /// Name.
    pub name: String,
    /// uid, for preconditions.
    pub uid: String,
    /// resourceVersion, for preconditions.
    pub version: String,
    /// Role.
    pub role: Option<Role>,
    /// Pool of a bookie.
    pub pool: Option<String>,
    /// Its number.
    pub ordinal: i32,
    /// Ready, and not being deleted.
    pub ready: bool,
    /// Has been ready once, as far as its conditions tell: a pod that never was may always be replaced (rule 11).
    pub was_ready: bool,
    /// Being deleted.
    pub deleting: bool,
    /// Revision of its set that it was made from.
    pub revision: Option<String>,
    /// On a node.
    pub scheduled: bool,
    /// What its containers wait for, such as ImagePullBackOff.
    pub trouble: Option<String>,
    /// Not ready, and its process ended because its volume belongs to another cluster: it never gets to say so itself.
    pub foreign: bool,
}

/// A volume claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimView {
    /// Name.
    pub name: String,
    /// uid, for preconditions.
    pub uid: String,
    /// resourceVersion, for preconditions.
    pub version: String,
    /// Role.
    pub role: Option<Role>,
    /// Pool of a bookie.
    pub pool: Option<String>,
    /// Its number.
    pub ordinal: i32,
    /// Requested size.
    pub requested: Option<String>,
    /// Size that it has.
    pub capacity: Option<String>,
    /// uuid that its volume carries, as noted by the operator.
    pub uuid: Option<String>,
    /// This operator wished that its bookie be drained.
    pub draining: bool,
    /// Bound to a volume.
    pub bound: bool,
    /// Its volume is gone.
    pub lost: bool,
    /// Being deleted.
    pub deleting: bool,
}

/// What a member of the quorum says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaView {
    /// Raft node.
    pub node: u64,
    /// uuid of its volume.
    pub member: String,
    /// Cluster, once it belongs to one.
    pub cluster: Option<String>,
    /// uninitialized, learner, follower, candidate or leader.
    pub role: String,
    /// Voters that it knows.
    pub voters: Vec<VoterView>,
    /// Last applied entry.
    pub applied: u64,
    /// Version of its binary.
    pub version: String,
}

impl MetaView {
    /// Its disk has never been part of a quorum.
    #[must_use]
    pub fn empty(&self) -> bool {
        self.role == "uninitialized" && self.cluster.is_none()
    }
}

/// A voter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VoterView {
    /// Raft node.
    pub node: u64,
    /// host:port.
    pub address: String,
    /// uuid of its volume.
    pub member: Option<String>,
}

/// What a bookie says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookieView {
    /// uuid in its cookie, or drawn for an empty disk.
    pub uuid: String,
    /// Cluster in its cookie.
    pub cluster: Option<String>,
    /// starting, rw, ro, limbo, draining, lost or retired.
    pub state: String,
}

/// What the quorum says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumView {
    /// The cluster's id.
    pub cluster: Option<String>,
    /// Bookies and brokers.
    pub members: Vec<MemberView>,
    /// Ledgers with ranges on fewer copies than wanted, or unchecked.
    pub under: Known<u64>,
}

/// A member as the quorum knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberView {
    /// Identity.
    pub uuid: String,
    /// Role.
    pub role: String,
    /// Name: its pod's.
    pub name: String,
    /// rw, ro, limbo, draining, lost or retired.
    pub state: String,
    /// Has a session.
    pub live: bool,
    /// A bookie's restart is announced (R28).
    pub restarting: bool,
}
