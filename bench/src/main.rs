//! Side-by-side benchmarks: the same work on Tidemill and on peer systems, in turn, on one machine, in one run, with
//! the limits of the machine beside them. `cargo xtask bench` builds and starts it.
//!
//! Each system runs with three copies on loopback. A round goes once through all systems; each gets an empty
//! directory, does every piece of work, and its directory is removed. Rounds are repeated and medians shown, so that a
//! slow minute of the machine meets all systems alike. Peers are driven through their own clients (`bench/peers`),
//! Tidemill through `tidemill bench`; every setting stands in the results.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "progress and tables are for the terminal")]

mod args;
mod files;
mod limits;
mod outcome;
mod process;
mod report;
mod run;
mod system;
mod work;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match run::run(&args::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
