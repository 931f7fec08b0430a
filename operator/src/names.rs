//! Names and labels of what belongs to a Cluster.
//!
//! A Cluster's name has at most 24 characters and a pool's at most 20 (CRD), so the longest StatefulSet name has 52: the
//! label with its revision still fits into 63.

use std::collections::BTreeMap;

/// gRPC port of every role.
pub const PORT_GRPC: i32 = 7450;
/// HTTP port of every role: /metrics, /livez, /readyz.
pub const PORT_HTTP: i32 = 7451;
/// Label with the Cluster's name on everything that belongs to it.
pub const LABEL_CLUSTER: &str = "tidemill.dev/cluster";
/// Label with the role.
pub const LABEL_ROLE: &str = "app.kubernetes.io/component";
/// Label with the pool of a bookie.
pub const LABEL_POOL: &str = "tidemill.dev/pool";
/// Annotation with the hash of what was applied last.
pub const ANNOTATION_HASH: &str = "tidemill.dev/applied";
/// Annotation of a volume claim with the uuid that its volume carries (rule 10).
pub const ANNOTATION_UUID: &str = "tidemill.dev/uuid";
/// Annotation of a volume claim whose bookie is drained by wish of the operator, so that it can be taken back.
pub const ANNOTATION_DRAINING: &str = "tidemill.dev/draining";
/// Annotation of a StatefulSet with the form of its pod template (rule 16).
pub const ANNOTATION_REVISION: &str = "tidemill.dev/template-revision";
/// Finalizer of a Cluster whose volumes are to be deleted with it.
pub const FINALIZER_VOLUMES: &str = "tidemill.dev/volumes";

/// A role of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Member of the quorum.
    Meta,
    /// Stores ledgers.
    Bookie,
    /// Serves partitions.
    Broker,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Meta, Self::Bookie, Self::Broker];

    /// As in labels, flags and status.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Bookie => "bookie",
            Self::Broker => "broker",
        }
    }

    /// From a label.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == text)
    }
}

/// Names of one Cluster's children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The Cluster.
    pub cluster: String,
    /// Its namespace.
    pub namespace: String,
    /// DNS domain of the Kubernetes cluster.
    pub domain: String,
}

impl Names {
    /// Names of the children of `cluster`.
    #[must_use]
    pub fn new(namespace: &str, cluster: &str, domain: &str) -> Self {
        Self { cluster: cluster.to_owned(), namespace: namespace.to_owned(), domain: domain.to_owned() }
    }

    /// A StatefulSet; `pool` for bookies.
    #[must_use]
    pub fn set(&self, role: Role, pool: Option<&str>) -> String {
        match pool {
            Some(pool) => format!("{}-{}-{pool}", self.cluster, role.name()),
            None => format!("{}-{}", self.cluster, role.name()),
        }
    }

    /// The headless Service of a role: its pods' names in DNS. Also the name of its account, policy and budget.
    #[must_use]
    pub fn headless(&self, role: Role) -> String {
        format!("{}-{}", self.cluster, role.name())
    }

    /// The Service for clients.
    #[must_use]
    pub fn client(&self) -> String {
        self.cluster.clone()
    }

    /// A pod's name in DNS, with the gRPC port.
    #[must_use]
    pub fn address(&self, role: Role, pod: &str) -> String {
        format!("{}:{PORT_GRPC}", self.host(role, pod))
    }

    /// A pod's name in DNS.
    #[must_use]
    pub fn host(&self, role: Role, pod: &str) -> String {
        format!("{pod}.{}.{}.svc.{}", self.headless(role), self.namespace, self.domain)
    }

    /// The client Service in DNS.
    #[must_use]
    pub fn client_host(&self) -> String {
        format!("{}.{}.svc.{}", self.client(), self.namespace, self.domain)
    }

    /// A pod.
    #[must_use]
    pub fn pod(set: &str, ordinal: i32) -> String {
        format!("{set}-{ordinal}")
    }

    /// Addresses of the quorum's members.
    #[must_use]
    pub fn meta_addresses(&self, replicas: i32) -> Vec<String> {
        let set = self.set(Role::Meta, None);
        (0..replicas).map(|i| self.address(Role::Meta, &Self::pod(&set, i))).collect()
    }

    /// Labels of a child. Labels of the Cluster itself are never among them (rule 5).
    #[must_use]
    pub fn labels(&self, role: Option<Role>, pool: Option<&str>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            ("app.kubernetes.io/name".to_owned(), "tidemill".to_owned()),
            ("app.kubernetes.io/instance".to_owned(), self.cluster.clone()),
            ("app.kubernetes.io/managed-by".to_owned(), "tidemill-operator".to_owned()),
            (LABEL_CLUSTER.to_owned(), self.cluster.clone()),
        ]);
        if let Some(role) = role {
            labels.insert(LABEL_ROLE.to_owned(), role.name().to_owned());
        }
        if let Some(pool) = pool {
            labels.insert(LABEL_POOL.to_owned(), pool.to_owned());
        }
        labels
    }

    /// What selects the pods of a role, or of one pool. Part of immutable fields: never changes.
    #[must_use]
    pub fn selector(&self, role: Role, pool: Option<&str>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            (LABEL_CLUSTER.to_owned(), self.cluster.clone()),
            (LABEL_ROLE.to_owned(), role.name().to_owned()),
        ]);
        if let Some(pool) = pool {
            labels.insert(LABEL_POOL.to_owned(), pool.to_owned());
        }
        labels
    }
}

/// The number at the end of a pod's or volume claim's name.
#[must_use]
pub fn ordinal(name: &str) -> Option<i32> {
    name.rsplit_once('-').and_then(|(_, n)| n.parse().ok()).filter(|n| *n >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_fit() {
        let names = Names::new("ns", &"c".repeat(24), "cluster.local");
        let set = names.set(Role::Bookie, Some(&"p".repeat(20)));
        // controller-revision-hash = set, dash, ten characters, as a label.
        assert!(set.len() + 11 <= 63, "{set}");
        assert!(Names::pod(&set, 999).len() <= 63);
    }

    #[test]
    fn ordinals() {
        assert_eq!(ordinal("a-bookie-hot-12"), Some(12));
        assert_eq!(ordinal("a-bookie"), None);
        assert_eq!(ordinal("data-a-meta-0"), Some(0));
    }
}
