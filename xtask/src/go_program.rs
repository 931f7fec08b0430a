//! The small Go programs of the tests, built from `e2e/kube/NAME` into the target folder.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::kube::run_command;
use crate::workspace::Workspace;

/// Where the program lies.
pub(crate) fn place(workspace: &Workspace, name: &str) -> anyhow::Result<PathBuf> {
    Ok(workspace.target()?.join("go").join(name))
}

/// Builds the program. Go's own cache makes this quick when nothing changed.
pub(crate) fn build(workspace: &Workspace, name: &str) -> anyhow::Result<PathBuf> {
    let place = place(workspace, name)?;
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut command =
        workspace.program("go", &["build", "-mod=readonly", "-buildvcs=false"], &format!("e2e/kube/{name}"));
    run_command(command.arg("-o").arg(&place).arg("."))
        .with_context(|| format!("cannot build {name} (Go 1.26)"))?;
    Ok(place)
}
