//! The project's own commands: `cargo xtask test` runs every test, `cargo xtask verify` is what has to be green before
//! a change goes in.
//!
//! One command per module. Nothing here needs a network, except that `licences` and `image` read the metadata of all
//! packages in the lock file, which cargo may have to fetch once, and that `kube` fetches the modules it builds from.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command's report goes to stdout, its errors to stderr"
)]

mod bench;
mod chaos;
mod cli;
mod e2e;
mod go_program;
mod image;
mod kube;
mod layers;
mod licences;
mod messages;
mod metadata;
mod model;
mod sim;
mod sizes;
mod test;
mod verify;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
