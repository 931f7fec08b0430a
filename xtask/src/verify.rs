//! `cargo xtask verify`: what has to be green before a change goes in. Changes nothing in the checkout.

use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use crate::workspace::Workspace;
use crate::{layers, licences, sizes, test};

/// Flags of `cargo xtask verify`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out the tests that take minutes
    #[arg(long)]
    quick: bool,
}

/// A check with its name. It says whether it is green.
type Check = (&'static str, fn(&Workspace) -> anyhow::Result<bool>);

/// All checks, the fast ones first. The tests come after them.
const CHECKS: &[Check] = &[
    ("format", |workspace| green(workspace.cargo(&["fmt", "--all", "--check"]))),
    ("layers", layers::run),
    ("licences", licences::run),
    ("sizes", sizes::run),
    ("lints", |workspace| {
        green(workspace.cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    }),
    ("docs", |workspace| {
        let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
        command.env("RUSTDOCFLAGS", "--deny warnings");
        green(command)
    }),
];

/// Runs all checks and the tests, also after a failure, and says whether everything is green.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let mut red = Vec::new();
    for (name, check) in CHECKS {
        println!("\n== {name}");
        let started = Instant::now();
        let passed = check(workspace).unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            false
        });
        println!(
            "{name}: {} after {:.1} s",
            if passed { "green" } else { "RED" },
            started.elapsed().as_secs_f64()
        );
        if !passed {
            red.push(*name);
        }
    }
    if !red.is_empty() {
        println!("\nred so far: {}", red.join(", "));
    }
    let tests = test::run(workspace, &test::Args::quick(args.quick))?;
    Ok(tests && red.is_empty())
}

fn green(mut command: Command) -> anyhow::Result<bool> {
    Ok(command
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?
        .success())
}
