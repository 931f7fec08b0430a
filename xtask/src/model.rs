//! `cargo xtask model`: explores the models of the protocol and prints scopes, states and time.

use anyhow::Context;

use crate::workspace::Workspace;

/// Flags of `cargo xtask model`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// States of one scope after which it is cut, in millions
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    millions: u32,
}

/// Runs the explorer, optimised, and says whether nothing broke.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let millions = args.millions.to_string();
    let mut command = workspace.cargo(&[
        "run",
        "--release",
        "--quiet",
        "--package",
        "tidemill-sim",
        "--bin",
        "model",
        "--",
        &millions,
    ]);
    Ok(command.status().context("cannot start the explorer")?.success())
}
