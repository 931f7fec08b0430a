//! What happens to nodes.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::kubectl::{kubectl, kubectl_with};
use crate::command::run;

/// Kills a node's kubelet, container runtime and pods at once.
///
/// # Errors
/// The cluster is not one whose nodes may be killed.
pub fn kill_node(number: u8) -> Result<()> {
    xtask(&["kube", "kill-node", &number.to_string()])
}

/// Starts a killed node again.
///
/// # Errors
/// As [`kill_node`].
pub fn start_node(number: u8) -> Result<()> {
    xtask(&["kube", "start-node", &number.to_string()])
}

/// Moves everything off a node, as before maintenance.
///
/// # Errors
/// Budgets did not allow it within `limit`.
pub fn drain(node: &str, limit: Duration) -> Result<()> {
    let timeout = format!("--timeout={}s", limit.as_secs());
    let args = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", &timeout];
    kubectl_with(&args, b"", limit + Duration::from_secs(60))?.ok().map(drop)
}

/// Lets a node take pods again.
///
/// # Errors
/// The API server refuses.
pub fn uncordon(node: &str) -> Result<()> {
    kubectl(&["uncordon", node])?.ok().map(drop)
}

fn xtask(args: &[&str]) -> Result<()> {
    let program = std::env::var_os("TIDEMILL_E2E_XTASK")
        .context("this breaks nodes: it runs on the cluster that `cargo xtask e2e` starts")?;
    run(Command::new(program).args(args), b"", Duration::from_secs(120))?.ok().map(drop)
}
