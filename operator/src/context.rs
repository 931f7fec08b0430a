//! What all controllers share.

use std::{collections::HashMap, sync::Arc};

use kube::{
    Client, ResourceExt,
    runtime::events::{Recorder, Reporter},
};
use parking_lot::Mutex;
use tidemill_crd::Cluster;
use tidemill_runtime::Supervisor;

use crate::{
    controller::{group::GroupCalls, topic::Batches},
    link::Link,
    metrics::OperatorMetrics,
    names::Names,
};

/// What the operator was told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Image without its tag.
    pub repository: String,
    /// Tag of the image of a Cluster that names none.
    pub version: String,
    /// DNS domain of the Kubernetes cluster.
    pub domain: String,
    /// The namespace that is watched; `None` = all.
    pub namespace: Option<String>,
}

impl Settings {
    /// Image of a Cluster that names none.
    #[must_use]
    pub fn default_image(&self) -> String {
        format!("{}:{}", self.repository, self.version)
    }
}

/// Shared by all controllers.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What the operator was told.
    pub settings: Settings,
    /// Events.
    pub recorder: Recorder,
    /// Metrics.
    pub metrics: OperatorMetrics,
    supervisor: Supervisor,
    identity: String,
    links: Mutex<HashMap<String, (i32, Connection)>>,
}

/// The connection to one Cluster.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its members and brokers.
    pub link: Arc<Link>,
    /// Its queues of topics.
    pub batches: Batches,
    /// Its calls for groups.
    pub groups: GroupCalls,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

impl Context {
    /// Nothing is connected yet.
    #[must_use]
    pub fn new(
        client: Client,
        settings: Settings,
        metrics: OperatorMetrics,
        supervisor: &Supervisor,
        identity: &str,
    ) -> Self {
        let reporter =
            Reporter { controller: "tidemill-operator".to_owned(), instance: Some(identity.to_owned()) };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            client,
            settings,
            metrics,
            supervisor: supervisor.clone(),
            identity: identity.to_owned(),
            links: Mutex::default(),
        }
    }

    /// Names of the children of a Cluster.
    #[must_use]
    pub fn names(&self, namespace: &str, cluster: &str) -> Names {
        Names::new(namespace, cluster, &self.settings.domain)
    }

    /// The connection to a Cluster, kept by its uid; made anew when the quorum is to have another size.
    #[must_use]
    pub fn connection(&self, cluster: &Cluster) -> Connection {
        let metas = cluster.spec.meta.replicas;
        let uid = cluster.uid().unwrap_or_default();
        let mut links = self.links.lock();
        match links.get(&uid) {
            Some((of, connection)) if *of == metas => connection.clone(),
            _ => {
                let names = self.names(&cluster.namespace().unwrap_or_default(), &cluster.name_any());
                let link = Arc::new(Link::new(&names, metas, &self.identity, &self.supervisor));
                let batches = Batches::start(link.clone(), &self.supervisor);
                let groups = GroupCalls::new(link.clone());
                let connection = Connection { link, batches, groups };
                links.insert(uid, (metas, connection.clone()));
                connection
            }
        }
    }

    /// Forgets the connection to a Cluster that is gone.
    pub fn forget(&self, uid: &str) {
        self.links.lock().remove(uid);
    }
}
