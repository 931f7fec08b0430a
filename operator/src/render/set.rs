//! StatefulSets.

use serde_json::{Value, json};
use tidemill_crd::{
    ClusterSpec,
    cluster::{BookiePool, Storage},
};

use super::{
    RenderError, Wishes, claims,
    pod::{self, Part},
};
use crate::names::{ANNOTATION_REVISION, Names, Role};

pub(super) fn meta(spec: &ClusterSpec, names: &Names, wishes: &Wishes) -> Result<Value, RenderError> {
    let part = Part {
        role: Role::Meta,
        pool: None,
        zones: &[],
        resources: spec.meta.resources.as_ref(),
        template: spec.meta.template.as_ref(),
    };
    set(spec, names, wishes, &part, wishes.metas, Some(&spec.meta.storage))
}

pub(super) fn bookies(
    spec: &ClusterSpec,
    pool: &BookiePool,
    replicas: i32,
    names: &Names,
    wishes: &Wishes,
) -> Result<Value, RenderError> {
    let part = Part {
        role: Role::Bookie,
        pool: Some(&pool.name),
        zones: &pool.zones,
        resources: pool.resources.as_ref(),
        template: pool.template.as_ref(),
    };
    set(spec, names, wishes, &part, replicas, Some(&pool.storage))
}

pub(super) fn brokers(spec: &ClusterSpec, names: &Names, wishes: &Wishes) -> Result<Value, RenderError> {
    let part = Part {
        role: Role::Broker,
        pool: None,
        zones: &[],
        resources: spec.brokers.resources.as_ref(),
        template: spec.brokers.template.as_ref(),
    };
    set(spec, names, wishes, &part, spec.brokers.replicas, None)
}

fn set(
    spec: &ClusterSpec,
    names: &Names,
    wishes: &Wishes,
    part: &Part<'_>,
    replicas: i32,
    storage: Option<&Storage>,
) -> Result<Value, RenderError> {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": names.set(part.role, part.pool),
            "labels": names.labels(Some(part.role), part.pool),
            "annotations": {ANNOTATION_REVISION: wishes.template_revision.to_string()},
        },
        "spec": {
            "replicas": replicas,
            "serviceName": names.headless(part.role),
            // Peers must find each other before anyone is ready (rule 20); the operator chooses who restarts when (rule 11).
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": names.selector(part.role, part.pool)},
            "template": pod::template(spec, names, wishes, part)?,
        },
    });
    if let (Some(storage), Some(spec)) = (storage, set.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert(
            "volumeClaimTemplates".to_owned(),
            json!([claims::template(names, part.role, part.pool, storage)]),
        );
        // A volume goes only when the quorum says so (rule 10), never with a number.
        spec.insert(
            "persistentVolumeClaimRetentionPolicy".to_owned(),
            json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
        );
    }
    Ok(set)
}
