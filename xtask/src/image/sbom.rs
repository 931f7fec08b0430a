//! The list of everything in the image: CycloneDX 1.6, from cargo's own resolution.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;

use super::libraries::Package;
use crate::workspace::Workspace;

/// What `cargo metadata` says about the resolved packages.
#[derive(Deserialize)]
struct Resolved {
    packages: Vec<Crate>,
    resolve: Graph,
}

#[derive(Deserialize)]
struct Crate {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Graph {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

/// The document. It has no time and no serial number: equal input gives an equal list.
pub(super) fn cyclone_dx(
    workspace: &Workspace,
    binaries: &[&str],
    packages: &[Package],
) -> anyhow::Result<Vec<u8>> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", &platform];
    let output = workspace.cargo(&args).output().context("cannot start cargo")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let resolved: Resolved =
        serde_json::from_slice(&output.stdout).context("cannot read the answer of cargo metadata")?;
    document(&resolved, binaries, packages)
}

fn document(resolved: &Resolved, binaries: &[&str], packages: &[Package]) -> anyhow::Result<Vec<u8>> {
    let linked = linked(resolved, binaries);
    let mut components: Vec<(String, serde_json::Value)> = Vec::new();
    let mut version = "";
    for part in resolved.packages.iter().filter(|part| linked.contains(part.id.as_str())) {
        if part.name == binaries[0] {
            version = &part.version;
        }
        let url = format!("pkg:cargo/{}@{}", part.name, part.version);
        let mut component = json!({
            "type": if binaries.contains(&part.name.as_str()) { "application" } else { "library" },
            "bom-ref": url,
            "name": part.name,
            "version": part.version,
            "purl": url,
        });
        if let Some(license) = &part.license {
            // Old manifests part alternatives by a slash.
            component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        if part.source.is_none() {
            component["group"] = json!("tidemill");
        }
        components.push((url, component));
    }
    for package in packages {
        let url = format!("pkg:deb/debian/{}@{}", package.name, package.version.replace('+', "%2B"));
        let component = json!({
            "type": "library", "bom-ref": url, "name": package.name, "version": package.version, "purl": url,
        });
        components.push((url, component));
    }
    components.sort_by(|a, b| a.0.cmp(&b.0));
    components.dedup_by(|a, b| a.0 == b.0);
    let components: Vec<serde_json::Value> = components.into_iter().map(|(_, component)| component).collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": { "type": "container", "bom-ref": "image", "name": "tidemill", "version": version } },
        "components": components,
    });
    Ok(serde_json::to_vec_pretty(&document)?)
}

/// The packages that are linked into the binaries: what only builds or tests need is not in the image.
fn linked<'a>(resolved: &'a Resolved, binaries: &[&str]) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Node> =
        resolved.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let start = resolved
        .packages
        .iter()
        .filter(|part| part.source.is_none() && binaries.contains(&part.name.as_str()));
    let mut open: Vec<&str> = start.map(|part| part.id.as_str()).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let normal = node.deps.iter().filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none()));
        open.extend(normal.map(|edge| edge.pkg.as_str()));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_nothing_else() {
        let text = r#"{
            "packages": [
                {"id": "t", "name": "tidemill", "version": "1.0.0", "license": "Apache-2.0", "source": null},
                {"id": "a", "name": "a", "version": "2.0.0", "license": "MIT/Apache-2.0", "source": "r"},
                {"id": "b", "name": "b", "version": "3.0.0", "license": null, "source": "r"},
                {"id": "x", "name": "x", "version": "4.0.0", "license": null, "source": "r"}
            ],
            "resolve": {"nodes": [
                {"id": "t", "deps": [{"pkg": "a", "dep_kinds": [{"kind": null}]},
                                     {"pkg": "x", "dep_kinds": [{"kind": "dev"}, {"kind": "build"}]}]},
                {"id": "a", "deps": [{"pkg": "b", "dep_kinds": [{"kind": "build"}, {"kind": null}]}]},
                {"id": "b", "deps": []}, {"id": "x", "deps": []}
            ]}
        }"#;
        let resolved: Resolved = serde_json::from_str(text).unwrap();
        let packages = [Package { name: "libc6".to_owned(), version: "2.36+1".to_owned() }];
        let made = document(&resolved, &["tidemill"], &packages).unwrap();
        let made: serde_json::Value = serde_json::from_slice(&made).unwrap();
        let urls: Vec<&str> =
            made["components"].as_array().unwrap().iter().map(|c| c["purl"].as_str().unwrap()).collect();
        assert_eq!(
            urls,
            [
                "pkg:cargo/a@2.0.0",
                "pkg:cargo/b@3.0.0",
                "pkg:cargo/tidemill@1.0.0",
                "pkg:deb/debian/libc6@2.36%2B1"
            ]
        );
        assert_eq!(made["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
