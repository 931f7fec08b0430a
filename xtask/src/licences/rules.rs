//! The rules, over all packages of the lock file.

use super::expression::{Expression, ParseError};
use super::policy::Policy;
use crate::metadata::Package;

/// A broken rule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Finding {
    /// The manifest names no licence.
    #[error("`{0}` names no licence in its manifest")]
    NoLicence(String),
    /// The manifest's licence is no SPDX expression.
    #[error("`{package}`: `{licence}` is no licence expression: {why}")]
    NoExpression { package: String, licence: String, why: ParseError },
    /// No allowed way through the expression.
    #[error("`{package}` comes under `{licence}`, which deny.toml does not allow")]
    NotAllowed { package: String, licence: String },
    /// A banned package is in the lock file.
    #[error("`{package}` is banned: {reason}")]
    Banned { package: String, reason: String },
    /// Neither of the workspace nor from an allowed registry.
    #[error("`{package}` comes from {origin}, which deny.toml does not allow")]
    Source { package: String, origin: String },
}

/// All findings, in the order of the packages.
pub(super) fn check(packages: &[Package], policy: &Policy) -> Vec<Finding> {
    packages
        .iter()
        .flat_map(|package| [licence(package, policy), ban(package, policy), source(package, policy)])
        .flatten()
        .collect()
}

fn licence(package: &Package, policy: &Policy) -> Option<Finding> {
    let Some(licence) = package.license.clone() else {
        return Some(Finding::NoLicence(package.name.clone()));
    };
    let name = package.name.clone();
    match Expression::parse(&licence) {
        Ok(expression) if expression.met(&|term: &str| policy.allows(&name, term)) => None,
        Ok(_) => Some(Finding::NotAllowed { package: name, licence }),
        Err(why) => Some(Finding::NoExpression { package: name, licence, why }),
    }
}

fn ban(package: &Package, policy: &Policy) -> Option<Finding> {
    let ban = policy.bans.deny.iter().find(|ban| ban.package == package.name)?;
    Some(Finding::Banned { package: package.name.clone(), reason: ban.reason.clone() })
}

fn source(package: &Package, policy: &Policy) -> Option<Finding> {
    let source = package.source.as_deref()?;
    let registry = source.strip_prefix("registry+").or_else(|| source.strip_prefix("sparse+"));
    if registry
        .is_some_and(|registry| policy.sources.allow_registry.iter().any(|allowed| allowed == registry))
    {
        return None;
    }
    Some(Finding::Source { package: package.name.clone(), origin: source.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        exceptions = [{ crate = "tables", allow = ["Unicode-3.0"] }]
        [bans]
        deny = [{ crate = "ring", reason = "one provider" }]
        [sources]
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
    "#;

    fn package(name: &str, license: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            dependencies: Vec::new(),
        }
    }

    fn found(package: Package) -> Vec<String> {
        check(&[package], &toml::from_str(POLICY).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_clean_package_gives_no_finding() {
        let index = Some("registry+https://github.com/rust-lang/crates.io-index");
        assert_eq!(found(package("a", Some("MIT OR GPL-3.0"), index)), Vec::<String>::new());
        assert_eq!(found(package("own", Some("Apache-2.0"), None)), Vec::<String>::new());
    }

    #[test]
    fn licences_are_checked() {
        assert_eq!(found(package("a", None, None)), ["`a` names no licence in its manifest"]);
        let gpl = found(package("a", Some("GPL-3.0"), None));
        assert_eq!(gpl, ["`a` comes under `GPL-3.0`, which deny.toml does not allow"]);
        assert!(found(package("a", Some("MIT OR"), None))[0].contains("no licence expression"));
    }

    #[test]
    fn an_exception_holds_for_its_package_alone() {
        assert_eq!(found(package("tables", Some("Unicode-3.0"), None)), Vec::<String>::new());
        assert_eq!(found(package("other", Some("Unicode-3.0"), None)).len(), 1);
    }

    #[test]
    fn banned_packages_and_foreign_sources_are_found() {
        assert_eq!(found(package("ring", Some("MIT"), None)), ["`ring` is banned: one provider"]);
        let git = found(package("a", Some("MIT"), Some("git+https://example.org/a")));
        assert_eq!(git, ["`a` comes from git+https://example.org/a, which deny.toml does not allow"]);
    }

    #[test]
    fn the_policy_of_the_project_is_readable_and_bans_a_second_tls_provider() {
        let policy =
            Policy::read(&crate::workspace::Workspace::find().unwrap().root().join("deny.toml")).unwrap();
        for package in ["ring", "openssl", "openssl-sys"] {
            assert!(policy.bans.deny.iter().any(|ban| ban.package == package), "{package}");
        }
        assert!(policy.allows("any", "Apache-2.0") && !policy.allows("any", "AGPL-3.0-only"));
    }
}
