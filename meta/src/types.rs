//! The types that openraft is used with. Nothing of openraft leaves this crate.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidemill_types::meta::{Rejection, Reply};

/// A node of the raft group, derived from the volume's uuid.
pub(crate) type NodeId = u64;

/// What a log entry carries: an encoded `Request` of the crate tidemill-metadata. Kept as bytes from the client's message
/// to the log and to the followers: encoded once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proposal(pub(crate) Bytes);

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request of {} bytes", self.0.len())
    }
}

/// What applying an entry returns; `None` for entries without a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome(pub(crate) Option<Result<Reply, Rejection>>);

/// Where a node is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// `host:port`.
    pub(crate) address: String,
    /// Uuid of its volume, 16 bytes; empty when unknown.
    pub(crate) member: Vec<u8>,
}

openraft::declare_raft_types!(
    /// Standard raft: one leader a term, so a log id is (term, index).
    pub(crate) TypeConfig:
        D = Proposal,
        R = Outcome,
        NodeId = u64,
        Node = Peer,
        LeaderId = openraft::impls::leader_id_std::LeaderId<Self::Term, Self::NodeId>,
);

pub(crate) type LogId = openraft::alias::LogIdOf<TypeConfig>;
pub(crate) type Vote = openraft::alias::VoteOf<TypeConfig>;
pub(crate) type Entry = openraft::alias::EntryOf<TypeConfig>;
pub(crate) type Membership = openraft::Membership<NodeId, Peer>;
pub(crate) type StoredMembership = openraft::alias::StoredMembershipOf<TypeConfig>;
pub(crate) type SnapshotMeta = openraft::alias::SnapshotMetaOf<TypeConfig>;
pub(crate) type Raft = openraft::Raft<TypeConfig, crate::machine::MachineStore>;

/// A log id of standard raft.
pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    use openraft::vote::RaftLeaderId;
    let leader = openraft::alias::LeaderIdOf::<TypeConfig>::new(term, 0);
    LogId::new(leader.to_committed(), index)
}

/// Term of a log id.
pub(crate) fn term_of(id: &LogId) -> u64 {
    id.leader_id.term
}
