//! `cargo xtask chaos`: real processes are killed, frozen, wiped for as long as you like, and everything is checked.

use anyhow::Context;

use crate::workspace::Workspace;

/// Flags of `cargo xtask chaos`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: u32,
    /// The blows of an earlier run, as it printed them
    #[arg(long)]
    seed: Option<u64>,
}

/// Builds the binary, runs the test for so long and says whether it held.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let built =
        workspace.cargo(&["build", "--package", "tidemill"]).status().context("cannot start cargo")?;
    if !built.success() {
        return Ok(false);
    }
    let mut command =
        workspace.cargo(&["test", "--package", "tidemill-e2e", "--test", "chaos", "--", "--nocapture"]);
    command.env("TIDEMILL_CHAOS_MINUTES", args.minutes.to_string());
    if let Some(seed) = args.seed {
        command.env("TIDEMILL_CHAOS_SEED", seed.to_string());
    }
    Ok(command.status().context("cannot start the test")?.success())
}
