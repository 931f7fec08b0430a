//! Whether the Cluster of an object can be worked on.

use crate::{Outcome, Verdict};

/// State of the Cluster that an object names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterGate {
    /// It answers.
    Open,
    /// It is not there, or not yet.
    Missing {
        /// Its name.
        cluster: String,
    },
    /// It is there and does not answer.
    NotReady {
        /// Why, for people.
        why: String,
    },
    /// It does not let objects of this namespace name it.
    Forbidden {
        /// Its name.
        cluster: String,
        /// The object's namespace.
        namespace: String,
    },
}

impl ClusterGate {
    /// The verdict of an object that has to wait, or may not go on; `None` when the gate is open.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::Open => None,
            Self::Missing { cluster } => Some(Verdict::new(
                Outcome::Working,
                "WaitingForCluster",
                format!("there is no Cluster {cluster}"),
            )),
            Self::NotReady { why } => Some(Verdict::new(
                Outcome::Working,
                "WaitingForCluster",
                format!("the Cluster does not answer: {why}"),
            )),
            Self::Forbidden { cluster, namespace } => Some(Verdict::new(
                Outcome::Rejected,
                "NotAllowed",
                format!(
                    "Cluster {cluster} does not allow objects of namespace {namespace}: add it to its spec.access.topicNamespaces"
                ),
            )),
        }
    }
}
