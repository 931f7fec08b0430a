//! Where the project lies, and how its commands start cargo.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::metadata::Metadata;

/// The checkout that the command works on.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The checkout of the package that cargo runs, or else the one around the current directory.
    ///
    /// The path is not taken at compile time: two checkouts may share one target folder.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(dir) => PathBuf::from(dir),
            None => env::current_dir().context("cannot tell the current directory")?,
        };
        match start.ancestors().find(|dir| dir.join("xtask/Cargo.toml").is_file()) {
            Some(root) => Ok(Self { root: root.to_owned() }),
            None => bail!("{} lies in no checkout of the project", start.display()),
        }
    }

    /// The top folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that cargo builds into.
    pub(crate) fn target(&self) -> anyhow::Result<PathBuf> {
        Ok(Metadata::of_members(self)?.target_directory)
    }

    /// Cargo, started in the top folder.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(args).current_dir(&self.root);
        forget_own_build(&mut command);
        command
    }

    /// Another program, started in `dir` (relative to the top folder). A program with a slash in its name is taken
    /// from the checkout, any other from the search path.
    pub(crate) fn program(&self, program: &str, args: &[&str], dir: &str) -> Command {
        let path = if program.contains('/') { self.root.join(program) } else { PathBuf::from(program) };
        let mut command = Command::new(path);
        command.args(args).current_dir(self.root.join(dir));
        forget_own_build(&mut command);
        command
    }
}

/// `cargo run` describes the package it runs in the environment. Handed on, that would look like a change of input to
/// build scripts and rebuild their packages.
fn forget_own_build(command: &mut Command) {
    const OWN: [&str; 5] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"];
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| OWN.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
}
