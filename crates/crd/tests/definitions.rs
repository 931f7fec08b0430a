//! The generated definitions: equal to the files, and of the form that an API server keeps as it is.

#[path = "files/mod.rs"]
mod files;

use std::path::Path;

use serde_json::Value;
use tidemill_crd::generate::definitions;

/// Largest file, bytes: kubectl's client-side apply stores a copy in an annotation of at most 256 KiB.
const MAX_FILE: usize = 200 << 10;

#[test]
fn files_are_up_to_date() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, text) in files::all().unwrap() {
        let have = std::fs::read_to_string(top.join(&path)).unwrap_or_default();
        assert!(have == text, "{path} differs: run cargo run -p tidemill-crd --example generate");
        assert!(text.len() < MAX_FILE, "{path}: {} bytes", text.len());
        assert!(!text.contains("{{"), "{path}: Helm would take this for a template");
    }
}

fn each_schema(at: &Value, path: &str, check: &mut dyn FnMut(&str, &Value)) {
    check(path, at);
    if let Some(properties) = at.get("properties").and_then(Value::as_object) {
        for (name, value) in properties {
            each_schema(value, &format!("{path}.{name}"), check);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(value) = at.get(key) {
            each_schema(value, &format!("{path}[]"), check);
        }
    }
}

#[test]
fn schemas_are_strict() {
    for d in definitions().unwrap() {
        let schema = &d.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        each_schema(schema, d.file, &mut |path, s| {
            assert!(s.get("nullable").is_none(), "{path} is nullable");
            assert!(s.get("x-kubernetes-preserve-unknown-fields").is_none(), "{path} keeps unknown fields");
            let spec = path.starts_with(&format!("{}.spec", d.file));
            if spec && s["type"] == "integer" {
                assert!(s.get("minimum").is_some() && s.get("maximum").is_some(), "{path} has no bounds");
            }
            if spec && s["type"] == "array" {
                assert!(s.get("maxItems").is_some(), "{path} has no limit");
            }
            if let Some(rules) = s.get("x-kubernetes-validations").and_then(Value::as_array) {
                for rule in rules {
                    assert!(rule["message"].as_str().is_some_and(|m| m.len() > 10), "{path}: {rule}");
                }
            }
        });
    }
}

#[test]
fn rule_4_the_first_second_is_unknown() {
    for d in definitions().unwrap() {
        let status = &d.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
        assert_eq!(status["default"]["observedGeneration"], -1, "{}", d.file);
        assert_eq!(status["default"]["conditions"][0]["status"], "Unknown");
        assert_eq!(status["properties"]["conditions"]["x-kubernetes-list-map-keys"][0], "type");
    }
}

#[test]
fn scale_points_at_the_brokers() {
    let crd = &definitions().unwrap()[0].object;
    assert_eq!(
        crd["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"],
        ".spec.brokers.replicas"
    );
    let brokers = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["brokers"];
    // Rule 22: a manifest that does not name `brokers` still has a value there.
    assert_eq!(brokers["default"], serde_json::json!({}));
    assert_eq!(brokers["properties"]["replicas"]["default"], 3);
}
