//! What a plan asks for.

use serde_json::Value;

/// One change. Deletions carry uid and resourceVersion as preconditions (rule 15).
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Server-side apply of a child; skipped when nothing would change (rule 3).
    Apply(Box<Value>),
    /// Deletes a child that is not wished for any more.
    Prune {
        /// Kind.
        kind: String,
        /// Name.
        name: String,
        /// uid.
        uid: String,
        /// resourceVersion.
        version: String,
    },
    /// Makes the quorum, once in a Cluster's life (rule 21).
    Initialize {
        /// Its id.
        cluster: String,
        /// Addresses of all first voters.
        voters: Vec<String>,
    },
    /// A member of the quorum joins.
    AddVoter {
        /// Its address.
        address: String,
    },
    /// A member whose disk was emptied leaves; it joins again as another node.
    RemoveVoter {
        /// Raft node.
        node: u64,
        /// Its address.
        address: String,
    },
    /// Replaces a pod.
    DeletePod {
        /// Name.
        name: String,
        /// uid.
        uid: String,
        /// resourceVersion.
        version: String,
        /// For the Event.
        why: String,
        /// uuid of a bookie whose restart is announced first (R28).
        announce: Option<String>,
    },
    /// Wishes that a broker hand its partitions over, or takes that back.
    DrainBroker {
        /// uuid.
        uuid: String,
        /// Its name: its pod's.
        name: String,
        /// Takes the wish back.
        undo: bool,
    },
    /// Takes the announcement of a restart back.
    CancelRestart {
        /// uuid.
        uuid: String,
        /// Its name: its pod's.
        name: String,
    },
    /// Deletes a volume claim whose uuid is retired (rule 10).
    DeleteClaim {
        /// Name.
        name: String,
        /// uid.
        uid: String,
        /// resourceVersion.
        version: String,
        /// The retired uuid.
        uuid: String,
    },
    /// Notes the uuid that a volume carries on its claim.
    NoteUuid {
        /// The claim.
        claim: String,
        /// uuid.
        uuid: String,
    },
    /// Asks for a larger volume.
    GrowClaim {
        /// The claim.
        claim: String,
        /// Size.
        size: String,
    },
    /// Deletes a set without its pods, so that it is made anew with another claim template (rule 9).
    OrphanSet {
        /// Name.
        name: String,
        /// uid.
        uid: String,
        /// resourceVersion.
        version: String,
    },
    /// Leaves a set alone for now: its claim template cannot be changed before its claims have grown.
    HoldSet {
        /// Name.
        name: String,
    },
    /// Fewer pods in a set that is not applied any more.
    ScaleSet {
        /// Name.
        name: String,
        /// resourceVersion.
        version: String,
        /// Pods.
        replicas: i32,
    },
    /// Deletes an empty set of a removed pool.
    DeleteSet {
        /// Name.
        name: String,
        /// uid.
        uid: String,
        /// resourceVersion.
        version: String,
    },
    /// Wishes that a bookie be drained.
    Drain {
        /// uuid.
        uuid: String,
        /// Its pod.
        pod: String,
        /// Its volume claim.
        claim: String,
    },
    /// Asks the quorum to retire a drained bookie.
    Retire {
        /// uuid.
        uuid: String,
        /// Its pod.
        pod: String,
    },
    /// Takes the wish back.
    Undrain {
        /// uuid.
        uuid: String,
        /// Its pod.
        pod: String,
        /// Its volume claim.
        claim: String,
    },
}

impl Action {
    /// For logs and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Apply(_) => "Apply",
            Self::Prune { .. } => "Prune",
            Self::Initialize { .. } => "Initialize",
            Self::AddVoter { .. } => "AddVoter",
            Self::RemoveVoter { .. } => "RemoveVoter",
            Self::DeletePod { .. } => "DeletePod",
            Self::DrainBroker { undo: false, .. } => "DrainBroker",
            Self::DrainBroker { undo: true, .. } => "UndrainBroker",
            Self::CancelRestart { .. } => "CancelRestart",
            Self::DeleteClaim { .. } => "DeleteClaim",
            Self::NoteUuid { .. } => "NoteUuid",
            Self::GrowClaim { .. } => "GrowClaim",
            Self::OrphanSet { .. } => "OrphanSet",
            Self::HoldSet { .. } => "HoldSet",
            Self::ScaleSet { .. } => "ScaleSet",
            Self::DeleteSet { .. } => "DeleteSet",
            Self::Drain { .. } => "Drain",
            Self::Retire { .. } => "Retire",
            Self::Undrain { .. } => "Undrain",
        }
    }
}
