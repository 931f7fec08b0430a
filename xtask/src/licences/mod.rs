//! `cargo xtask licences`: every package of the lock file has an allowed licence, comes from an allowed registry and is
//! not banned. Reads deny.toml, so that it and cargo-deny cannot disagree about what is allowed.

mod expression;
mod policy;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::{Metadata, Package};
use crate::workspace::Workspace;
use policy::Policy;

/// Checks all packages and says whether they are clean. Several versions of one package are reported, no failure.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    let policy = Policy::read(&workspace.root().join("deny.toml"))?;
    let packages = Metadata::of_all(workspace)?.packages;
    let findings = rules::check(&packages, &policy);
    for finding in &findings {
        println!("licences: {finding}");
    }
    for (name, versions) in duplicates(&packages) {
        println!("licences: note: several versions of `{name}`: {}", Vec::from_iter(versions).join(", "));
    }
    println!("licences: {} packages, {} findings", packages.len(), findings.len());
    Ok(findings.is_empty())
}

fn duplicates(packages: &[Package]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_several_versions_are_duplicates() {
        let package = |name: &str, version: &str| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: None,
            source: None,
            dependencies: Vec::new(),
        };
        let packages = [package("a", "1.0.0"), package("b", "1.0.0"), package("a", "2.0.0")];
        assert_eq!(duplicates(&packages), BTreeMap::from([("a", BTreeSet::from(["1.0.0", "2.0.0"]))]));
    }
}
