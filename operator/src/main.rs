//! `tidemill-operator`.
#![expect(clippy::print_stderr, reason = "the reason of the end goes to stderr")]

use std::process::ExitCode;

use clap::Parser;
use tidemill_operator::{args::Args, run};

fn main() -> ExitCode {
    let args = Args::parse();
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("error: the TLS provider was set already");
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("error: no runtime: {e}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}
