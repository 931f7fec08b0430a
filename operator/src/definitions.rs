//! The installed definitions against those that this operator was made with (rule 14).

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;
use tidemill_crd::generate::definitions;

/// Looks at each installed definition and names the fields that it lacks: the API server drops them silently from
/// objects. Definitions that are not there, or may not be read, are no news here.
pub(crate) async fn warn_when_old(client: &Client) -> u64 {
    let wanted = match definitions() {
        Ok(wanted) => wanted,
        Err(e) => {
            tracing::error!(error = %e, "the definitions cannot be made");
            return 0;
        }
    };
    let resource = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut old = 0;
    for wanted in wanted {
        let name = wanted.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let installed = match api.get_opt(name).await {
            Ok(Some(installed)) => installed.data,
            Ok(None) => continue,
            Err(e) => {
                tracing::warn!(name, error = %e, "the installed definition cannot be compared");
                continue;
            }
        };
        let missing = missing(&wanted.object, &installed);
        if !missing.is_empty() {
            old += 1;
            tracing::warn!(
                name,
                missing = missing.join(", "),
                "the installed definition is older than this operator: upgrade the chart tidemill-crds; the API server drops these fields"
            );
        }
    }
    old
}

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";
/// Fields that are named at most.
const NAMED: usize = 20;

/// Paths of fields that `installed` lacks.
fn missing(wanted: &Value, installed: &Value) -> Vec<String> {
    let mut out = Vec::new();
    match (wanted.pointer(SCHEMA), installed.pointer(SCHEMA)) {
        (Some(w), Some(i)) => walk(w, i, "", &mut out),
        _ => out.push("the schema".to_owned()),
    }
    out.truncate(NAMED);
    out
}

fn walk(wanted: &Value, installed: &Value, path: &str, out: &mut Vec<String>) {
    if let Some(properties) = wanted.get("properties").and_then(Value::as_object) {
        for (name, value) in properties {
            let path = format!("{path}.{name}");
            match installed.get("properties").and_then(|p| p.get(name)) {
                Some(there) => walk(value, there, &path, out),
                None => out.push(path),
            }
        }
    }
    for part in ["items", "additionalProperties"] {
        if let (Some(w), Some(i)) = (wanted.get(part), installed.get(part)) {
            walk(w, i, &format!("{path}[]"), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_14_fields_that_an_older_schema_lacks_are_named() {
        let wanted = definitions().unwrap().remove(0).object;
        assert!(missing(&wanted, &wanted).is_empty());
        let mut old = wanted.clone();
        let spec = old
            .pointer_mut(&format!("{SCHEMA}/properties/spec/properties"))
            .unwrap()
            .as_object_mut()
            .unwrap();
        spec.remove("updates");
        spec["bookiePools"]["items"]["properties"].as_object_mut().unwrap().remove("zones");
        assert_eq!(missing(&wanted, &old), [".spec.bookiePools[].zones", ".spec.updates"]);
        // A newer one has more, which is no harm.
        assert!(missing(&old, &wanted).is_empty());
    }
}
