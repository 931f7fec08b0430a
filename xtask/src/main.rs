//! The project's own commands: `cargo xtask test` runs every test, `cargo xtask verify` is what has to be green before
//! a change goes in.
//!
//! One command per module. Nothing here needs a network, except that `licences` reads the metadata of all packages in
//! the lock file, which cargo may have to fetch once.
#![expect(clippy::print_stdout, reason = "a command's report goes to stdout")]

mod layers;
mod licences;
mod metadata;
mod sizes;
mod test;
mod verify;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The commands of the project", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test there is
    Test(test::Args),
    /// Everything that has to be green: format, lints, layers, licences, docs, file sizes, tests
    Verify(verify::Args),
    /// Check that dependencies go downwards through the layers of the architecture
    Layers,
    /// Check licences, banned packages and sources against deny.toml
    Licences,
    /// Check the sizes of source files
    Sizes,
}

fn main() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let green = match Cli::parse().command {
        Command::Test(args) => test::run(&workspace, &args)?,
        Command::Verify(args) => verify::run(&workspace, &args)?,
        Command::Layers => layers::run(&workspace)?,
        Command::Licences => licences::run(&workspace)?,
        Command::Sizes => sizes::run(&workspace)?,
    };
    Ok(if green { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
