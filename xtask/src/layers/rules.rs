//! The rules, over the declared dependencies of the members.

use super::table::{GUARDS, Guard, Layer, Only};
use crate::metadata::{Dependency, Kind, Package};

/// A broken rule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    /// A member without a place in the table.
    #[error("`{0}` has no layer: give it one in xtask/src/layers/table.rs and ARCHITECTURE.md")]
    UnknownMember(String),
    /// A path dependency that is no member.
    #[error("`{from}` depends on `{to}`, which lies outside of the workspace")]
    Outside { from: String, to: String },
    /// A dependency that does not go down.
    #[error("`{from}` (layer {from_layer}) may not depend on `{to}` (layer {to_layer})")]
    NotDown { from: String, from_layer: &'static str, to: String, to_layer: &'static str },
    /// A test dependency that goes up.
    #[error("the tests of `{from}` (layer {from_layer}) may not depend on `{to}` (layer {to_layer})")]
    TestUp { from: String, from_layer: &'static str, to: String, to_layer: &'static str },
    /// A package that another crate hides.
    #[error("`{from}` may not name `{package}`: only {only} may")]
    Guarded { from: String, package: String, only: String },
}

/// All violations, in the order of the members.
pub(super) fn check(members: &[Package]) -> Vec<Violation> {
    members.iter().flat_map(|member| check_member(member, members)).collect()
}

fn check_member(member: &Package, members: &[Package]) -> Vec<Violation> {
    let from = &member.name;
    let Some(layer) = Layer::of(from) else { return vec![Violation::UnknownMember(from.clone())] };
    member
        .dependencies
        .iter()
        .filter_map(|dependency| {
            if members.iter().any(|other| other.name == dependency.name) {
                // A member without a layer is reported once, by itself.
                check_arrow(from, layer, dependency, Layer::of(&dependency.name)?)
            } else if dependency.path.is_some() {
                Some(Violation::Outside { from: from.clone(), to: dependency.name.clone() })
            } else {
                check_guards(from, layer, &dependency.name)
            }
        })
        .collect()
}

fn check_arrow(from: &str, from_layer: Layer, dependency: &Dependency, to_layer: Layer) -> Option<Violation> {
    let (from, to) = (from.to_owned(), dependency.name.clone());
    let (from_label, to_label) = (from_layer.label(), to_layer.label());
    match dependency.kind {
        _ if from_layer == Layer::Tools => None,
        Kind::Normal | Kind::Build if to_layer >= from_layer => {
            Some(Violation::NotDown { from, from_layer: from_label, to, to_layer: to_label })
        }
        Kind::Dev if to_layer > from_layer => {
            Some(Violation::TestUp { from, from_layer: from_label, to, to_layer: to_label })
        }
        Kind::Normal | Kind::Build | Kind::Dev => None,
    }
}

fn check_guards(from: &str, layer: Layer, package: &str) -> Option<Violation> {
    let guard = GUARDS.iter().find(|guard| guard.covers(package))?;
    let only = match guard.only {
        _ if layer == Layer::Tools => return None,
        Only::Crates(crates) if !crates.contains(&from) => crates.join(" and "),
        Only::From(lowest) if layer < lowest => format!("layer {} and above", lowest.label()),
        Only::Crates(_) | Only::From(_) => return None,
    };
    Some(Violation::Guarded { from: from.to_owned(), package: package.to_owned(), only })
}

impl Guard {
    fn covers(&self, package: &str) -> bool {
        package.strip_prefix(self.package).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|&(name, kind)| Dependency { name: name.to_owned(), kind, path: None })
            .collect();
        Package {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            license: None,
            source: None,
            dependencies,
        }
    }

    fn found(members: &[Package]) -> Vec<String> {
        check(members).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_downwards_are_clean() {
        let graph = [
            member("tidemill-types", &[("bytes", Kind::Normal)]),
            member("tidemill-proto", &[("tidemill-types", Kind::Normal), ("tonic", Kind::Normal)]),
            member("tidemill-metadata", &[("tidemill-types", Kind::Normal)]),
            member("tidemill-meta-client", &[("tidemill-metadata", Kind::Normal)]),
            member("tidemill-meta", &[("openraft", Kind::Normal), ("tonic-health", Kind::Normal)]),
            member("tidemill", &[("tidemill-meta", Kind::Normal)]),
        ];
        assert_eq!(found(&graph), Vec::<String>::new());
    }

    #[test]
    fn arrows_up_and_sideways_are_found() {
        let graph = [
            member("tidemill-types", &[("tidemill-proto", Kind::Build)]),
            member("tidemill-proto", &[]),
            member("tidemill-broker", &[("tidemill-bookie", Kind::Normal)]),
            member("tidemill-bookie", &[]),
            member("tidemill-operator", &[("tidemill", Kind::Normal)]),
            member("tidemill", &[]),
        ];
        assert_eq!(
            found(&graph),
            [
                "`tidemill-types` (layer 0) may not depend on `tidemill-proto` (layer 1)",
                "`tidemill-broker` (layer 5) may not depend on `tidemill-bookie` (layer 5)",
                "`tidemill-operator` (layer 5b) may not depend on `tidemill` (layer 5b)",
            ]
        );
    }

    #[test]
    fn tests_may_go_sideways_but_not_up() {
        let graph = [
            member("tidemill-client", &[("tidemill-broker", Kind::Dev)]),
            member("tidemill-broker", &[("tidemill", Kind::Dev)]),
            member("tidemill", &[]),
        ];
        assert_eq!(
            found(&graph),
            ["the tests of `tidemill-broker` (layer 5) may not depend on `tidemill` (layer 5b)"]
        );
    }

    #[test]
    fn tools_may_use_anything_and_nothing_below_may_use_them() {
        let graph = [
            member("tidemill-e2e", &[("tidemill-sim", Kind::Normal), ("kube", Kind::Normal)]),
            member("tidemill-sim", &[("tidemill-ledger", Kind::Normal)]),
            member("tidemill-ledger", &[("tidemill-sim", Kind::Dev)]),
        ];
        assert_eq!(
            found(&graph),
            ["the tests of `tidemill-ledger` (layer 3) may not depend on `tidemill-sim` (layer 6)"]
        );
    }

    #[test]
    fn an_unknown_member_is_a_violation() {
        let found = found(&[member("tidemill-extra", &[])]);
        assert!(found.len() == 1 && found[0].contains("`tidemill-extra` has no layer"), "{found:?}");
    }

    #[test]
    fn a_path_out_of_the_workspace_is_a_violation() {
        let mut outsider = member("tidemill-types", &[("fork", Kind::Normal)]);
        outsider.dependencies[0].path = Some("../fork".to_owned());
        assert_eq!(
            found(&[outsider]),
            ["`tidemill-types` depends on `fork`, which lies outside of the workspace"]
        );
    }

    #[test]
    fn hidden_packages_stay_hidden() {
        let graph = [
            member("tidemill-broker", &[("openraft", Kind::Normal), ("openraftish", Kind::Normal)]),
            member("tidemill-client", &[("kube-client", Kind::Dev), ("object_store", Kind::Normal)]),
            member("tidemill-ledger", &[("tonic-health", Kind::Normal)]),
        ];
        assert_eq!(
            found(&graph),
            [
                "`tidemill-broker` may not name `openraft`: only tidemill-meta may",
                "`tidemill-client` may not name `kube-client`: only tidemill-crd and tidemill-operator may",
                "`tidemill-client` may not name `object_store`: only tidemill-offload may",
                "`tidemill-ledger` may not name `tonic-health`: only layer 5 and above may",
            ]
        );
    }
}
