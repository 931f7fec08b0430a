//! The manifests in `examples/` parse into the types, without a field that the types do not know.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::path::Path;

use serde_json::Value;
use tidemill_crd::{Cluster, ConsumerGroup, Topic};

/// Every field that the file names is there after a round through the type.
fn contains(whole: &Value, part: &Value, path: &str) {
    match (whole, part) {
        (Value::Object(w), Value::Object(p)) => {
            for (key, value) in p {
                let path = format!("{path}.{key}");
                contains(w.get(key).unwrap_or_else(|| panic!("{path} is lost")), value, &path);
            }
        }
        (Value::Array(w), Value::Array(p)) => {
            assert_eq!(w.len(), p.len(), "{path}");
            w.iter().zip(p).for_each(|(w, p)| contains(w, p, path));
        }
        _ => assert_eq!(whole, part, "{path}"),
    }
}

fn check(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let mut seen = 0;
    for document in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
        let shown = path.display().to_string();
        let typed = match document["kind"].as_str().unwrap() {
            "Cluster" => {
                serde_json::to_value(serde_json::from_value::<Cluster>(document.clone()).unwrap()).unwrap()
            }
            "Topic" => {
                serde_json::to_value(serde_json::from_value::<Topic>(document.clone()).unwrap()).unwrap()
            }
            "ConsumerGroup" => {
                serde_json::to_value(serde_json::from_value::<ConsumerGroup>(document.clone()).unwrap())
                    .unwrap()
            }
            _ => continue,
        };
        contains(&typed, &document, &shown);
        seen += 1;
    }
    seen
}

#[test]
fn examples_are_what_the_types_say() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for (folder, kinds) in [("quickstart", 3), ("production", 1), ("kustomize/base", 2)] {
        let files = std::fs::read_dir(examples.join(folder)).unwrap();
        let seen: usize = files.map(|f| check(&f.unwrap().path())).sum();
        assert_eq!(seen, kinds, "{folder}");
    }
}
