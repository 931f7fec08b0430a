//! Clusters for tests: as small as what they show allows.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::client::Job;
use super::kubectl::{apply, kubectl, list, patch, ready};
use super::namespace::Namespace;
use super::wait::until;

/// The name of a test's Cluster.
pub const CLUSTER: &str = "tide";
/// A small cluster that is not there by then never will be.
const START: Duration = Duration::from_secs(240);

/// How many of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Members of the quorum.
    pub metas: u8,
    /// Bookies, all in the pool `main`.
    pub bookies: u8,
    /// Brokers.
    pub brokers: u8,
}

impl Size {
    /// The least that keeps three copies.
    pub const SMALL: Self = Self { metas: 1, bookies: 3, brokers: 1 };
    /// One of each may fail.
    pub const SAFE: Self = Self { metas: 3, bookies: 4, brokers: 2 };
}

/// A Cluster's manifest.
#[must_use]
pub fn cluster(size: Size) -> Value {
    json!({
        "apiVersion": "tidemill.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": { "name": CLUSTER },
        "spec": {
            "meta": { "replicas": size.metas, "storage": { "size": "1Gi" } },
            "bookiePools": [{ "name": "main", "replicas": size.bookies, "storage": { "size": "1Gi" } }],
            "brokers": { "replicas": size.brokers },
        },
    })
}

/// A Topic's manifest in the Cluster of the same namespace.
#[must_use]
pub fn topic(name: &str, partitions: u32) -> Value {
    json!({
        "apiVersion": "tidemill.dev/v1alpha1",
        "kind": "Topic",
        "metadata": { "name": name },
        "spec": { "clusterRef": { "name": CLUSTER }, "partitions": partitions },
    })
}

/// Manifests in one document.
#[must_use]
pub fn together(items: impl IntoIterator<Item = Value>) -> Value {
    let items: Vec<Value> = items.into_iter().collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

impl Namespace {
    /// A namespace with a Cluster that serves.
    ///
    /// # Errors
    /// It does not in time.
    pub fn with_cluster(prefix: &str, size: Size) -> Result<Self> {
        Self::with(prefix, &cluster(size))
    }

    /// The same for a Cluster of one's own; its name has to be [`CLUSTER`].
    ///
    /// # Errors
    /// It does not serve in time.
    pub fn with(prefix: &str, cluster: &Value) -> Result<Self> {
        super::operator::Operator::installed()?;
        let namespace = Self::create(prefix)?;
        apply(namespace.name(), &cluster.to_string())?;
        namespace.wait_ready("cluster", CLUSTER, START)?;
        Ok(namespace)
    }

    /// Waits until so many Topics are there and Ready.
    ///
    /// # Errors
    /// They are not within `limit`.
    pub fn wait_topics(&self, count: usize, limit: Duration) -> Result<()> {
        until(&format!("{count} Topics to be Ready"), limit, || {
            let topics = list(self.name(), "topics", "")?;
            let done = topics.iter().filter(|topic| ready(topic)).count();
            ensure!(done == count, "{done} of {} are", topics.len());
            Ok(Some(()))
        })
    }

    /// Kills the data plane for good: no pod of the Cluster is left, and the operator, told to pause, makes none.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn kill_data_plane(&self) -> Result<()> {
        patch(self.name(), "cluster", CLUSTER, &json!({ "spec": { "paused": true } }))?;
        for set in list(self.name(), "statefulsets", "tidemill.dev/cluster")? {
            let name = set["metadata"]["name"].as_str().context("a set without a name")?;
            kubectl(&["scale", "statefulset", name, "-n", self.name(), "--replicas=0"])?.ok()?;
        }
        let selector = format!("tidemill.dev/cluster={CLUSTER}");
        let kill = ["delete", "pods", "-n", self.name(), "-l", &selector, "--grace-period=0", "--force"];
        kubectl(&kill)?.ok().map(drop)
    }

    /// A Topic that is Ready.
    ///
    /// # Errors
    /// It is not in time.
    pub fn add_topic(&self, name: &str, partitions: u32) -> Result<()> {
        apply(self.name(), &topic(name, partitions).to_string())?;
        self.wait_ready("topic", name, Duration::from_secs(60)).map(drop)
    }

    /// Makes a topic by the command line, from a pod.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_topic(&self, cluster: &str, name: &str, partitions: u32) -> Result<()> {
        let partitions = format!("--partitions={partitions}");
        let args = ["topic", "create", name, &partitions];
        Job::start(self.name(), &format!("create-{name}"), cluster, &args, "")?
            .finish(Duration::from_secs(120))
            .map(drop)
    }

    /// The names of the Cluster's pods of a role, sorted.
    ///
    /// # Errors
    /// The API server did not answer.
    pub fn pods(&self, role: &str) -> Result<Vec<String>> {
        let selector = format!("tidemill.dev/cluster={CLUSTER},app.kubernetes.io/component={role}");
        let mut names = Vec::new();
        for pod in list(self.name(), "pods", &selector)? {
            names.push(pod["metadata"]["name"].as_str().context("a pod without a name")?.to_owned());
        }
        names.sort();
        Ok(names)
    }
}
