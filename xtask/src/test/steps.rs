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
    /// Cargo with these arguments.
    Cargo(&'static [&'static str]),
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

/// All steps, in the order in which they run: the fast ones first.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "scripts",
        about: "the script of continuous integration parses",
        command: Command::Program { program: "bash", args: &["-n", "run"], dir: ".ci" },
        quick: Some(&[]),
        counts: Counts::One,
    },
    Step {
        name: "workspace",
        about: "unit, integration and documentation tests of every crate",
        command: Command::Cargo(&["test", "--workspace"]),
        quick: Some(&["--lib", "--bins"]),
        counts: Counts::Harness,
    },
];
