//! What of a Cluster means something without Kubernetes: defaults of topics, and nothing else.

use serde_json::Value;
use tidemill_crd::cluster::TopicDefaults;

use super::read::{Manifest, Object};
use crate::output;

/// Names in a warning what is ignored of each Cluster.
pub(super) fn warn(manifests: &[Manifest]) {
    for m in manifests {
        let Object::Cluster(_, raw) = &m.object else { continue };
        let ignored = ignored(raw);
        if !ignored.is_empty() {
            output::note(&format!(
                "warning: {}: {}: ignored without Kubernetes: {}",
                m.at,
                m.full_name(),
                ignored.join(", ")
            ));
        }
    }
}

fn ignored(raw: &Value) -> Vec<String> {
    let spec = raw.get("spec").and_then(Value::as_object);
    let fields = spec.into_iter().flat_map(serde_json::Map::keys);
    fields.filter(|k| *k != "topicDefaults").map(|k| format!("spec.{k}")).collect()
}

/// The defaults of the Cluster that a Topic names, when that stands in the manifests too.
pub(super) fn defaults<'a>(manifests: &'a [Manifest], of: &Manifest) -> Option<&'a TopicDefaults> {
    let Object::Topic(topic) = &of.object else { return None };
    let reference = &topic.spec.cluster_ref;
    let namespace = reference.namespace.as_deref().unwrap_or(&of.namespace);
    manifests.iter().find_map(|m| match &m.object {
        Object::Cluster(c, _) if m.name == reference.name && m.namespace == namespace => {
            c.spec.topic_defaults.as_ref()
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn ignored_fields_are_named() {
        let raw = json!({"spec": {"bookiePools": [], "topicDefaults": {"copies": 1}, "meta": {}}});
        assert_eq!(super::ignored(&raw), ["spec.bookiePools", "spec.meta"]);
    }
}
