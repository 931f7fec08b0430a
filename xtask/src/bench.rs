//! `cargo xtask bench`: builds the release binaries and compares.

use crate::workspace::Workspace;

/// Arguments of the comparison; `cargo xtask bench --help` shows them.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds, runs, and says whether it came to its end.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let build = ["build", "--release", "-p", "tidemill", "-p", "tidemill-bench"];
    if !workspace.cargo(&build).status()?.success() {
        return Ok(false);
    }
    let mut bench = workspace.cargo(&["run", "--release", "--quiet", "-p", "tidemill-bench", "--"]);
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR") {
        bench.arg("--binary").arg(std::path::Path::new(&target).join("release/tidemill"));
    }
    Ok(bench.args(&args.args).status()?.success())
}
