//! Volume claims of StatefulSets.

use serde_json::{Value, json};
use tidemill_crd::cluster::Storage;

use crate::names::{Names, Role};

/// Name of the volume in a pod.
pub const CLAIM: &str = "data";

/// Name of a pod's volume claim.
#[must_use]
pub fn claim_name(set: &str, ordinal: i32) -> String {
    format!("{CLAIM}-{set}-{ordinal}")
}

/// Name of the volume claim of a pod.
#[must_use]
pub fn claim_of(pod: &str) -> String {
    format!("{CLAIM}-{pod}")
}

/// The claim template of a set.
pub(super) fn template(names: &Names, role: Role, pool: Option<&str>, storage: &Storage) -> Value {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": storage.size}},
    });
    if let (Some(class), Some(spec)) = (&storage.class, spec.as_object_mut()) {
        spec.insert("storageClassName".to_owned(), json!(class));
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "labels": names.labels(Some(role), pool)},
        "spec": spec,
    })
}
