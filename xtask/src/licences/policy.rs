//! The part of deny.toml that the check reads.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

/// What is allowed and what is banned.
#[derive(Deserialize)]
pub(super) struct Policy {
    pub(super) licenses: Licenses,
    pub(super) bans: Bans,
    pub(super) sources: Sources,
}

/// Allowed licences.
#[derive(Deserialize)]
pub(super) struct Licenses {
    /// SPDX terms, each with its `WITH` exception if it has one.
    pub(super) allow: Vec<String>,
    /// Further terms for single packages.
    #[serde(default)]
    pub(super) exceptions: Vec<Exception>,
}

/// Further terms for one package.
#[derive(Deserialize)]
pub(super) struct Exception {
    #[serde(rename = "crate")]
    pub(super) package: String,
    pub(super) allow: Vec<String>,
}

/// Banned packages.
#[derive(Deserialize)]
pub(super) struct Bans {
    pub(super) deny: Vec<Ban>,
}

/// One banned package.
#[derive(Deserialize)]
pub(super) struct Ban {
    #[serde(rename = "crate")]
    pub(super) package: String,
    pub(super) reason: String,
}

/// Allowed sources.
#[derive(Deserialize)]
pub(super) struct Sources {
    #[serde(rename = "allow-registry")]
    pub(super) allow_registry: Vec<String>,
}

impl Policy {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
    }

    /// Whether `package` may come under this SPDX term.
    pub(super) fn allows(&self, package: &str, term: &str) -> bool {
        let further = self.licenses.exceptions.iter().filter(|exception| exception.package == package);
        self.licenses
            .allow
            .iter()
            .chain(further.flat_map(|exception| &exception.allow))
            .any(|allowed| allowed == term)
    }
}
