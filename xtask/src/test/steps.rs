//! The table of test steps. A new suite is one entry here.

/// One entry of the table.
pub(super) struct Step {
    /// Short name, for `--only`.
    pub(super) name: &'static str,
    /// What it covers, for `--list`.
    pub(super) about: &'static str,
    /// What to start.
    pub(super) command: Command,
    /// The arguments that `--quick` adds; without any list, `--quick` leaves the step out.
    pub(super) quick: Option<&'static [&'static str]>,
    /// How its tests are counted.
    pub(super) counts: Counts,
}

/// What a step starts, in the top folder of the checkout unless it says otherwise.
pub(super) enum Command {
    /// Cargo with these arguments; those after the `--` go to the test harness.
    Cargo { args: &'static [&'static str], harness: &'static [&'static str] },
    /// Another program with its arguments, in a folder of the checkout.
    Program { program: &'static str, args: &'static [&'static str], dir: &'static str },
}

/// How the tests of a step are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// By the `test result:` lines of Rust's test harness. A step without a single test counts as failed.
    Harness,
    /// As one test, by the exit code.
    One,
}

impl Step {
    /// Whether the step takes part in this run.
    pub(super) fn runs(&self, quick: bool) -> bool {
        !quick || self.quick.is_some()
    }
}

/// All steps, in the order in which they run: the fast ones first, whole clusters last.
///
/// The steps of cargo select the whole workspace wherever they can: another selection may unify features in another
/// way, and dependencies would be built twice.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "scripts",
        about: "the shell scripts parse",
        command: Command::Program {
            program: "bash",
            args: &[
                "-c",
                "for s in .ci/run examples/run.sh examples/go/generate.sh; do bash -n $s || exit 1; done",
            ],
            dir: ".",
        },
        quick: Some(&[]),
        counts: Counts::One,
    },
    Step {
        name: "build",
        about: "everything builds: the steps with whole clusters start the binary",
        command: Command::Cargo { args: &["build", "--workspace", "--all-targets"], harness: &[] },
        quick: None,
        counts: Counts::One,
    },
    Step {
        name: "workspace",
        about: "unit, integration and documentation tests of every crate",
        command: Command::Cargo { args: &["test", "--workspace", "--exclude", "tidemill-e2e"], harness: &[] },
        quick: Some(&["--lib", "--bins"]),
        counts: Counts::Harness,
    },
    // Seeds that once failed, then some others; many more: cargo xtask sim --seeds N.
    Step {
        name: "simulation",
        about: "whole clusters in one process each; network, disks, clocks, processes fail as each seed says",
        command: Command::Program {
            program: "cargo",
            args: &["xtask", "sim", "--seeds", "40", "--within", "120"],
            dir: ".",
        },
        quick: None,
        counts: Counts::One,
    },
    // Each of these tests runs a cluster of many processes: more at once only wait for each other.
    Step {
        name: "e2e",
        about: "clusters of real processes, with kills, frozen members, full disks",
        command: Command::Cargo {
            args: &[
                "test",
                "--workspace",
                "--test",
                "checker",
                "--test",
                "compaction",
                "--test",
                "chaos",
                "--test",
                "faults",
                "--test",
                "groups",
                "--test",
                "repair",
                "--test",
                "usage",
                "--test",
                "declared",
                "--test",
                "declared_groups",
            ],
            harness: &["--test-threads=2"],
        },
        quick: None,
        counts: Counts::Harness,
    },
    // Starts a cluster of its own where KUBECONFIG names none.
    Step {
        name: "kubernetes",
        about: "the image, the charts and the operator on a Kubernetes cluster",
        command: Command::Program { program: "cargo", args: &["xtask", "e2e"], dir: "." },
        quick: None,
        counts: Counts::Harness,
    },
    Step {
        name: "examples-rust",
        about: "the Rust example against a cluster",
        command: Command::Program { program: "examples/run.sh", args: &["rust"], dir: "." },
        quick: None,
        counts: Counts::One,
    },
    Step {
        name: "examples-python",
        about: "the Python example against a cluster",
        command: Command::Program { program: "examples/run.sh", args: &["python"], dir: "." },
        quick: None,
        counts: Counts::One,
    },
    Step {
        name: "examples-go",
        about: "the Go example against a cluster",
        command: Command::Program { program: "examples/run.sh", args: &["go"], dir: "." },
        quick: None,
        counts: Counts::One,
    },
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_test_with_clusters_is_chosen_by_its_step() {
        let step = STEPS.iter().find(|step| step.name == "e2e").unwrap();
        let Command::Cargo { args, .. } = step.command else { panic!("not a step of cargo") };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/tests");
        let mut found = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            // Has a step of its own, `cargo xtask e2e`.
            if name != "kubernetes" {
                assert!(args.contains(&name), "e2e/tests has `{name}`, the step has not");
                found += 1;
            }
        }
        assert!(found > 0);
    }
}
