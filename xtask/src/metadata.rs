//! What `cargo metadata` tells, as far as the checks need it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::workspace::Workspace;

/// The packages of the workspace, or of the whole lock file.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    /// Where cargo builds.
    #[serde(default)]
    pub(crate) target_directory: PathBuf,
}

/// One package.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The SPDX expression of the manifest.
    pub(crate) license: Option<String>,
    /// Where it comes from; nothing for a package of the workspace.
    pub(crate) source: Option<String>,
    /// The direct dependencies as the manifest declares them, for all platforms and features.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One declared dependency.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    /// The name of the package, also when the manifest renames it.
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) kind: Kind,
    /// The folder, when it is a path dependency.
    pub(crate) path: Option<String>,
}

/// What a dependency is needed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Normal,
    Build,
    Dev,
}

/// Cargo writes `null` for a normal dependency.
impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<String>::deserialize(deserializer)?.as_deref() {
            None | Some("normal") => Ok(Self::Normal),
            Some("build") => Ok(Self::Build),
            Some("dev") => Ok(Self::Dev),
            Some(other) => Err(serde::de::Error::unknown_variant(other, &["normal", "build", "dev"])),
        }
    }
}

impl Metadata {
    /// The members of the workspace alone. Needs no network.
    pub(crate) fn of_members(workspace: &Workspace) -> anyhow::Result<Self> {
        Self::load(workspace, &["metadata", "--format-version", "1", "--no-deps"])
    }

    /// Every package of the lock file, for all platforms.
    pub(crate) fn of_all(workspace: &Workspace) -> anyhow::Result<Self> {
        let mut all = Self::load(workspace, &["metadata", "--format-version", "1", "--locked"])?;
        // The lock file also names what only features that nobody asks for would bring: `cargo tree` leaves it out.
        let args =
            ["tree", "--workspace", "--target", "all", "--locked", "--prefix", "none", "--format", "{p}"];
        let built = output(workspace, &args)?;
        let built: BTreeSet<(&str, &str)> = built
            .lines()
            .filter_map(|l| {
                let mut words = l.split_whitespace();
                Some((words.next()?, words.next()?.trim_start_matches('v')))
            })
            .collect();
        ensure!(!built.is_empty(), "cargo tree shows no package");
        all.packages.retain(|p| built.contains(&(p.name.as_str(), p.version.as_str())));
        Ok(all)
    }

    fn load(workspace: &Workspace, args: &[&str]) -> anyhow::Result<Self> {
        serde_json::from_str(&output(workspace, args)?).context("cannot read the answer of cargo metadata")
    }
}

fn output(workspace: &Workspace, args: &[&str]) -> anyhow::Result<String> {
    let output = workspace.cargo(args).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cargo's answer is not text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_that_cargo_writes_is_read() {
        let text = r#"{"packages": [{"name": "a", "version": "1.0.0", "license": null, "source": null,
            "dependencies": [{"name": "b", "kind": null, "path": "/b", "req": "*"},
                             {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}]}]}"#;
        let metadata: Metadata = serde_json::from_str(text).unwrap();
        let kinds: Vec<Kind> = metadata.packages[0].dependencies.iter().map(|d| d.kind).collect();
        assert_eq!(kinds, [Kind::Normal, Kind::Dev, Kind::Build]);
        assert!(serde_json::from_str::<Dependency>(r#"{"name": "c", "kind": "other"}"#).is_err());
    }
}
