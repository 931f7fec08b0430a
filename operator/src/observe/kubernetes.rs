//! Children, pods and volume claims from the API server: one list per kind, chosen by label.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerState, PersistentVolumeClaim, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::Value;
use tidemill_types::ErrorCode;

use super::views::{ClaimView, Observed, PodView, SetView};
use crate::names::{
    ANNOTATION_DRAINING, ANNOTATION_UUID, LABEL_CLUSTER, LABEL_POOL, LABEL_ROLE, Role, ordinal,
};

/// A kind of child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Group, empty for the core.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in paths.
    pub plural: &'static str,
}

/// Kinds that are applied, and taken away when they are not wished for any more.
pub const KINDS: [Kind; 6] = [
    Kind { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts" },
    Kind { group: "", version: "v1", kind: "Service", plural: "services" },
    Kind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" },
    Kind { group: "networking.k8s.io", version: "v1", kind: "NetworkPolicy", plural: "networkpolicies" },
    Kind { group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets" },
    Kind { group: "policy", version: "v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" },
];

impl Kind {
    /// Of this name.
    #[must_use]
    pub fn of(kind: &str) -> Option<Self> {
        KINDS.into_iter().find(|k| k.kind == kind)
    }

    /// For the client.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        let api_version = match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        };
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version,
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// Reads everything that carries the Cluster's label.
///
/// # Errors
/// The API server's.
pub async fn observe_kubernetes(
    client: &Client,
    namespace: &str,
    cluster: &str,
) -> Result<Observed, kube::Error> {
    let mine = ListParams::default().labels(&format!("{LABEL_CLUSTER}={cluster}"));
    let mut out = Observed::default();
    let lists = KINDS.map(|kind| {
        let (client, mine) = (client.clone(), mine.clone());
        async move {
            let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind.resource());
            Ok::<_, kube::Error>((kind, api.list(&mine).await?))
        }
    });
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let (lists, pods, claims) =
        futures::try_join!(futures::future::try_join_all(lists), pods.list(&mine), claims.list(&mine))?;
    for (kind, list) in lists {
        for object in list {
            let name = object.name_any();
            let mut value = serde_json::to_value(&object).map_err(kube::Error::SerdeError)?;
            // Items of a list do not say what they are.
            if let Some(value) = value.as_object_mut() {
                value.insert("apiVersion".to_owned(), Value::String(kind.resource().api_version));
                value.insert("kind".to_owned(), Value::String(kind.kind.to_owned()));
            }
            if kind.kind == "StatefulSet" {
                out.sets.insert(name.clone(), set(&name, &value));
            }
            out.children.insert((kind.kind.to_owned(), name), value);
        }
    }
    out.pods = pods.items.iter().map(|p| (p.name_any(), pod(p))).collect();
    out.claims = claims.items.iter().map(|c| (c.name_any(), claim(c))).collect();
    Ok(out)
}

fn role_of(labels: &BTreeMap<String, String>) -> Option<Role> {
    labels.get(LABEL_ROLE).and_then(|r| Role::parse(r))
}

fn set(name: &str, v: &Value) -> SetView {
    let text = |path: &str| v.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let number = |path: &str| v.pointer(path).and_then(Value::as_i64);
    let labels: BTreeMap<String, String> = v
        .pointer("/metadata/labels")
        .and_then(|l| serde_json::from_value(l.clone()).ok())
        .unwrap_or_default();
    SetView {
        name: name.to_owned(),
        uid: text("/metadata/uid").unwrap_or_default(),
        version: text("/metadata/resourceVersion").unwrap_or_default(),
        role: role_of(&labels),
        pool: labels.get(LABEL_POOL).cloned(),
        replicas: number("/spec/replicas").and_then(|n| i32::try_from(n).ok()).unwrap_or(1),
        settled: number("/metadata/generation") == number("/status/observedGeneration"),
        update_revision: text("/status/updateRevision"),
        storage: text("/spec/volumeClaimTemplates/0/spec/resources/requests/storage"),
        deleting: v.pointer("/metadata/deletionTimestamp").is_some(),
    }
}

fn pod(p: &Pod) -> PodView {
    let labels = p.labels();
    let status = p.status.as_ref();
    let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let condition = |type_: &str| conditions.iter().find(|c| c.type_ == type_);
    let deleting = p.metadata.deletion_timestamp.is_some();
    let ready = condition("Ready").is_some_and(|c| c.status == "True");
    // Ready=False moves its transition time once more only when the pod was ready in between.
    let was_ready = ready
        || match (condition("Ready"), condition("PodScheduled")) {
            (Some(ready), Some(scheduled)) => {
                let started = condition("Initialized").unwrap_or(scheduled);
                ready.last_transition_time > started.last_transition_time
            }
            _ => false,
        };
    let trouble = status
        .and_then(|s| s.container_statuses.as_deref())
        .unwrap_or_default()
        .iter()
        .find_map(|c| c.state.as_ref()?.waiting.as_ref()?.reason.clone())
        .filter(|r| r != "ContainerCreating" && r != "PodInitializing")
        .or_else(|| condition("PodScheduled").filter(|c| c.status == "False").and_then(|c| c.reason.clone()));
    // The end of the log, as the template asks for (terminationMessagePolicy). The code is part of the interface.
    let ended = |state: &Option<ContainerState>| {
        let message = state.as_ref().and_then(|s| s.terminated.as_ref()?.message.as_deref());
        message.is_some_and(|m| m.contains(ErrorCode::WrongCluster.wire()))
    };
    let containers = status.and_then(|s| s.container_statuses.as_deref()).unwrap_or_default();
    let foreign = !ready && containers.iter().any(|c| ended(&c.state) || ended(&c.last_state));
    PodView {
        name: p.name_any(),
        uid: p.uid().unwrap_or_default(),
        version: p.resource_version().unwrap_or_default(),
        role: role_of(labels),
        pool: labels.get(LABEL_POOL).cloned(),
        ordinal: ordinal(&p.name_any()).unwrap_or(-1),
        ready: ready && !deleting,
        was_ready,
        deleting,
        revision: labels.get("controller-revision-hash").cloned(),
        scheduled: p.spec.as_ref().is_some_and(|s| s.node_name.is_some()),
        trouble,
        foreign,
    }
}

fn claim(c: &PersistentVolumeClaim) -> ClaimView {
    let labels = c.labels();
    let status = c.status.as_ref();
    let phase = status.and_then(|s| s.phase.as_deref()).unwrap_or_default();
    ClaimView {
        name: c.name_any(),
        uid: c.uid().unwrap_or_default(),
        version: c.resource_version().unwrap_or_default(),
        role: role_of(labels),
        pool: labels.get(LABEL_POOL).cloned(),
        ordinal: ordinal(&c.name_any()).unwrap_or(-1),
        requested: c
            .spec
            .as_ref()
            .and_then(|s| s.resources.as_ref()?.requests.as_ref()?.get("storage").map(|q| q.0.clone())),
        capacity: status.and_then(|s| s.capacity.as_ref()?.get("storage").map(|q| q.0.clone())),
        uuid: c.annotations().get(ANNOTATION_UUID).cloned(),
        draining: c.annotations().contains_key(ANNOTATION_DRAINING),
        bound: phase == "Bound",
        lost: phase == "Lost",
        deleting: c.metadata.deletion_timestamp.is_some(),
    }
}
