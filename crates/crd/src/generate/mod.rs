//! The custom resource definitions as files: what the derive gives, and what it cannot say.

mod polish;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use polish::Extra;

use crate::{Cluster, ConsumerGroup, Topic};

/// Why a definition could not be made: a mistake in this crate, shown by its tests.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// It does not serialise.
    #[error("{file}: {why}")]
    Serialise {
        /// The file.
        file: &'static str,
        /// Why.
        why: String,
    },
    /// The schema has no such place.
    #[error("{file}: the schema has no {path}")]
    NoSuchPlace {
        /// The file.
        file: &'static str,
        /// The place.
        path: String,
    },
}

/// A definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Name of its file below `crds/`.
    pub file: &'static str,
    /// The object.
    pub object: Value,
}

/// All definitions, in order of their files.
///
/// # Errors
/// [`GenerateError`].
pub fn definitions() -> Result<Vec<Definition>, GenerateError> {
    let cluster = Extra {
        list_maps: &[
            ("spec.bookiePools", "name"),
            ("spec.listeners", "name"),
            ("status.members", "uuid"),
            ("status.pools", "name"),
            ("status.endpoints", "name"),
        ],
        // An absent object would keep the defaults inside of it from being seen.
        empty_defaults: &["spec.brokers", "spec.placement", "spec.updates", "spec.storagePolicy"],
    };
    let topic = Extra { list_maps: &[], empty_defaults: &[] };
    let group = Extra { list_maps: &[("status.assignments", "member")], empty_defaults: &[] };
    Ok(vec![
        definition("clusters.yaml", &Cluster::crd(), &cluster)?,
        definition("consumergroups.yaml", &ConsumerGroup::crd(), &group)?,
        definition("topics.yaml", &Topic::crd(), &topic)?,
    ])
}

fn definition(
    file: &'static str,
    crd: &CustomResourceDefinition,
    extra: &Extra,
) -> Result<Definition, GenerateError> {
    let mut object =
        serde_json::to_value(crd).map_err(|e| GenerateError::Serialise { file, why: e.to_string() })?;
    polish::polish(&mut object, extra).map_err(|path| GenerateError::NoSuchPlace { file, path })?;
    Ok(Definition { file, object })
}
