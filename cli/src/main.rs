//! The command line of Tidemill: a cluster on a laptop, single roles, and everything that talks to a cluster.

mod args;
mod commands;
mod error;
mod logs;
mod output;
mod progress;
mod roles;
mod signals;
mod up;

use std::process::ExitCode;

fn main() -> ExitCode {
    let (cli, matches) = args::parse();
    match commands::run(cli, &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            #[expect(clippy::print_stderr, reason = "the one place where a failed command speaks")]
            if !e.is_quiet() {
                eprintln!("{e}");
            }
            ExitCode::from(e.exit as u8)
        }
    }
}
